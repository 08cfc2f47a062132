"""Bugs to plant in the storage engine, one line each, to prove that the simulation finds such bugs."""

from typing import Final, cast

from tests.simulation.planting import Bug

from ottla.storage import read, retention, roll, truncation
from ottla.storage.appending import append
from ottla.storage.compaction import rules, swap
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.loading import load, new_log, recovery
from ottla.storage.log import Log
from ottla.storage.log_dirs import directory
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.producers.producer_replay import ProducerReplay
from ottla.storage.producers.producer_state import Producer, ProducerState
from ottla.storage.segment import Segment
from ottla.storage.syncing import flush
from ottla.storage.syncing.group_commit import GroupCommit
from ottla.storage.volume import Volume

_ALL: Final = {
    # Syncing.
    "ack-without-sync": Bug(
        "an append is acknowledged as soon as it is written",
        GroupCommit.request,
        "if log.recovery_point >= offset:",
        "if log.log_end_offset >= offset:",
    ),
    "ack-too-early": Bug(
        "an append is acknowledged with a sync that began before it",
        GroupCommit._settle,
        "while waiters and waiters[0][0] <= recovery_point:",
        "while waiters:",
    ),
    "flush-skips-files": Bug(
        "a flush moves the recovery point without syncing the log files",
        flush.run,
        "for file in ticket.files:",
        "for file in ():",
    ),
    "flush-skips-completed-segments": Bug(
        "a flush syncs the active segment only",
        flush.start_flush,
        "segments = list(log.segments_from(log.recovery_point))",
        "segments = [active]",
    ),
    "flush-skips-names": Bug(
        "the names of new segments are not synced",
        flush.run,
        "if ticket.directory:",
        "if False:",
    ),
    "flush-skips-epochs": Bug(
        "the recovery point passes leader epochs that were not written",
        flush._own_contents,
        "for path, content in ticket.contents:",
        "for path, content in ():",
    ),
    "roll-forgets-indexes": Bug(
        "indexes of a segment that ends at the recovery point are never synced",
        roll.roll,
        "log.unsynced_paths = (*log.unsynced_paths, *completed.derived_paths())",
        "pass",
    ),
    "failed-sync-is-forgotten": Bug(
        "after a failed sync the directory is used on",
        Volume.fail,
        "self.error = error",
        "pass",
    ),
    "clean-stop-without-sync": Bug(
        "a clean stop marks the directory without syncing the logs",
        LogDirectory.close,
        "flush.run(ticket, self.volume.disk)",
        "pass",
    ),
    "clean-stop-marker-stays": Bug(
        "the mark of a clean stop is left in place while loading",
        directory._remove_clean_stop,
        "disk.remove(marker)",
        "pass",
    ),
    "first-segment-without-name": Bug(
        "a new log is used before the name of its first segment is safe",
        new_log._sync_each,
        "disk.sync_directory(log.path)",
        "pass",
    ),
    # Recovery.
    "recovery-skips-checksums": Bug(
        "recovery believes every batch whose length fits",
        recovery._recover_piece,
        "or crc32c(view[at + 21 : end]) != crc",
        "or False",
    ),
    "recovery-of-last-segment-only": Bug(
        "recovery looks at the last segment only and believes the indexes of the others",
        load._Loader._needs_recovery,
        "if not self.request.is_clean and (end is None or end >= self.request.recovery_point):",
        "if not self.request.is_clean and end is None:",
    ),
    "recovery-leaves-torn-bytes": Bug(
        "what follows the last good batch is not cut off",
        load._Loader._recover,
        "segment.file.truncate(recovered.valid_bytes)",
        "pass",
    ),
    "recovery-passes-gaps": Bug(
        "a segment that lost its end keeps its successors",
        load._Loader._is_followed_by,
        "return gap == 0 or",
        "return True or",
    ),
    "recovery-skips-epoch-zero": Bug(
        "leader epoch 0 is taken for none",
        LeaderEpochs.assign,
        "if epoch < 0 or",
        "if epoch <= 0 or",
    ),
    "producers-end-at-snapshot": Bug(
        "batches after the newest producer snapshot are not replayed",
        ProducerReplay._replay,
        "if place.base_offset >= offset:",
        "if True:",
    ),
    "snapshot-of-wrong-offset": Bug(
        "a producer snapshot is named one offset too high",
        Log.take_producer_snapshot,
        'path = f"{self.path}/{segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)}"',
        'path = f"{self.path}/{segment_file_name(Offset(offset + 1), FileKind.PRODUCER_SNAPSHOT)}"',
    ),
    # Truncation and retention.
    "truncation-keeps-time-index": Bug(
        "truncation forgets the time index",
        Segment._truncate_indexes,
        "saved.times.truncate_to(offset)",
        "pass",
    ),
    "time-look-up-too-far": Bug(
        "the time index is searched for an entry at or after a timestamp, not before",
        TimeIndex.find,
        "return self._entry_at(slot - 1)",
        "return self._entry_at(min(slot, len(self) - 1))",
    ),
    "truncation-keeps-aborted": Bug(
        "truncation forgets the transaction index",
        Segment.truncate_to,
        "self._truncate_aborted(offset)",
        "pass",
    ),
    "truncation-drops-aborted": Bug(
        "truncation drops the whole transaction index",
        Segment._truncate_aborted,
        "left = truncate_aborted(self.aborted(), offset)",
        "left = []",
    ),
    "truncation-keeps-epochs": Bug(
        "truncation forgets the leader epochs",
        truncation._set_end,
        "log.leader_epochs.truncate_from_end(offset)",
        "pass",
    ),
    "truncation-keeps-producers": Bug(
        "truncation forgets the producers",
        truncation.truncate_to,
        "log.producer_state = rebuild_producer_state(log, now_ms)",
        "pass",
    ),
    "truncation-keeps-recovery-point": Bug(
        "truncation does not lower the recovery point on disk",
        LogDirectory._lower_recovery_points,
        "if is_lowered:",
        "if False:",
    ),
    "truncation-is-not-synced": Bug(
        "what was cut off may come back behind what was appended since",
        truncation.truncate_to,
        "active.file.sync()",
        "pass",
    ),
    "retention-beyond-high-watermark": Bug(
        "retention deletes what other replicas may not have",
        retention._add_oldest,
        "or log.end_of(segment) > log.high_watermark",
        "or False",
    ),
    # Producers and transactions.
    "sequence-wraps-negative": Bug(
        "after sequence 2^31 - 1 comes a negative one",
        append.append_as_leader,
        "(base_sequence + last_delta) & SEQUENCE_MASK,",
        "(base_sequence + last_delta + 2**31) % 2**32 - 2**31,",
    ),
    "window-of-one-batch": Bug(
        "only the last batch of a producer is remembered",
        Producer.add_batch,
        "if len(batches) == BATCHES_KEPT:",
        "if len(batches) == 1:",
    ),
    "duplicate-of-any-epoch": Bug(
        "a batch of an old epoch is taken for a duplicate",
        Producer.find_duplicate,
        "if epoch != self.epoch:",
        "if False:",
    ),
    "expiry-of-open-transaction": Bug(
        "a producer with an open transaction expires",
        ProducerState.expire,
        "if not producer.has_open_transaction and now_ms",
        "if now_ms",
    ),
    "marker-of-old-coordinator": Bug(
        "a marker of an older coordinator is accepted",
        ProducerState.check_marker,
        "if coordinator_epoch < producer.coordinator_epoch:",
        "if False:",
    ),
    # Offsets and reads.
    "stable-up-to-high-watermark": Bug(
        "open transactions do not hold back the last stable offset",
        cast("property", Log.last_stable_offset).fget or Log.close,
        "if first_unstable is None or first_unstable > self.high_watermark:",
        "if True:",
    ),
    "high-watermark-above-log-end": Bug(
        "the high watermark is not kept below the log end",
        Log.update_high_watermark,
        "offset = self.log_end_offset",
        "pass",
    ),
    "read-above-high-watermark": Bug(
        "a consumer sees what is not replicated",
        read.limit_offset,
        "return log.high_watermark if",
        "return log.log_end_offset if",
    ),
    # Compaction.
    "compaction-moves-log-end": Bug(
        "the last batch of a round goes when its records go",
        rules._keeps_empty,
        "if header.next_offset == rules.end_offset:",
        "if False:",
    ),
    "compaction-forgets-producers": Bug(
        "the last batches of a producer go when their records go",
        rules._keeps_empty,
        "return header.last_offset in producer.batch_last_offsets",
        "return False",
    ),
    "truncation-beside-compaction": Bug(
        "what compaction has staged stays when the log is truncated",
        truncation.truncate_to,
        "log.end_cleaning()",
        "pass",
    ),
    "swap-without-sync": Bug(
        "originals are replaced before the names of the swap are safe",
        swap.stage_swap,
        "FileState.CLEANED, FileState.SWAP)\n    disk.sync_directory(directory)",
        "FileState.CLEANED, FileState.SWAP)",
    ),
}

BUGS: Final[dict[str, Bug]] = _ALL

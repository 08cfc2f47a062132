"""The quorum of a node that is alone: log, snapshots and controller, opened together and kept going.

    standalone = open_standalone(...)         loads the log, begins an epoch, writes what a new cluster needs
    standalone.controller.handle(...)         decides
    standalone.tick(now_ms)                   now and then: snapshots, and a sign of life in the log
    standalone.close()                        completes the files

Each append calls `voter.request_sync`. When the log was synced, `voter.synced` is to be called, which
publishes and answers. While a node starts and stops, when no event loop could do so, `voter.flush` does
both.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.alter import MIN_ISR
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.features import (
    METADATA_VERSION,
    TRANSACTIONS_FROM,
    default_levels,
    is_elr_enabled,
    metadata_version_of,
)
from ottla.metadata.image import DEFAULT_BROKERS
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NO_OFFSET, Offset
from ottla.model.uuid import METADATA_TOPIC_ID
from ottla.quorum.batches import BATCH_BYTES_MAX, encode_batch
from ottla.quorum.controller.controller import Controller
from ottla.quorum.controller.decision import Randomness
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY, make_lasting_directory
from ottla.quorum.load import LoadedLog, load_metadata
from ottla.quorum.snapshot_file import BOOTSTRAP_FILE, decode_snapshot
from ottla.quorum.snapshots import Snapshots, id_of, surplus
from ottla.quorum.sole_voter import SoleVoter
from ottla.quorum.voters import VoterIdentity
from ottla.storage import partition_metadata, retention
from ottla.storage.config import LogConfig
from ottla.storage.load import LoadRequest, load_log
from ottla.storage.log import Log
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.stopped_files import StoppedLog
from ottla.storage.volume import Volume
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.wire.metadata_records.no_op import NoOpRecord

_LOOK_AGAIN_MS: Final = 1000
_DONE: Final = object()


class StandaloneSettings(NamedTuple):
    """What a node is told about its quorum. `static_voters` count for directories of a static quorum only."""

    controller: ControllerSettings
    voter: VoterIdentity
    config: NodeConfig
    static_voters: Sequence[int] = ()


class SyncedMetadata(NamedTuple):
    """What is known of a metadata log before it is looked at. See `LoadRequest`."""

    was_clean: bool = False
    synced_offset: Offset = NO_OFFSET
    stopped: StoppedLog | None = None
    # Damage is not repaired unless somebody has asked for it.
    refuses_damage: bool = True


NOTHING_KNOWN: Final = SyncedMetadata()


def _begin_anyway() -> None:
    pass


def open_standalone(
    volume: Volume,
    settings: StandaloneSettings,
    published: PublishedMetadata,
    random: Randomness,
    now_ms: int,
    known: SyncedMetadata = NOTHING_KNOWN,
    begin: Callable[[], None] = _begin_anyway,
) -> "Standalone":
    """Open the quorum of the log directory `volume`. When this returns, all that it holds is published.

    `begin` is called when everything was read, and before anything new is written.
    """
    path = f"{volume.path}/{METADATA_DIRECTORY}"
    snapshots = Snapshots(volume.disk, path)
    make_lasting_directory(volume.disk, path)
    snapshots.delete_left_overs()
    log = open_metadata_log(volume, path, settings.config, snapshots, now_ms, known)
    loaded = load_metadata(log, snapshots)
    voter = SoleVoter(volume.disk, log, loaded, settings.voter, settings.static_voters)
    begin()
    loaded.loader.skip(voter.become_leader(now_ms))
    was_in_transaction = loaded.loader.is_in_transaction
    controller = Controller(voter, loaded.loader, published, settings.controller, random)
    voter.when_committed(controller.committed)
    _activate(controller, volume, settings.config, was_in_transaction, now_ms)
    voter.flush()
    if volume.synced is not None:
        # What a power cut leaves of it always says how far this log was synced at the last start, at least.
        volume.synced.save_for_good()
    return Standalone(voter, controller, snapshots, loaded, settings.config, now_ms)


def _activate(
    controller: Controller, volume: Volume, config: NodeConfig, was_in_transaction: bool, now_ms: int
) -> None:
    """Write what a new controller has to: the end of a transaction begun by another, the first records."""
    records: list[Any] = []
    if was_in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if METADATA_VERSION not in controller.image.features:
        records += _first_records(volume, config)
    if records:
        controller.append(records, now_ms)


def _first_records(volume: Volume, config: NodeConfig) -> list[Any]:
    """Return what an empty log begins with, as one transaction if the metadata.version has them."""
    path = f"{volume.path}/{BOOTSTRAP_FILE}"
    if volume.disk.exists(path):
        records = list(decode_snapshot(volume.disk.read_file(path), BOOTSTRAP_FILE).records)
    else:
        levels = default_levels()
        records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    levels = {one.name: one.feature_level for one in records if isinstance(one, FeatureLevelRecord)}
    if is_elr_enabled(levels):
        # With eligible leaders, min.insync.replicas is the cluster's, not each broker's.
        records.append(
            ConfigRecord(
                resource_type=DEFAULT_BROKERS.type,
                resource_name=DEFAULT_BROKERS.name,
                name=MIN_ISR,
                value=str(config.min_insync_replicas),
            )
        )
    if metadata_version_of(levels) < TRANSACTIONS_FROM:
        return records
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]


def open_metadata_log(
    volume: Volume,
    path: str,
    config: NodeConfig,
    snapshots: Snapshots,
    now_ms: int,
    known: SyncedMetadata = NOTHING_KNOWN,
) -> Log:
    """Load the log, every batch of which is checked.

    Raises `DamagedLog` for one that is damaged. A log without some of its records would make the node set the
    data of topics aside that it does not know any more, and clients would create them again. What was never
    synced is cut, and kept aside.
    """
    id_path = f"{path}/{partition_metadata.FILE}"
    if not volume.disk.exists(id_path):
        content = partition_metadata.encode_partition_metadata(METADATA_TOPIC_ID)
        volume.disk.write_file_atomically(id_path, content)
    stored = snapshots.list()
    log_config = LogConfig(
        segment_bytes=config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        max_message_bytes=BATCH_BYTES_MAX,
        is_deleted=False,
    )
    request = LoadRequest(
        path=path,
        topic_partition=METADATA_PARTITION,
        config=log_config,
        log_start_offset=stored[0].id.end_offset if stored else Offset(0),
        now_ms=now_ms,
        synced_offset=known.synced_offset,
        stopped=known.stopped,
        all_was_synced=known.was_clean,
        refuses_damage=known.refuses_damage,
        make_filler=_no_op_batch,
    )
    log = load_log(volume, request)
    if stored and log.log_end_offset < stored[-1].id.end_offset:
        # What the log has lost is in the snapshot. As in Kafka, it goes on from there.
        for deletion in log.truncate_fully_and_start_at(stored[-1].id.end_offset, now_ms):
            deletion.run(volume.disk)
    return log


def _no_op_batch(first_offset: int, next_offset: int, epoch: int) -> bytearray:
    """Return a batch of records that say nothing. Apache Kafka takes no batch of metadata without records."""
    records = [NoOpRecord()] * (next_offset - first_offset)
    version = default_levels()[METADATA_VERSION]
    return encode_batch(records, version, Offset(first_offset), max(epoch, 0), 0)


class Standalone:
    """A quorum of one at work."""

    def __init__(
        self,
        voter: SoleVoter,
        controller: Controller,
        snapshots: Snapshots,
        loaded: LoadedLog,
        config: NodeConfig,
        now_ms: int,
    ) -> None:
        self.voter = voter
        self.controller = controller
        self._snapshots = snapshots
        self._config = config
        self._written_end = loaded.snapshot_id.end_offset
        self._written_ms = now_ms
        self._written_bytes = -loaded.tail_bytes
        self._writing: Iterator[None] | None = None
        self._log_end = voter.log_end_offset
        self._log_end_ms = now_ms

    def tick(self, now_ms: int) -> int:
        """Do what is due. Returns after how many milliseconds to come again."""
        if self._writing is not None:
            self._write_on(now_ms)
        elif self._snapshot_is_due(now_ms):
            self._begin_snapshot(now_ms)
        idle_left_ms = self._show_life(now_ms)
        return 0 if self._writing is not None else idle_left_ms

    def write_snapshot(self, now_ms: int) -> None:
        """Write a snapshot of what is published, at once."""
        self._begin_snapshot(now_ms)
        while self._writing is not None:
            self._write_on(now_ms)

    def close(self) -> None:
        """Complete the files of the log. Nothing may be appended after this."""
        self.voter.flush()
        self.voter.log.close()

    def _show_life(self, now_ms: int) -> int:
        """Append a record that says nothing when there was no other for a while. Returns how long until then.

        Nodes that follow the log see by it that the leader lives and that they have caught up.
        """
        interval_ms = self._config.metadata_max_idle_interval_ms
        if interval_ms <= 0:
            return _LOOK_AGAIN_MS
        if self.voter.log_end_offset != self._log_end:
            self._log_end, self._log_end_ms = self.voter.log_end_offset, now_ms
        left_ms = self._log_end_ms + interval_ms - now_ms
        if left_ms > 0:
            return left_ms
        self.controller.append([NoOpRecord()], now_ms)
        self._log_end, self._log_end_ms = self.voter.log_end_offset, now_ms
        return interval_ms

    def _snapshot_is_due(self, now_ms: int) -> bool:
        if self.controller.published.image.offset < self._written_end:
            return False
        new_bytes = self.voter.appended_bytes - self._written_bytes
        if new_bytes >= self._config.metadata_log_max_record_bytes_between_snapshots:
            return True
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms
        return 0 < interval_ms <= now_ms - self._written_ms

    def _begin_snapshot(self, now_ms: int) -> None:
        image = self.controller.published.image
        self._writing = self._snapshots.write(image, self.voter.quorum, now_ms)
        self._written_end = id_of(image).end_offset
        self._written_ms = now_ms
        self._written_bytes = self.voter.appended_bytes

    def _write_on(self, now_ms: int) -> None:
        assert self._writing is not None, "a snapshot is being written"
        if next(self._writing, _DONE) is _DONE:
            self._writing = None
            self._let_go(now_ms)

    def _let_go(self, now_ms: int) -> None:
        """Delete the oldest snapshots that need not be kept, and what the log has from before the others."""
        log = self.voter.log
        config = self._config
        stored = self._snapshots.list()
        gone = surplus(
            stored,
            log.size_bytes,
            config.metadata_max_retention_bytes,
            config.metadata_max_retention_ms,
            now_ms,
        )
        if not gone:
            return
        log.increment_log_start_offset(stored[len(gone)].id.end_offset)
        for snapshot_id in gone:
            self._snapshots.delete(snapshot_id)
        # The oldest snapshot says where the log starts. If a power cut brought an older one back, and some of
        # the segments, the log would seem to end at the first that is missing.
        disk = log.volume.disk
        deletions = retention.delete_old_segments(log, now_ms, lambda: disk.sync_directory(log.path))
        for deletion in deletions:
            deletion.run(disk)

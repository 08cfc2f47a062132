"""A log directory written by our engine, with everything in it that its files can hold.

Four partitions: every codec under several leader epochs; append time; transactions that were committed,
aborted and left open, beside idempotent producers; and a compacted one with tombstones, markers and batches
that were emptied.
"""

from pathlib import Path
from random import Random

from tests.unit.storage.compaction.whole_round import run_round

from ottla.model.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.attributes import Codec, TimestampType
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.runtime.disk import RealDisk
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs.partition_metadata import FILE, encode_partition_metadata
from ottla.storage.volume import Volume

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=250, delete_retention_ms=1000)
COMPACTED = LogConfig(
    segment_bytes=3000,
    index_interval_bytes=250,
    delete_retention_ms=1000,
    is_compacted=True,
    is_deleted=False,
)
APPEND_TIME = LogConfig(
    segment_bytes=3000, index_interval_bytes=250, message_timestamp_type=TimestampType.LOG_APPEND_TIME
)


class Writer:
    """Appends to one log as its leader."""

    def __init__(self, directory: Path, topic: str, config: LogConfig) -> None:
        partition = TopicPartition(topic, 0)
        path = directory / str(partition)
        path.mkdir()
        (path / FILE).write_bytes(encode_partition_metadata(Uuid(bytes(range(16)))))
        request = LoadRequest(str(path), partition, config, now_ms=NOW_MS)
        self.log = load_log(Volume(RealDisk(), str(directory)), request)
        self.random = Random(topic)
        self.leader_epoch = LeaderEpoch(0)
        self.now_ms = NOW_MS
        self.sequences: dict[int, int] = {}

    def send(
        self,
        keys: str,
        *,
        codec: Codec = Codec.NONE,
        producer_id: int = -1,
        epoch: int = 0,
        is_transactional: bool = False,
        has_values: bool = True,
    ) -> None:
        """Append a batch with one record for each letter of `keys`."""
        self.now_ms += 7
        values = [self.random.randbytes(self.random.randint(0, 150)) if has_values else None for _ in keys]
        records = [
            Record(at, self.now_ms + at, key.encode(), value, (("trace", b"1"), ("none", None)))
            for at, (key, value) in enumerate(zip(keys, values, strict=True))
        ]
        sequence = -1
        verification = None
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(keys)
        if is_transactional:
            verification = self.log.start_verification(
                ProducerId(producer_id), epoch, sequence, False, self.now_ms
            )
        batch = build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        self.log.append_as_leader(
            memoryview(batch), leader_epoch=self.leader_epoch, now_ms=self.now_ms, verification=verification
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def end(self, producer_id: int, *, is_commit: bool, epoch: int = 0) -> None:
        """Append the marker that ends a transaction."""
        self.now_ms += 7
        marker = build_end_txn_batch(
            EndTxnMarker(is_commit, coordinator_epoch=5),
            timestamp=self.now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        self.log.append_as_leader(
            memoryview(marker),
            leader_epoch=self.leader_epoch,
            now_ms=self.now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=1,
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def elect(self) -> None:
        """Let a new leader epoch begin."""
        self.leader_epoch = LeaderEpoch(self.leader_epoch + 2)
        self.log.assign_leader_epoch(self.leader_epoch, self.log.log_end_offset)


def write_directory(directory: Path) -> list[Log]:
    """Write all partitions. The logs are left open, and flushed: as if killed, once nobody uses them."""
    logs = [
        _write_codecs(Writer(directory, "codecs", CONFIG)),
        _write_codecs(Writer(directory, "append-time", APPEND_TIME)),
        _write_transactions(Writer(directory, "transactions", CONFIG)),
        _write_compacted(Writer(directory, "compacted", COMPACTED)),
    ]
    for log in logs:
        log.flush()
    return logs


def _write_codecs(writer: Writer) -> Log:
    for number in range(30):
        writer.send("abcdefgh"[: 1 + number % 8], codec=list(Codec)[number % 5])
        if number % 9 == 8:
            writer.elect()
    return writer.log


def _write_transactions(writer: Writer) -> Log:
    for number in range(12):
        writer.send("ab", producer_id=1)
        writer.send("cd", producer_id=11, is_transactional=True)
        writer.send("ef", producer_id=12, is_transactional=True, codec=Codec.LZ4)
        writer.send("gh", producer_id=11, is_transactional=True)
        writer.end(11, is_commit=number % 2 == 0)
        if number % 3 == 2:
            writer.end(12, is_commit=number % 2 == 1)
        if number % 5 == 4:
            writer.elect()
    # Stays open, and holds back the last stable offset.
    writer.send("xy", producer_id=13, is_transactional=True)
    writer.send("ab", producer_id=1)
    return writer.log


def _write_compacted(writer: Writer) -> Log:
    for number in range(20):
        writer.send("aabbc", producer_id=1, codec=list(Codec)[number % 5])
        writer.send("ad", producer_id=11, is_transactional=True)
        writer.end(11, is_commit=number % 3 != 0)
        if number % 4 == 3:
            writer.send("bd", has_values=False)
        if number % 7 == 6:
            writer.elect()
    log = writer.log
    checkpoint: Offset | None = None
    # What goes at once, what begins to wait for its delete horizon, what has waited, and once more.
    for later_ms in (0, 10, 2000, 2010):
        log.flush()
        now_ms = writer.now_ms + later_ms
        done = run_round(find_candidate(log, checkpoint, now_ms), now_ms, 1 << 20)
        checkpoint = done.cleaned.first_dirty_offset
        for deletion in done.deletions:
            deletion.run(log.volume.disk)
        writer.send("ae", producer_id=1)
        writer.send("ad", producer_id=11, is_transactional=True)
        writer.end(11, is_commit=True)
        writer.send("bd", has_values=False)
        writer.send("f" * 20, codec=Codec.ZSTD)
    return log

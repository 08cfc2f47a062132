"""Apache Kafka's own cleaner and ours, let loose on copies of the same directory, leave the same behind.

Where nothing is compressed that means the same bytes in every file, indexes included. Compressed batches
that had to be written again may differ in their compressed bytes alone.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.differential.random_log import START_MS, RandomLog
from tests.golden.directories import golden_directory, unpack
from tests.java.oracle import Oracle
from tests.java.partition_logs import PartitionLogs, Round
from tests.java.rounds import rounds
from tests.unit.storage.compaction.whole_round import run_round

from ottla.model.ids import Offset, TopicPartition
from ottla.records.attributes import Codec
from ottla.records.batch import BatchHeader, BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.compression import decompress
from ottla.runtime.disk import RealDisk
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.compaction.offset_map import ENTRY_BYTES
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import BATCHES_KEPT
from ottla.storage.volume import Volume

DELETE_RETENTION_MS = 1000
CONFIG = LogConfig(
    is_compacted=True,
    is_deleted=False,
    segment_bytes=4000,
    index_interval_bytes=300,
    delete_retention_ms=DELETE_RETENTION_MS,
)
KAFKA_CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "index.interval.bytes": "300",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
# How much later the second and third round come: tombstones and markers get a horizon, and pass it.
LATER_MS = (0, 10, DELETE_RETENTION_MS + 20)
SEEDS = 40
# Before any of the producers of the golden directories would have been forgotten.
NEVER_EXPIRED_MS = START_MS
# Apache Kafka keeps the newest batch of a producer only. See `ottla.storage.compaction.rules`.
KAFKA_BATCHES_KEPT = 1
# What depends on how well a codec compresses.
SIZES = {"clean_bytes", "cleanable_bytes"}


@pytest.fixture
def kafka(oracle: Oracle) -> PartitionLogs:
    return PartitionLogs(oracle)


class OurLog:
    """Our engine on a partition's directory, opened as after a crash and then as after a clean stop."""

    def __init__(self, directory: Path, now_ms: int) -> None:
        self.directory = directory
        self.now_ms = now_ms
        self.log: Log | None = None

    def open(self, *, is_clean: bool) -> Log:
        request = LoadRequest(
            str(self.directory),
            TopicPartition("orders", 0),
            CONFIG,
            is_clean=is_clean,
            now_ms=self.now_ms,
        )
        self.log = load_log(Volume(RealDisk(), str(self.directory.parent)), request)
        self.log.flush()
        self.log.update_high_watermark(self.log.log_end_offset)
        return self.log

    def close(self) -> None:
        assert self.log is not None
        self.log.close()


def clean_ours(log: Log, ask: Round, batches_kept: int) -> dict[str, Any]:
    """Let our cleaner do what Kafka's was asked to, and tell the same of it."""
    checkpoint = None if ask.checkpoint is None else Offset(ask.checkpoint)
    candidate = find_candidate(log, checkpoint, ask.now_ms)
    told: dict[str, Any] = {
        "first_dirty_offset": candidate.first_dirty_offset,
        "end_offset": candidate.end_offset,
        "clean_bytes": candidate.clean_bytes,
        "cleanable_bytes": candidate.cleanable_bytes,
        "checkpoint_is_stale": candidate.checkpoint_is_stale,
    }
    if candidate.end_offset > candidate.first_dirty_offset:
        done = run_round(candidate, ask.now_ms, ask.map_entries * ENTRY_BYTES, batches_kept)
        told["next_dirty_offset"] = done.cleaned.first_dirty_offset
    return told


def batches_in(directory: Path) -> list[BatchView]:
    return [
        batch
        for path in sorted(directory.glob("*.log"))
        for batch in iter_batches(memoryview(path.read_bytes()))
    ]


def describe(batch: BatchView) -> tuple[BatchHeader, bytes]:
    """Tell everything about a batch that does not depend on how its records are compressed."""
    header = batch.header
    area = decompress(header.codec, batch.records_bytes) if header.count else b""
    return header._replace(batch_length=0, crc=0), area


def files_in(directory: Path, *suffixes: str) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in suffixes and path.stat().st_size
    }


@pytest.mark.parametrize("seed", rounds(10, SEEDS))
@pytest.mark.parametrize("codecs", [(Codec.NONE,), tuple(Codec)], ids=["uncompressed", "all codecs"])
def test_kafkas_cleaner_and_ours_leave_the_same(
    kafka: PartitionLogs, tmp_path: Path, seed: int, codecs: tuple[Codec, ...]
) -> None:
    theirs, ours = tmp_path / "theirs" / "orders-0", tmp_path / "ours" / "orders-0"
    random_log = RandomLog(seed, codecs=codecs)
    random_log.write(theirs)
    shutil.copytree(theirs, ours)
    our_log = OurLog(ours, random_log.now_ms)
    # A small map makes a round stop in the middle, with the rest of a batch not judged.
    map_entries = random_log.random.choice((2, 3, 5, 1000))
    checkpoint: int | None = None
    for number, later_ms in enumerate(LATER_MS):
        ask = Round(random_log.now_ms + later_ms, checkpoint, map_entries)
        told = kafka.open(
            theirs,
            now_ms=random_log.now_ms,
            is_clean=number > 0,
            recovery_point=random_log.end_offset if number else 0,
            config=KAFKA_CONFIG,
            clean=ask,
        )
        log = our_log.open(is_clean=number > 0)
        cleaned = clean_ours(log, ask, KAFKA_BATCHES_KEPT)
        segments = [segment.base_offset for segment in log.segments]
        our_log.close()
        compared = cleaned.keys() if codecs == (Codec.NONE,) else cleaned.keys() - SIZES
        assert {fact: cleaned[fact] for fact in compared} == {
            fact: told["cleaned"][fact] for fact in compared
        }
        assert segments == [base_offset for base_offset, _ in told["segments"]]
        assert [describe(batch) for batch in batches_in(ours)] == [
            describe(batch) for batch in batches_in(theirs)
        ]
        same = (".txnindex",) if len(codecs) > 1 else (".log", ".index", ".timeindex", ".txnindex")
        assert files_in(ours, *same) == files_in(theirs, *same)
        checkpoint = told["cleaned"].get("next_dirty_offset", checkpoint)


@pytest.mark.parametrize("seed", range(0, SEEDS, 4))
def test_keeping_five_batches_of_a_producer_adds_nothing_but_empty_batches(tmp_path: Path, seed: int) -> None:
    one, five = tmp_path / "one" / "orders-0", tmp_path / "five" / "orders-0"
    random_log = RandomLog(seed)
    random_log.write(one)
    shutil.copytree(one, five)
    for directory, batches_kept in ((one, KAFKA_BATCHES_KEPT), (five, BATCHES_KEPT)):
        our_log = OurLog(directory, random_log.now_ms)
        log = our_log.open(is_clean=False)
        clean_ours(log, Round(random_log.now_ms), batches_kept)
        our_log.close()
    with_one = [describe(batch) for batch in batches_in(one)]
    with_five = [describe(batch) for batch in batches_in(five)]
    added = [batch for batch in with_five if batch not in with_one]
    assert [batch for batch in with_five if batch not in added] == with_one
    assert all(header.count == 0 and header.producer_id >= 0 for header, _ in added)


def test_a_segment_that_reaches_too_far_is_split_as_kafka_splits_it(
    kafka: PartitionLogs, tmp_path: Path
) -> None:
    theirs, ours = tmp_path / "theirs" / "orders-0", tmp_path / "ours" / "orders-0"
    theirs.mkdir(parents=True)
    offsets = [0, 1, 2**31 - 1, 2**31, 2**31 + 5, 2**33]
    batches = [build_batch([Record(at, START_MS + at, b"k", b"v")], base_offset=at) for at in offsets]
    (theirs / f"{0:020d}.log").write_bytes(b"".join(batches))
    shutil.copytree(theirs, ours)
    told = kafka.open(theirs, now_ms=START_MS, config=KAFKA_CONFIG)
    our_log = OurLog(ours, START_MS)
    log = our_log.open(is_clean=False)
    assert [[segment.base_offset, segment.size] for segment in log.segments] == told["segments"]
    assert log.log_end_offset == told["log_end_offset"]
    our_log.close()
    suffixes = (".log", ".index", ".timeindex")
    assert files_in(ours, *suffixes) == files_in(theirs, *suffixes)


@pytest.mark.parametrize("old", sorted(path.name for path in golden_directory("06-legacy").iterdir()))
def test_messages_of_old_formats_are_cleaned_as_kafka_cleans_them(
    kafka: PartitionLogs, tmp_path: Path, old: str
) -> None:
    """They become batches of format 2. A newer record sees to it that there is one to drop."""
    theirs, ours = tmp_path / "theirs" / "orders-0", tmp_path / "ours" / "orders-0"
    theirs.mkdir(parents=True)
    content = next((golden_directory("06-legacy") / old).glob("*.log")).read_bytes()
    keys = [record.key for batch in iter_batches(memoryview(content)) for record in iter_batch_records(batch)]
    newer = build_batch([Record(8, START_MS, keys[0], b"newer")], base_offset=8)
    last = build_batch([Record(9, START_MS, b"last", b"1")], base_offset=9)
    (theirs / f"{0:020d}.log").write_bytes(content)
    (theirs / f"{8:020d}.log").write_bytes(newer)
    (theirs / f"{9:020d}.log").write_bytes(last)
    shutil.copytree(theirs, ours)
    ask = Round(START_MS)
    told = kafka.open(theirs, now_ms=START_MS, config=KAFKA_CONFIG, clean=ask)
    our_log = OurLog(ours, START_MS)
    cleaned = clean_ours(our_log.open(is_clean=False), ask, KAFKA_BATCHES_KEPT)
    our_log.close()
    assert cleaned["next_dirty_offset"] == told["cleaned"]["next_dirty_offset"]
    assert [describe(batch) for batch in batches_in(ours)] == [
        describe(batch) for batch in batches_in(theirs)
    ]
    assert all(batch.magic == 2 for batch in batches_in(ours))


GOLDEN = [
    ("01-clean", "t-compact-0"),
    ("01-clean", "t-compact-txn-0"),
    ("02-compacted", "t-compact-txn-0"),
    ("03-killed9", "t-compact-txn-0"),
    ("07-tombstones", "tomb-0"),
    ("07-tombstones", "tomb-gzip-0"),
]


@pytest.mark.parametrize("later_ms", [0, 10 * DELETE_RETENTION_MS])
@pytest.mark.parametrize(("archive", "partition"), GOLDEN, ids=[f"{a}/{p}" for a, p in GOLDEN])
def test_what_apache_kafka_wrote_is_cleaned_as_kafka_cleans_it(
    kafka: PartitionLogs, tmp_path: Path, archive: str, partition: str, later_ms: int
) -> None:
    theirs = unpack(archive, tmp_path / "theirs") / partition
    ours = tmp_path / "ours" / "orders-0"
    shutil.copytree(theirs, ours)
    now_ms = NEVER_EXPIRED_MS
    newest_ms = max(batch.max_timestamp for batch in batches_in(ours))
    is_clean = archive != "03-killed9"
    ask = Round(newest_ms + later_ms)
    end = max(batch.last_offset for batch in batches_in(ours)) + 1
    told = kafka.open(
        theirs, now_ms=now_ms, is_clean=is_clean, recovery_point=end, config=KAFKA_CONFIG, clean=ask
    )
    our_log = OurLog(ours, now_ms)
    cleaned = clean_ours(our_log.open(is_clean=is_clean), ask, KAFKA_BATCHES_KEPT)
    our_log.close()
    assert cleaned == told["cleaned"]
    assert [describe(batch) for batch in batches_in(ours)] == [
        describe(batch) for batch in batches_in(theirs)
    ]
    assert files_in(ours, ".txnindex") == files_in(theirs, ".txnindex")

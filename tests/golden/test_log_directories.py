"""Log directories that Apache Kafka wrote, loaded by our storage engine: clean, killed and torn ones.

What a directory must turn out to hold is told by the manifest, which an independent reader made, and by what
Kafka's own tool prints of the files. Loading changes files, so every test works on a copy of its own.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.golden.directories import DATA, golden_directory, unpack

from ottla.model.ids import NodeId, Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.batch import BatchView, iter_batches
from ottla.runtime.disk import RealDisk
from ottla.storage.config import LogConfig
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.indexes.transaction_index import decode_transaction_index, encode_transaction_index
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs import clean_shutdown, meta_properties
from ottla.storage.log_dirs.checkpoints import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LEADER_EPOCH_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from ottla.storage.log_dirs.meta_properties import decode_meta_properties
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot, encode_producer_snapshot
from ottla.storage.read import ReadLimit
from ottla.storage.volume import Volume

# Before any of the producers would have been forgotten.
NOW_MS = 1_700_000_000_000
DELETED_SEGMENT = ("01-clean", "t-delrec")
COMPACTED_TOPICS = ("__", "t-compact", "z-tomb", "g-streams")
NODES = [f"node{number}-{directory}" for number in (1, 2, 3, 4) for directory in "ab"]
SINGLE = ["01-clean", "02-compacted", "03-killed9", "05-torn", "07-tombstones"]
ROOTS = [*SINGLE, *(f"04-cluster/{node}" for node in NODES)]


@cache
def manifest() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress((DATA / "manifest.json.gz").read_bytes()))
    return content


def facts_of(root: str) -> dict[str, Any]:
    """Return what the manifest says of one log directory."""
    facts: dict[str, Any] = manifest()
    for part in root.split("/"):
        facts = facts[part]
    return facts


def partitions_of(root: str) -> list[dict[str, Any]]:
    """Return what the manifest says of the partitions of one log directory, once they are loaded.

    Segments that were deleted, but still there, go when a log is loaded. Kafka lets its retention do it, and
    had done it when it stopped the next time.
    """
    later = {(facts["topic"], facts["partition"]): facts for facts in facts_of("02-compacted")["partitions"]}
    return [
        later[facts["topic"], facts["partition"]] if (root, facts["topic"]) == DELETED_SEGMENT else facts
        for facts in facts_of(root)["partitions"]
    ]


class Loaded(NamedTuple):
    """A log, and what the manifest says of it."""

    log: Log
    facts: dict[str, Any]


def load_all(directory: Path, root: str) -> Iterator[Loaded]:
    """Load the partitions of a log directory one by one, as a broker would after a start."""
    disk = RealDisk()
    recovery_points, log_starts, high_watermarks = (
        decode_offset_checkpoint((directory / name).read_bytes())
        for name in (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE)
    )
    is_clean = (directory / clean_shutdown.FILE).exists()
    for facts in partitions_of(root):
        partition = TopicPartition(facts["topic"], facts["partition"])
        request = LoadRequest(
            str(directory / str(partition)),
            partition,
            LogConfig(is_compacted=partition.topic.startswith(COMPACTED_TOPICS)),
            recovery_points.get(partition, Offset(0)),
            log_starts.get(partition, Offset(0)),
            is_clean,
            NOW_MS,
        )
        log = load_log(Volume(disk, str(directory)), request)
        log.update_high_watermark(high_watermarks.get(partition, Offset(0)))
        yield Loaded(log, facts)


CLEAN_ROOTS = [root for root in ROOTS if facts_of(root)["cleanShutdown"]]


@pytest.fixture(params=ROOTS, scope="module")
def root(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def loaded(root: str, tmp_path_factory: pytest.TempPathFactory) -> list[Loaded]:
    """Load a directory for all tests that only look at the logs."""
    archive, _, node = root.partition("/")
    return list(load_all(unpack(archive, tmp_path_factory.mktemp(archive)) / node, root))


def batches_of(log: Log) -> list[BatchView]:
    return [
        batch
        for segment in log.segments
        for batch in iter_batches(memoryview(segment.file.read(0, segment.size)))
    ]


def test_offsets_are_those_of_the_manifest(root: str, loaded: list[Loaded]) -> None:
    expected_ends = facts_of(root).get("expectedLogEndAfterRecovery", {})
    for log, facts in loaded:
        end = expected_ends.get(str(log.topic_partition), facts["logEnd"])
        assert (log.log_start_offset, log.log_end_offset) == (facts["logStart"], end), log
        assert log.topic_id == Uuid.from_text(facts["topicId"])
        assert log.high_watermark == min(facts["hwCheckpoint"], end)
        assert len(log.segments) == facts["segments"]
        assert log.segments[0].base_offset == facts["firstBase"]


def test_batches_are_those_of_the_manifest(loaded: list[Loaded]) -> None:
    for log, facts in loaded:
        batches = batches_of(log)
        assert len(batches) == facts["batches"], log
        assert sum(batch.count for batch in batches) == facts["records"]
        assert sum(batch.is_control for batch in batches) == facts["controlBatches"]
        assert Counter(batch.codec.name.lower() for batch in batches) == facts["codecs"]
        assert {batch.producer_id for batch in batches if batch.has_producer} == set(
            facts.get("producerIds", ())
        )


def test_reading_from_every_offset_finds_its_batch(loaded: list[Loaded]) -> None:
    for log, _ in loaded:
        batches = batches_of(log)
        for offset in range(log.log_start_offset, log.log_end_offset):
            result = log.read(Offset(offset), 1, ReadLimit.LOG_END)
            expected = next(batch for batch in batches if batch.last_offset >= offset)
            assert result.file is not None
            found = BatchView(memoryview(result.file.read(result.position, result.length)))
            assert (found.base_offset, found.size_bytes) == (expected.base_offset, result.length), offset


def test_producers_are_those_that_the_batches_tell(loaded: list[Loaded]) -> None:
    """Whatever part of it came from a snapshot, it fits the log. Producers may have been forgotten by age."""
    for log, _ in loaded:
        state = {entry.producer_id: entry for entry in log.producer_state.snapshot()}
        batches = batches_of(log)
        for producer_id, entry in state.items():
            last = next(batch for batch in reversed(batches) if batch.producer_id == producer_id)
            assert entry.producer_epoch == last.producer_epoch, (log, producer_id)
            if entry.last_offset >= 0:
                data = next(batch for batch in batches if batch.last_offset == entry.last_offset)
                assert (data.producer_id, data.last_sequence) == (producer_id, entry.last_sequence)
        assert state.keys() <= {batch.producer_id for batch in batches if batch.has_producer}


@pytest.mark.parametrize("clean_root", CLEAN_ROOTS)
def test_closing_after_a_clean_stop_changes_no_index(clean_root: str, tmp_path: Path) -> None:
    archive, _, node = clean_root.partition("/")
    original = golden_directory(archive) / node
    directory = unpack(archive, tmp_path) / node
    compared = 0
    for log, _ in load_all(directory, clean_root):
        log.close()
        for path in sorted((original / str(log.topic_partition)).glob("*.*index")):
            if int(path.stem) >= log.segments[0].base_offset:
                assert (directory / path.relative_to(original)).read_bytes() == path.read_bytes(), path
                compared += 1
    assert compared


def test_an_open_transaction_holds_back_the_last_stable_offset(tmp_path: Path) -> None:
    (log,) = [
        log
        for log, _ in load_all(unpack("03-killed9", tmp_path), "03-killed9")
        if str(log.topic_partition) == "t-txn-0"
    ]
    log.update_high_watermark(log.log_end_offset)
    assert (log.high_watermark, log.last_stable_offset) == (42, 38)


# Files that the manifest and the dumps describe one by one.


@cache
def dumped_lines(name: str) -> dict[str, list[dict[str, int]]]:
    """Return the lines of a dump by file, each as its numeric fields."""
    text = gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode()
    files: dict[str, list[dict[str, int]]] = {}
    lines: list[dict[str, int]] = []
    for line in text.splitlines():
        if line.startswith("Dumping "):
            lines = files[line.removeprefix("Dumping ").removeprefix("golden/")] = []
        else:
            fields = re.findall(r"(\w+): (?:OptionalLong\[)?(-?\d+)", line)
            lines.append({field: int(number) for field, number in fields})
    return files


def contents(dump: str, suffix: str) -> Iterator[tuple[Path, list[dict[str, int]]]]:
    for name, lines in dumped_lines(dump).items():
        if name.endswith(suffix):
            archive, _, rest = name.partition("/")
            yield golden_directory(archive) / rest, lines


@pytest.mark.parametrize("dump", ["01-clean.indexes", "02-compacted.indexes"])
def test_indexes_are_read_as_kafkas_tool_reads_them(dump: str) -> None:
    offsets = times = 0
    for path, lines in contents(dump, ".index"):
        index = OffsetIndex(Offset(int(path.stem)), path.read_bytes())
        assert [entry._asdict() for entry in index] == lines, path
        index.check(path.with_suffix(".log").stat().st_size)
        offsets += len(index)
    for path, lines in contents(dump, ".timeindex"):
        times_index = TimeIndex(Offset(int(path.stem)), path.read_bytes())
        found = [{"timestamp": entry.timestamp_ms, "offset": entry.offset} for entry in times_index]
        assert found == lines, path
        times_index.check()
        times += len(times_index)
    assert offsets > 20
    assert times > 60


PRODUCER_DUMPS = sorted(path.name.removesuffix(".txt.gz") for path in DATA.glob("*.producer-state.txt.gz"))


@pytest.mark.parametrize("dump", PRODUCER_DUMPS)
def test_producer_snapshots_are_read_as_kafkas_tool_reads_them(dump: str) -> None:
    found = 0
    for path, lines in contents(dump, ".snapshot"):
        content = path.read_bytes()
        entries = decode_producer_snapshot(content)
        assert encode_producer_snapshot(entries) == content
        for entry, line in zip(entries, lines, strict=True):
            assert entry.producer_id == line["producerId"]
            assert entry.producer_epoch == line["producerEpoch"]
            assert entry.coordinator_epoch == line["coordinatorEpoch"]
            assert entry.timestamp_ms == line["lastTimestamp"]
            assert entry.transaction_first_offset == line.get("currentTxnFirstOffset", -1)
            assert entry.last_sequence == line.get("lastSequence", -1)
            assert entry.last_offset == line.get("lastOffset", -1)
            assert entry.offset_delta == line.get("offsetDelta", 0)
            found += 1
    assert found


@pytest.mark.parametrize("dump", PRODUCER_DUMPS)
def test_aborted_transactions_are_read_as_kafkas_tool_reads_them(dump: str) -> None:
    found = 0
    for path, lines in contents(dump, ".txnindex"):
        content = path.read_bytes()
        transactions = decode_transaction_index(content, Offset(int(path.stem)))
        assert encode_transaction_index(transactions) == content
        assert [
            {
                "version": 0,
                "producerId": transaction.producer_id,
                "firstOffset": transaction.first_offset,
                "lastOffset": transaction.last_offset,
                "lastStableOffset": transaction.last_stable_offset,
            }
            for transaction in transactions
        ] == lines
        found += len(lines)
    assert found


def test_checkpoints_say_what_the_manifest_says(root: str) -> None:
    archive, _, node = root.partition("/")
    directory = golden_directory(archive) / node
    for name, fact in (
        (RECOVERY_POINT_FILE, "recoveryPoint"),
        (HIGH_WATERMARK_FILE, "hwCheckpoint"),
        (CLEANER_FILE, "cleanerCheckpoint"),
    ):
        content = (directory / name).read_bytes()
        offsets = decode_offset_checkpoint(content)
        assert encode_offset_checkpoint(offsets) == (content or b"0\n0\n")
        for facts in facts_of(root)["partitions"]:
            partition = TopicPartition(facts["topic"], facts["partition"])
            # A partition without an entry was not looked at before the checkpoint was written.
            assert offsets.get(partition, facts.get(fact)) == facts.get(fact), (name, partition)


def test_leader_epochs_survive_loading(root: str, loaded: list[Loaded]) -> None:
    archive, _, node = root.partition("/")
    for log, _ in loaded:
        path = golden_directory(archive) / node / str(log.topic_partition) / LEADER_EPOCH_FILE
        written = decode_epoch_checkpoint(path.read_bytes()) if path.exists() else []
        # An epoch of which nothing was appended is forgotten, as by Kafka. What was appended just before a
        # kill may have an epoch that is not in the file yet.
        written = [entry for entry in written if entry.start_offset < log.log_end_offset]
        assert list(log.leader_epochs.entries)[: len(written)] == written, log
        told = sorted({batch.leader_epoch for batch in batches_of(log)})
        assert [entry.epoch for entry in log.leader_epochs.entries if entry.epoch in told] == told


@pytest.mark.parametrize("archive", ["00-fresh-format", *SINGLE])
def test_the_directory_says_whose_it_is(archive: str) -> None:
    meta = decode_meta_properties((golden_directory(archive) / meta_properties.FILE).read_bytes())
    assert meta.cluster_id
    assert meta.node_id == NodeId(1)
    assert meta.directory_id is not None


@pytest.mark.parametrize("name", ["01-clean", "02-compacted", "07-tombstones"])
def test_the_mark_of_a_clean_stop_has_the_brokers_epoch(name: str) -> None:
    content = (golden_directory(name) / clean_shutdown.FILE).read_bytes()
    epoch = clean_shutdown.decode_clean_shutdown(content)
    assert epoch > 0
    assert clean_shutdown.encode_clean_shutdown(epoch) == content


def test_messages_of_old_formats_are_loaded(tmp_path: Path) -> None:
    directory = unpack("06-legacy", tmp_path)
    partitions = sorted(path for path in directory.iterdir() if path.is_dir())
    assert partitions
    for path in partitions:
        request = LoadRequest(str(path), TopicPartition("old", 0), LogConfig(), now_ms=NOW_MS)
        log = load_log(Volume(RealDisk(), str(directory)), request)
        assert (log.log_start_offset, log.log_end_offset) == (0, 8), path

"""Apache Kafka's own tools read every file that our engine writes, and see in it what our engine says.

`DumpLogSegments` reads logs, indexes, producer snapshots and transaction indexes. Leader epochs, which it
does not know, are read by Kafka's log classes, which load the directory as a broker would: once as after a
clean stop, trusting all files, and once as after a kill, making them anew.
"""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.differential.test_log_load import describe
from tests.differential.written_directory import NOW_MS, write_directory
from tests.java.oracle import Oracle
from tests.java.partition_logs import PartitionLogs

from ottla.records.attributes import TimestampType
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.storage.indexes.transaction_index import decode_transaction_index
from ottla.storage.log import Log
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot

_FIELD = re.compile(r"(\w+): (\S+)")


class Written(NamedTuple):
    """Our logs, closed by now, and the directory as it was before and after that."""

    logs: list[Log]
    killed: Path
    stopped: Path


@pytest.fixture
def kafka(oracle: Oracle) -> PartitionLogs:
    return PartitionLogs(oracle)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root = tmp_path_factory.mktemp("written")
    stopped, killed = root / "stopped", root / "killed"
    stopped.mkdir()
    logs = write_directory(stopped)
    shutil.copytree(stopped, killed)
    for log in logs:
        log.close()
    return Written(logs, killed, stopped)


def files_of(directory: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.suffix in suffixes)


def sections(output: str) -> dict[Path, list[str]]:
    """Return what the tool printed, by file."""
    found: dict[Path, list[str]] = {}
    lines: list[str] = []
    for line in output.splitlines():
        if line.startswith("Dumping "):
            lines = found[Path(line.removeprefix("Dumping "))] = []
        else:
            lines.append(line)
    return found


def batch_facts(batch: BatchView, position: int) -> dict[str, str]:
    """Tell of a batch what the tool tells of it."""
    header = batch.header
    horizon = header.delete_horizon_ms
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return {
        "baseOffset": str(header.base_offset),
        "lastOffset": str(header.last_offset),
        "count": str(header.count),
        "baseSequence": str(header.base_sequence),
        "lastSequence": str(header.last_sequence),
        "producerId": str(header.producer_id),
        "producerEpoch": str(header.producer_epoch),
        "partitionLeaderEpoch": str(header.leader_epoch),
        "isTransactional": str(header.is_transactional).lower(),
        "isControl": str(header.is_control).lower(),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": str(position),
        "LogAppendTime" if is_append_time else "CreateTime": str(header.max_timestamp),
        "size": str(header.size_bytes),
        "magic": "2",
        "compresscodec": header.codec.name.lower(),
        "crc": str(header.crc),
        "isvalid": "true",
    }


def test_the_directory_has_what_the_tests_are_about(written: Written) -> None:
    batches = [
        batch
        for path in files_of(written.stopped, ".log")
        for batch in iter_batches(memoryview(path.read_bytes()))
    ]
    assert {batch.codec.name for batch in batches} == {"NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"}
    assert any(batch.has_delete_horizon and batch.is_control for batch in batches)
    assert any(batch.has_delete_horizon and not batch.is_control for batch in batches)
    assert any(batch.count == 0 for batch in batches)
    assert any(batch.timestamp_type is TimestampType.LOG_APPEND_TIME for batch in batches)
    assert all(len(log.leader_epochs.entries) > 1 for log in written.logs)
    assert all(len(log.segments) > 2 for log in written.logs)
    assert written.logs[2].last_stable_offset < written.logs[2].high_watermark
    assert files_of(written.stopped, ".txnindex")
    assert len(files_of(written.stopped, ".snapshot")) > 4


@pytest.mark.parametrize("state", ["killed", "stopped"])
def test_logs_are_read_as_they_were_written(kafka: PartitionLogs, written: Written, state: str) -> None:
    directory: Path = getattr(written, state)
    logs = files_of(directory, ".log")
    output = kafka.dump(logs, "--print-data-log", "--deep-iteration")
    assert "invalid bytes" not in output
    printed = sections(output)
    assert sorted(printed) == logs
    for path, lines in printed.items():
        position = 0
        expected: list[dict[str, str]] = []
        offsets: list[int] = []
        for batch in iter_batches(memoryview(path.read_bytes())):
            expected.append(batch_facts(batch, position))
            offsets += [record.offset for record in iter_batch_records(batch)]
            position += batch.size_bytes
        assert [dict(_FIELD.findall(line)) for line in lines if line.startswith("baseOffset:")] == expected
        assert [int(line.split()[2]) for line in lines if line.startswith("| offset:")] == offsets
        assert position == path.stat().st_size


@pytest.mark.parametrize("state", ["killed", "stopped"])
def test_indexes_pass_every_check_of_the_tool(kafka: PartitionLogs, written: Written, state: str) -> None:
    indexes = files_of(getattr(written, state), ".index", ".timeindex")
    assert len(indexes) > 20
    sane = sections(kafka.dump(indexes, "--index-sanity-check"))
    for path, lines in sane.items():
        assert lines == [f"{path} {'passed sanity check' if path.stat().st_size else 'is empty'}."]
    assert sorted(sane) == indexes
    # Says nothing about an index whose every entry points at the batch it names.
    output, _, complaints = kafka.dump(indexes, "--verify-index-only").partition("Found timestamp mismatch")
    assert sections(output) == {
        path: [] if path.stat().st_size else [f"{path} is empty."] for path in indexes
    }
    # Save that it looks for a timestamp in the records, and a batch that was emptied has none left.
    emptied = {
        batch.max_timestamp
        for path in files_of(getattr(written, state) / "compacted-0", ".log")
        for batch in iter_batches(memoryview(path.read_bytes()))
        if batch.count == 0
    }
    found = re.findall(r"Index timestamp: (\d+), log timestamp: (-?\d+)", complaints)
    assert found
    assert {int(timestamp) for timestamp, _ in found} <= emptied
    assert {in_records for _, in_records in found} == {"-1"}
    assert "out of order" not in complaints
    assert "not found" not in complaints


def test_index_entries_are_printed_as_they_were_written(kafka: PartitionLogs, written: Written) -> None:
    indexes = files_of(written.stopped, ".index", ".timeindex")
    printed = sections(kafka.dump(indexes))
    entries = 0
    for path, lines in printed.items():
        entry_bytes = 8 if path.suffix == ".index" else 12
        assert len([line for line in lines if "offset:" in line]) == path.stat().st_size // entry_bytes, path
        entries += len(lines)
    assert entries > 60


def test_producer_snapshots_are_read_as_they_were_written(kafka: PartitionLogs, written: Written) -> None:
    snapshots = files_of(written.stopped, ".snapshot")
    printed = sections(kafka.dump(snapshots))
    assert sorted(printed) == snapshots
    for path, lines in printed.items():
        entries = decode_producer_snapshot(path.read_bytes())
        for entry, line in zip(entries, lines, strict=True):
            facts = dict(_FIELD.findall(line))
            first = entry.transaction_first_offset
            assert facts["producerId"] == str(entry.producer_id)
            assert facts["producerEpoch"] == str(entry.producer_epoch)
            assert facts["coordinatorEpoch"] == str(entry.coordinator_epoch)
            assert facts["currentTxnFirstOffset"] == (
                "OptionalLong.empty" if first < 0 else f"OptionalLong[{first}]"
            )
            assert facts["lastTimestamp"] == str(entry.timestamp_ms)
            assert facts.get("lastSequence", "-1") == str(entry.last_sequence)
            assert facts.get("lastOffset", "-1") == str(entry.last_offset)


def test_aborted_transactions_are_read_as_they_were_written(kafka: PartitionLogs, written: Written) -> None:
    # One without entries was put in the place of one that had some.
    indexes = [path for path in files_of(written.stopped, ".txnindex") if path.stat().st_size]
    printed = sections(kafka.dump(indexes))
    assert sorted(printed) == indexes
    for path, lines in printed.items():
        transactions = decode_transaction_index(path.read_bytes(), int(path.stem))  # type: ignore[arg-type]
        assert lines == [
            f"version: 0 producerId: {transaction.producer_id} firstOffset: {transaction.first_offset} "
            f"lastOffset: {transaction.last_offset} lastStableOffset: {transaction.last_stable_offset}"
            for transaction in transactions
        ]


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_kafka_loads_the_directory_and_finds_what_we_say(
    kafka: PartitionLogs, written: Written, tmp_path: Path, is_clean: bool
) -> None:
    source = written.stopped if is_clean else written.killed
    directory = tmp_path / "copy"
    shutil.copytree(source, directory)
    for log in written.logs:
        partition = str(log.topic_partition)
        found = kafka.open(
            directory / partition,
            now_ms=NOW_MS,
            is_clean=is_clean,
            recovery_point=log.log_end_offset if is_clean else 0,
        )
        expected = describe(log)
        # A snapshot has the newest batch of each producer, and one timestamp for all of it.
        for producer in (*found["producers"], *expected["producers"]):
            producer["batches"] = [batch[:3] for batch in producer["batches"][-1:]]
        assert found == expected, partition


def test_the_tool_would_say_so_if_an_index_were_wrong(
    kafka: PartitionLogs, written: Written, tmp_path: Path
) -> None:
    partition = tmp_path / "codecs-0"
    shutil.copytree(written.stopped / "codecs-0", partition)
    index = next(path for path in files_of(partition, ".index") if path.stat().st_size)
    content = bytearray(index.read_bytes())
    content[3] ^= 1
    index.write_bytes(content)
    assert "Mismatches" in kafka.dump([index], "--verify-index-only")

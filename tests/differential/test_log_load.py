"""Apache Kafka's own log classes and our engine, each on a copy of the same directory, find the same in it.

The directories are those that Apache Kafka left: stopped, killed and torn. Compared is everything that a
broker goes by afterwards, and after closing, the files themselves.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.golden.directories import unpack
from tests.golden.test_log_directories import NOW_MS, SINGLE, load_all
from tests.java.oracle import Oracle
from tests.java.partition_logs import PartitionLogs

from ottla.storage.log import Log
from ottla.storage.log_dirs import clean_shutdown
from ottla.storage.log_dirs.checkpoints import LOG_START_FILE, RECOVERY_POINT_FILE, decode_offset_checkpoint
from ottla.storage.producers.producer_snapshot import ProducerSnapshotEntry, decode_producer_snapshot

# Not the leader epochs: Kafka writes them later, and later never comes here.
# Of the cluster one directory that was stopped, and the two that were killed.
ROOTS = [*SINGLE, "04-cluster/node1-a", "04-cluster/node2-a", "04-cluster/node2-b"]
COMPARED_FILES = (".log", ".index", ".timeindex", ".txnindex")


@pytest.fixture
def kafka(oracle: Oracle) -> PartitionLogs:
    return PartitionLogs(oracle)


def describe(log: Log) -> dict[str, Any]:
    """Tell of our log what `PartitionLogs` tells of Kafka's."""
    return {
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "last_stable_offset": log.last_stable_offset,
        "segments": [[segment.base_offset, segment.size] for segment in log.segments],
        "leader_epochs": [list(entry) for entry in log.leader_epochs.entries],
        "aborted": [list(found) for segment in log.segments for found in segment.aborted()],
        "producers": [
            {
                "producer_id": producer_id,
                "epoch": producer.epoch,
                "coordinator_epoch": producer.coordinator_epoch,
                "timestamp_ms": producer.timestamp_ms,
                "transaction_first_offset": producer.transaction_first_offset,
                "batches": [list(batch) for batch in producer.batches],
            }
            for producer_id, producer in sorted(log.producer_state.producers.items())
        ],
    }


def files_in(directory: Path) -> dict[str, bytes]:
    """Return the files by name. An empty index says as much as none."""
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in COMPARED_FILES and path.stat().st_size
    }


def _producers(path: Path) -> list[ProducerSnapshotEntry]:
    # Kafka writes producers in the order of a hash map.
    return sorted(decode_producer_snapshot(path.read_bytes()))


@pytest.mark.parametrize("root", ROOTS)
def test_kafkas_loader_and_ours_find_the_same(kafka: PartitionLogs, tmp_path: Path, root: str) -> None:
    archive, _, node = root.partition("/")
    theirs = unpack(archive, tmp_path / "theirs") / node
    ours = unpack(archive, tmp_path / "ours") / node
    recovery_points, log_starts = (
        decode_offset_checkpoint((theirs / name).read_bytes())
        for name in (RECOVERY_POINT_FILE, LOG_START_FILE)
    )
    is_clean = (theirs / clean_shutdown.FILE).exists()
    for log, _ in load_all(ours, root):
        partition = log.topic_partition
        told = kafka.open(
            theirs / str(partition),
            now_ms=NOW_MS,
            is_clean=is_clean,
            recovery_point=recovery_points.get(partition, 0),
            log_start_offset=log_starts.get(partition, 0),
        )
        log.update_high_watermark(log.log_end_offset)
        found = describe(log)
        # We read the last segment after a kill even if all of it was synced, and so may know more batches,
        # and their own timestamps, where a snapshot has the one of the producer.
        for ours_known, theirs_known in zip(found["producers"], told["producers"], strict=True):
            count = len(theirs_known["batches"])
            ours_known["batches"] = [batch[:3] for batch in ours_known["batches"][-count:]] if count else []
            theirs_known["batches"] = [batch[:3] for batch in theirs_known["batches"]]
        # Segments wholly below the log start go when we load. Kafka lets its retention do it.
        first = log.segments[0].base_offset
        told["segments"] = [segment for segment in told["segments"] if segment[0] >= first]
        assert found == told, partition
        log.close()
        their_files = files_in(theirs / str(partition))
        kept = {name: content for name, content in their_files.items() if int(name[:20]) >= first}
        assert files_in(ours / str(partition)) == kept, partition
        # Of the snapshots only the last one counts. Which older ones are still there differs.
        snapshot = f"{partition}/{log.log_end_offset:020d}.snapshot"
        if (theirs / snapshot).exists():
            assert _producers(ours / snapshot) == _producers(theirs / snapshot), partition

"""Starting after a crash: how long 1,000 partitions with 2 GiB take to load, beside Apache Kafka 4.3.1.

Apache Kafka makes the directory and its empty topic, Ottla fills it and is ended by force. Nothing is below
a recovery point, so every batch of every log has to be read and its checksum verified. Then both start on
copies of it, in turn, with two recovery threads or processes, and all files in the page cache. Of Apache
Kafka its own figure counts, from its log; of Ottla the time from planning to the last loaded log.

    python -m benchmarks.log_recovery [partitions] [MiB for each]
"""

import shutil
import sys
import tempfile
from asyncio import Future
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.kafka_recovery import RECOVERY_THREADS, load, make_directory
from benchmarks.log_world import NOW_MS, append, make_batch, target_directory
from benchmarks.measure import Noise, ratio_of, verdict

from ottla.model.ids import TopicPartition
from ottla.runtime.disk import RealDisk
from ottla.runtime.poller import ServingLoop
from ottla.runtime.real_world import real_world
from ottla.runtime.recovery import LoadingLogs
from ottla.storage.config import LogConfig
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs.opening import open_directory
from ottla.storage.volume import Volume

GOAL: Final = 1.0
TARGET: Final = 3.0

_TOPIC: Final = "recovery"
_BATCH_BYTES: Final = 16 << 10
_RUNS: Final = 3


def measure(partitions: int = 1_000, partition_bytes: int = 2 << 20) -> str:
    """Load copies of one directory with both, in turn."""
    root = Path(tempfile.mkdtemp(prefix="bench-recovery-", dir=target_directory()))
    try:
        original, work = root / "ottla", root / "work"
        work.mkdir()
        make_directory(original, work, _TOPIC, partitions)
        _fill(original, partitions, partition_bytes)
        copy = root / "kafka"
        shutil.copytree(original, copy)
        noise = Noise()
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(_RUNS):
            ours.append(_load_ours(original, partitions))
            loaded = load(copy, work)
            assert loaded.logs >= partitions, f"Apache Kafka loaded {loaded.logs} logs"
            theirs.append(loaded.milliseconds / 1000)
        ratio = ratio_of(theirs, ours)
        return (
            f"recovery of {partitions:,} partitions with {partitions * partition_bytes / (1 << 30):.1f} GiB: "
            f"{median(ours):.1f} s beside Apache Kafka's {median(theirs):.1f} s, {ratio} times as fast; "
            f"goal >= {GOAL}: {verdict(ratio.middle >= GOAL)}, "
            f"target {TARGET}: {verdict(ratio.middle >= TARGET)}; noise {noise.share():.0%}"
        )
    finally:
        shutil.rmtree(root)


def _open_logs(path: Path) -> list[Log]:
    volume = Volume(RealDisk(), str(path))
    directory = open_directory(volume)
    try:
        plan = directory.plan_load(lambda _topic: LogConfig(), NOW_MS)
        return _load(volume, plan.loads)
    finally:
        directory.release()


def _load(volume: Volume, requests: Sequence[LoadRequest]) -> list[Log]:
    loop = ServingLoop()
    world = real_world(loop)
    loaded: Future[list[Log]] = loop.create_future()
    LoadingLogs(world, volume, requests, loaded.set_result, loaded.set_exception, RECOVERY_THREADS).begin()
    try:
        return loop.run_until_complete(loaded)
    finally:
        world.workers.close()
        loop.close()


def _load_ours(path: Path, partitions: int) -> float:
    start = perf_counter()
    logs = _open_logs(path)
    elapsed = perf_counter() - start
    assert len(logs) == partitions, f"loaded {len(logs)} logs"
    assert all(log.log_end_offset > 0 for log in logs), "the logs are not empty"
    return elapsed


def _fill(path: Path, partitions: int, partition_bytes: int) -> None:
    """Append to every log, and stop without a word."""
    logs = {log.topic_partition: log for log in _open_logs(path)}
    for number in range(partitions):
        log = logs[TopicPartition(_TOPIC, number)]
        sequence = 0
        while log.active_segment.size + _BATCH_BYTES <= partition_bytes:
            append(log, make_batch(_BATCH_BYTES, producer_id=number, base_sequence=sequence))
            sequence += 1
        log.active_segment.file.close()


def main() -> None:
    arguments = [int(argument) for argument in sys.argv[1:]]
    partitions = arguments[0] if arguments else 1_000
    mebibytes = arguments[1] if len(arguments) > 1 else 2
    print(measure(partitions, mebibytes << 20), flush=True)


if __name__ == "__main__":
    main()

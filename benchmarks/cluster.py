"""Three nodes against three brokers of Apache Kafka 4.3.1, side by side: `make bench WHAT=cluster`.

Both clusters run all the time and take turns, block by block, on the same work; a ratio is the median of the
ratios of neighbouring blocks. CPU is that of all brokers' processes together, user and kernel. Topics have
three replicas, and producers use acks=all. Apache Kafka acknowledges what is in memory. Ottla is measured so
(`ottla.acks.all.sync=false`), and with what it does by default: on disk, on all in-sync replicas.
"""

import argparse
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.measure import Noise, percentile, ratio_of
from confluent_kafka import Producer
from tests.support.mixed_cluster import ClusterNode, MixedCluster

JAVA_OPTIONS: Final = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC")
PARTITIONS: Final = 6
RECORD: Final = bytes(range(256)) * 4
BLOCKS: Final = 5
MEMORY, DISK = "memory", "disk"
CONFIGS: Final = {MEMORY: {"ottla.acks.all.sync": "false"}, DISK: {}}


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="how much work a block does")
    parser.add_argument("--failovers", action="store_true", help="only kill, stop and restart nodes of Ottla")
    given = parser.parse_args()
    scale = given.scale
    root = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    ours = MixedCluster(root / "ottla", "ooo", (1, 2, 3), is_checked=False)
    theirs = MixedCluster(root / "apache", "aaa", (1, 2, 3), java_options=JAVA_OPTIONS, is_checked=False)
    try:
        if given.failovers:
            with ours:
                ours.create_topic(MEMORY, PARTITIONS, CONFIGS[MEMORY])
                _disturb(ours, "Ottla", kills=20, pauses=3, seconds=6)
            return
        _print_start(ours, "Ottla")
        _print_start(theirs, "Apache Kafka")
        with ours, theirs:
            _prepare(ours, theirs)
            _throughput(ours, theirs, round(20_000 * scale))
            _latency(ours, theirs, round(300 * scale))
            _memory(ours, theirs)
            _idle(ours, theirs, 10 * scale)
            _disturb(ours, "Ottla", kills=20, pauses=3, seconds=6)
            _disturb(theirs, "Apache Kafka", kills=2, pauses=2, seconds=15)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _prepare(ours: MixedCluster, theirs: MixedCluster) -> None:
    for name, configs in CONFIGS.items():
        ours.create_topic(name, PARTITIONS, configs)
    theirs.create_topic(MEMORY, PARTITIONS)
    # The code of a JVM is slow until it was compiled.
    for _ in range(3):
        _write(theirs, MEMORY, 20_000)
    for topic in CONFIGS:
        _write(ours, topic, 5_000)


def _producer(cluster: MixedCluster, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, **settings})


def _write(cluster: MixedCluster, topic: str, count: int) -> None:
    failures: list[object] = []
    producer = _producer(cluster, **{"linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    for number in range(count):
        producer.produce(
            topic,
            RECORD,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(300) == 0, "not all was acknowledged"
    assert not failures, failures[0]


def _cpu_seconds(cluster: MixedCluster) -> float:
    return sum(node.cpu_seconds() for node in cluster)


def _cpu_of(cluster: MixedCluster, work: Callable[[], object]) -> float:
    before = _cpu_seconds(cluster)
    work()
    return _cpu_seconds(cluster) - before


def _throughput(ours: MixedCluster, theirs: MixedCluster, count: int) -> None:
    noise = Noise()
    cpu: dict[str, list[float]] = {MEMORY: [], DISK: [], "theirs": []}
    for _ in range(BLOCKS):
        for topic in CONFIGS:
            cpu[topic].append(_cpu_of(ours, lambda topic=topic: _write(ours, topic, count)))  # type: ignore[misc]
        cpu["theirs"].append(_cpu_of(theirs, lambda: _write(theirs, MEMORY, count)))
    megabytes = count * len(RECORD) / 1e6
    share = noise.share(sum(map(sum, cpu.values())))
    for topic in CONFIGS:
        ratio = ratio_of(cpu[topic], cpu["theirs"])
        print(
            f"CPU of all brokers per MB, in {topic:<7} {1000 * min(cpu[topic]) / megabytes:>7.1f} ms, "
            f"Kafka {1000 * min(cpu['theirs']) / megabytes:.1f} ms, times Kafka's {ratio} (noise {share:.0%})"
        )


def _times(cluster: MixedCluster, topic: str, count: int) -> list[float]:
    producer = _producer(cluster, **{"linger.ms": 0})
    times = []
    for number in range(count):
        start = time.perf_counter()
        producer.produce(topic, RECORD, partition=number % PARTITIONS)
        producer.flush(60)
        times.append(1000 * (time.perf_counter() - start))
    return times


def _latency(ours: MixedCluster, theirs: MixedCluster, count: int) -> None:
    times: dict[str, list[float]] = {"Ottla, in memory": [], "Ottla, on disk": [], "Apache Kafka": []}
    for _ in range(BLOCKS):
        times["Ottla, in memory"] += _times(ours, MEMORY, count // BLOCKS)
        times["Ottla, on disk"] += _times(ours, DISK, count // BLOCKS)
        times["Apache Kafka"] += _times(theirs, MEMORY, count // BLOCKS)
    for name, values in times.items():
        values.sort()
        middle, late = percentile(values, 0.5), percentile(values, 0.99)
        print(f"one write after the other, {name:<17} p50 {middle:>6.1f} ms  p99 {late:>6.1f} ms")


def _memory(ours: MixedCluster, theirs: MixedCluster) -> None:
    for cluster, name in ((ours, "Ottla"), (theirs, "Apache Kafka")):
        megabytes = [node.resident_bytes() / 1e6 for node in cluster]
        print(f"memory of the brokers, {name:<14} {', '.join(f'{one:.0f}' for one in megabytes)} MB")


def _idle(ours: MixedCluster, theirs: MixedCluster, seconds: float) -> None:
    for cluster in (ours, theirs):
        cluster.create_topic("idle", 1000)
        cluster.wait_for_in_sync("idle", 3)
    time.sleep(5)
    for cluster, name in ((ours, "Ottla"), (theirs, "Apache Kafka")):
        cpu = _cpu_of(cluster, lambda: time.sleep(seconds))
        print(f"1,000 idle partitions with 3 replicas, {name:<14} {100 * cpu / seconds:>6.1f} % of a core")


def _print_start(cluster: MixedCluster, name: str) -> None:
    """Print how long a fresh cluster takes to serve. Its directories are formatted first."""
    started = time.monotonic()
    with cluster:
        print(
            f"start of a fresh cluster, {name:<14} {time.monotonic() - started:>6.1f} s, with the formatting"
        )


def _disturb(cluster: MixedCluster, name: str, kills: int, pauses: int, seconds: float) -> None:
    """Kill, stop and restart one node after the other, and print how long writes had to wait."""
    _failovers(cluster, name, "kill -9", kills, seconds)
    # A process that is stopped has not gone. It is noticed by its session, which ends after 9 s.
    _failovers(cluster, name, "SIGSTOP", pauses, seconds + 12)
    started = time.monotonic()
    for node in cluster:
        node.stop()
        _come_back(cluster, node)
    print(f"rolling restart of three nodes, {name:<14} {time.monotonic() - started:>6.1f} s")


def _come_back(cluster: MixedCluster, node: ClusterNode) -> None:
    node.start()
    cluster.wait_for_brokers(3)
    cluster.wait_for_in_sync(MEMORY, 3)


def _failovers(cluster: MixedCluster, name: str, how: str, count: int, seconds: float) -> None:
    pauses: list[float] = []
    for number in range(count):
        node = cluster[1 + number % 3]
        if how == "SIGSTOP":
            pauses.append(_failover(cluster, partial(os.kill, node.pid, signal.SIGSTOP), seconds))
            # It could go on, but the next round starts from a new process.
            os.kill(node.pid, signal.SIGCONT)
        else:
            pauses.append(_failover(cluster, node.kill, seconds))
        node.kill()
        _come_back(cluster, node)
        print(f"  {how} of node {node.number}, {name}: {pauses[-1]:.2f} s", flush=True)
    pauses.sort()
    print(
        f"{how} to the next write, {name:<14} median {percentile(pauses, 0.5):>6.2f} s, "
        f"p99 {percentile(pauses, 0.99):.2f} s, longest {pauses[-1]:.2f} s of {count}",
        flush=True,
    )


def _failover(cluster: MixedCluster, disturb: Callable[[], None], seconds: float) -> float:
    """Return how long the longest pause in writes to any partition is when a broker is disturbed."""
    acknowledged: dict[int, list[float]] = {number: [] for number in range(PARTITIONS)}
    # Each partition has its own, or one that waits would let the others wait, too.
    waiting = dict.fromkeys(range(PARTITIONS), 0)

    def delivered(error: object, message: object) -> None:
        assert error is None, error
        number = message.partition()  # type: ignore[attr-defined]
        waiting[number] -= 1
        acknowledged[number].append(time.monotonic())

    # The default of 60 s would be the client's time to notice that a broker does not answer.
    patience = {"socket.timeout.ms": 1000, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}
    producer = _producer(cluster, **{"linger.ms": 1, **patience})

    def write_until(deadline: float) -> None:
        while time.monotonic() < deadline:
            for number in waiting:
                while waiting[number] < 10:
                    producer.produce(MEMORY, RECORD, partition=number, on_delivery=delivered)
                    waiting[number] += 1
            producer.poll(0.005)

    write_until(time.monotonic() + 2)
    killed = time.monotonic()
    disturb()
    write_until(killed + seconds)
    # A pause longer than that ends with the flush.
    assert producer.flush(120) == 0, "writes are still waiting"
    return max(next(one for one in times if one > killed + 0.05) - killed for times in acknowledged.values())


if __name__ == "__main__":
    main()

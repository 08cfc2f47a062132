"""What mirroring costs: `ottla mirror` in both ways and MirrorMaker 2, from one source to equal targets.

    python -m benchmarks.mirror [--megabytes 200] [--rounds 3]

All copy the same topic from one Ottla node to another. Measured is the CPU time of the mirror and of the
target together, from the start of the mirror until the copy is complete, less what either takes to start:
that is measured with a topic that is empty. They take turns. MirrorMaker 2 has its defaults, so that it
copies at least once. In its way, `ottla mirror` copies exactly once.
"""

import argparse
import asyncio
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Noise, ratio_of
from tests.java.mirror_maker import mirror_classpath
from tests.support.ottla_node import OttlaNode, ottla_command

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition

_THEIRS = "MirrorMaker 2"
_PARTITIONS = 4
_RECORD_BYTES = 1000
_TICKS_PER_SECOND = 100


def main() -> None:
    """Measure, and print a line for each mirror and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    count = chosen.megabytes * 1_000_000 // _RECORD_BYTES
    noise = Noise()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with OttlaNode(root / "source") as source:
            asyncio.run(_fill(source.bootstrap, "data", count))
            asyncio.run(_fill(source.bootstrap, "empty", _PARTITIONS))
            contenders = {"exact copies": _ours, "in its way": _ours_in_its_way, _THEIRS: _mirror_maker}
            rates: dict[str, list[float]] = {who: [] for who in contenders}
            for number in range(chosen.rounds):
                for who, commands in contenders.items():
                    spent = [
                        _copy(root / f"{who}-{number}-{topic}", source.bootstrap, topic, expected, commands)
                        for topic, expected in (("empty", _PARTITIONS), ("data", count))
                    ]
                    rates[who].append(chosen.megabytes / max(spent[1] - spent[0], 0.01))
                    rate = f"{rates[who][-1]:8.0f} MB per CPU second"
                    print(f"{who:14} {rate} (start: {spent[0]:.1f} s)", flush=True)
    theirs = rates.pop(_THEIRS)
    for who, ours in rates.items():
        print(f"ottla mirror, {who}: {ratio_of(ours, theirs)} times as much per CPU second")
    print(f"noise {noise.share():.0%}")


async def _fill(bootstrap: str, topic: str, count: int) -> None:
    async with Admin(bootstrap) as admin:
        await admin.topics.create(topic, partitions=_PARTITIONS)
    async with Producer(bootstrap, linger_ms=20, batch_size=65_536) as producer:
        value = bytes(_RECORD_BYTES)
        for number in range(count):
            await producer.send(topic, value, partition=number % _PARTITIONS)


def _copy(root: Path, source: str, topic: str, count: int, command_for: object) -> float:
    """Return the CPU seconds that the mirror and the target took until all records are there."""
    with OttlaNode(root) as target:
        before = _cpu_s(target.pid)
        command, copy = command_for(root, source, target.bootstrap, topic)  # type: ignore[operator]
        with (root / "mirror.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            asyncio.run(_wait(target.bootstrap, copy, count))
            return _cpu_s(process.pid) + _cpu_s(target.pid) - before
        finally:
            process.terminate()
            process.wait(60)


def _ours(_root: Path, source: str, target: str, topic: str) -> tuple[list[str], str]:
    return ottla_command("mirror", "run", "--source", source, "--bootstrap", target, "--topics", topic), topic


def _ours_in_its_way(root: Path, source: str, target: str, topic: str) -> tuple[list[str], str]:
    return ottla_command("mirror", "run", str(_properties(root, source, target, topic))), f"A.{topic}"


def _mirror_maker(root: Path, source: str, target: str, topic: str) -> tuple[list[str], str]:
    file = _properties(root, source, target, topic)
    main_class = "org.apache.kafka.connect.mirror.MirrorMaker"
    return ["java", "-Xmx512m", "-cp", mirror_classpath(), main_class, str(file)], f"A.{topic}"


def _properties(root: Path, source: str, target: str, topic: str) -> Path:
    file = root / "mm2.properties"
    once = ("checkpoints", "heartbeats", "offset-syncs")
    stored = ("offset.storage", "status.storage", "config.storage")
    file.write_text(
        f"clusters=A,B\nA.bootstrap.servers={source}\nB.bootstrap.servers={target}\nA->B.enabled=true\n"
        f"A->B.topics={topic}\nreplication.factor=1\ntasks.max=2\n"
        + "".join(f"{name}.topic.replication.factor=1\n" for name in once)
        + "".join(f"{name}.replication.factor=1\n" for name in stored)
    )
    return file


async def _wait(bootstrap: str, topic: str, count: int) -> None:
    deadline = time.monotonic() + 600
    partitions = [TopicPartition(topic, number) for number in range(_PARTITIONS)]
    async with Admin(bootstrap) as admin:
        while time.monotonic() < deadline:
            try:
                ends = (await admin.offsets.latest(partitions)).check()
                if sum(found.offset for found in ends.values()) >= count:
                    return
            except ClientError:
                pass
            await asyncio.sleep(0.2)
    raise TimeoutError(f"{topic} was not copied in time")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


if __name__ == "__main__":
    main()

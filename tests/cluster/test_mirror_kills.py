"""Between Apache Kafka and Ottla, and to a cluster of three: whatever is killed, copies are right.

`make crash WHAT=mirrors` kills more often than the usual run of the tests.
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.cli.typing import succeed
from tests.clients.served_topics import make_topic
from tests.cluster.mirrored import are_equal, commit, committed, ends, read_values, rows_are_equal, until
from tests.java.apache_kafka import ApacheKafka
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mirror_process import MirrorProcess
from tests.support.mixed_cluster import MixedCluster
from tests.support.ottla_node import OttlaNode

from ottla.client.consumer import TopicPartition
from ottla.client.errors import ClientError

KILLS = int(os.environ.get("MIRROR_KILLS", "1"))
"""How often each process is killed."""
PARTITIONS = 2
COPIES = {"exact": "payments", "mirror-maker": "A.payments"}


@contextmanager
def loaded(bootstrap: str) -> Iterator[AcknowledgedLoad]:
    """Write as long as the block takes, and see in the end that the source has all that it acknowledged."""
    load = AcknowledgedLoad(bootstrap, "payments", PARTITIONS)
    try:
        yield load
        load.wait_for(1000)
    except BaseException:
        load.give_up()
        raise
    load.finish()
    load.check(bootstrap)


@dataclass(frozen=True)
class Mirrored:
    """A mirror at work, and the clusters on both sides."""

    source: str
    target: str
    way: str
    mirror: MirrorProcess
    load: AcknowledgedLoad

    def kill_by_turns(self, kills: Sequence[Callable[[], None]]) -> None:
        """Kill this and that in an order drawn by chance, each time after the copy has grown."""
        turns = [kill for kill in kills for _ in range(KILLS)]
        random.shuffle(turns)
        for kill in turns:
            self._wait_for_more()
            kill()
        self._wait_for_more()

    def _wait_for_more(self) -> None:
        """Wait until records come to all copies."""
        before: dict[TopicPartition, int] = {}

        def has_grown() -> bool:
            now = ends_of(self.target, COPIES[self.way])
            before.update({where: now[where] for where in now if where not in before})
            return all(now[where] > before[where] for where in now)

        until(has_grown, self._explain)

    def _explain(self) -> str:
        """Say how far all of them are."""
        sides = ((self.source, "payments"), (self.target, COPIES[self.way]))
        found = []
        for bootstrap, topic in sides:
            try:
                found.append(f"{topic} ends at {list(ends_of(bootstrap, topic).values())}.")
            except ClientError as error:
                found.append(f"{topic} has no ends: {error}.")
        return " ".join((*found, self.load.describe(), self.mirror.describe()))


def ends_of(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    """Return where the partitions of a topic end."""
    return asyncio.run(ends(bootstrap, [TopicPartition(topic, number) for number in range(PARTITIONS)]))


def killing(node: OttlaNode | ApacheKafka) -> Callable[[], None]:
    """Return what kills a node and starts it again."""

    def kill() -> None:
        node.kill()
        node.start()

    return kill


def killing_mirror(mirror: MirrorProcess) -> Callable[[], None]:
    """Return what kills a mirror and starts it again."""

    def kill() -> None:
        mirror.end(signal.SIGKILL)
        mirror.start()

    return kill


def mirror_of(root: Path, source: str, target: str, way: str) -> MirrorProcess:
    """Return a mirror of the topic `payments`."""
    named = ("--source-name", "A", "--target-name", "B", "--topics", "payments", "--way", way)
    return MirrorProcess(root, source, target, *named)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.thorough(guard="tests/cluster/test_mirror.py::test_whatever_is_killed_the_copy_is_equal")
def test_a_copy_of_apache_kafka_is_right_whatever_is_killed(tmp_path: Path, way: str) -> None:
    with ApacheKafka(tmp_path / "source") as source, OttlaNode(tmp_path / "target") as target:
        make_topic(source.bootstrap, "payments", PARTITIONS)
        mirror = mirror_of(tmp_path, source.bootstrap, target.bootstrap, way)
        with mirror:
            with loaded(source.bootstrap) as load:
                kills = [killing(source), killing(target), killing_mirror(mirror)]
                Mirrored(source.bootstrap, target.bootstrap, way, mirror, load).kill_by_turns(kills)
            check_copies(source.bootstrap, target.bootstrap, way)
        if way == "exact":
            # Every acknowledged record is in the copy, at the offset that its producer was told.
            load.check(target.bootstrap)


@pytest.mark.thorough(
    guard="tests/cluster/test_mirror_makers_way.py::test_whatever_is_killed_every_record_comes_once"
)
def test_a_copy_in_apache_kafka_is_right_whatever_is_killed(tmp_path: Path) -> None:
    way = "mirror-maker"
    with OttlaNode(tmp_path / "source") as source, ApacheKafka(tmp_path / "target") as target:
        make_topic(source.bootstrap, "payments", PARTITIONS)
        mirror = mirror_of(tmp_path, source.bootstrap, target.bootstrap, way)
        with mirror:
            with loaded(source.bootstrap) as load:
                kills = [killing(source), killing(target), killing_mirror(mirror)]
                Mirrored(source.bootstrap, target.bootstrap, way, mirror, load).kill_by_turns(kills)
            check_copies(source.bootstrap, target.bootstrap, way)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.thorough(guard="tests/cluster/test_mirror.py::test_whatever_is_killed_the_copy_is_equal")
def test_a_copy_in_three_nodes_is_right_while_leaders_are_killed(tmp_path: Path, way: str) -> None:
    with (
        OttlaNode(tmp_path / "source") as source,
        MixedCluster(tmp_path / "target", "ooo", controllers=(1, 2, 3)) as target,
    ):
        make_topic(source.bootstrap, "payments", PARTITIONS)

        def kill(number: int) -> None:
            target[number].kill()
            target[number].start()
            target.wait_for_brokers(3)

        mirror = mirror_of(tmp_path, source.bootstrap, target.bootstrap, way)
        with mirror:
            with loaded(source.bootstrap) as load:
                numbers = random.sample((1, 2, 3), min(KILLS, 3))
                kills: list[Callable[[], None]] = [partial(kill, number) for number in numbers]
                kills.append(killing_mirror(mirror))
                Mirrored(source.bootstrap, target.bootstrap, way, mirror, load).kill_by_turns(kills)
            check_copies(source.bootstrap, target.bootstrap, way)


def check_copies(source: str, target: str, way: str) -> None:
    """Wait until all partitions are equal: byte by byte, or record by record."""
    for number in range(PARTITIONS):
        where = TopicPartition("payments", number)
        if way == "exact":
            until(partial(are_equal, source, target, where))
        else:
            until(partial(rows_are_equal, source, where, target, TopicPartition(COPIES[way], number)))


@pytest.mark.thorough(guard="tests/cluster/test_mirror.py::test_a_topic_of_ottla_is_copied_offset_by_offset")
def test_consumers_change_to_an_exact_copy_without_a_gap_or_a_repeat(tmp_path: Path) -> None:
    where = TopicPartition("payments", 0)
    source = OttlaNode(tmp_path / "source")
    source.start()
    with OttlaNode(tmp_path / "target") as target:
        make_topic(source.bootstrap, "payments", PARTITIONS)
        mirror = mirror_of(tmp_path, source.bootstrap, target.bootstrap, "exact")
        with mirror:
            with loaded(source.bootstrap) as load:
                load.wait_for(3000)
                mirror.end(signal.SIGKILL)
                mirror.start()
            check_copies(source.bootstrap, target.bootstrap, "exact")
            written = asyncio.run(read_values(source.bootstrap, where, 0))
            read_before = written[: len(written) // 3]
            asyncio.run(commit(source.bootstrap, "readers", where, len(read_before)))
            until(lambda: asyncio.run(committed(target.bootstrap, "readers", where)) == len(read_before))
            source.kill()
        succeed("mirror", "failover", "--all", "--yes", bootstrap=target.bootstrap)
        offset = asyncio.run(committed(target.bootstrap, "readers", where))
        assert offset is not None
        assert read_before + asyncio.run(read_values(target.bootstrap, where, offset)) == written

"""Between Apache Kafka and Ottla, and to a cluster of three: whatever is killed, copies are right.

`make mirror-kills` kills more often than the usual run of the tests.
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


def kill_by_turns(kills: Sequence[Callable[[], None]], target: str, way: str) -> None:
    """Kill this and that in an order drawn by chance, each time after the copy has grown."""
    turns = [kill for kill in kills for _ in range(KILLS)]
    random.shuffle(turns)
    copies = [TopicPartition(COPIES[way], number) for number in range(PARTITIONS)]
    for kill in turns:
        wait_for_more(target, copies)
        kill()
    wait_for_more(target, copies)


def wait_for_more(bootstrap: str, copies: Sequence[TopicPartition]) -> None:
    """Wait until records come to all copies."""
    before: dict[TopicPartition, int] = {}

    def has_grown() -> bool:
        now = asyncio.run(ends(bootstrap, copies))
        before.update({where: now[where] for where in copies if where not in before})
        return all(now[where] > before[where] for where in copies)

    until(has_grown)


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
def test_a_copy_of_apache_kafka_is_right_whatever_is_killed(tmp_path: Path, way: str) -> None:
    with ApacheKafka(tmp_path / "source") as source, OttlaNode(tmp_path / "target") as target:
        make_topic(source.bootstrap, "payments", PARTITIONS)
        mirror = mirror_of(tmp_path, source.bootstrap, target.bootstrap, way)
        with mirror:
            with loaded(source.bootstrap) as load:
                kills = [killing(source), killing(target), killing_mirror(mirror)]
                kill_by_turns(kills, target.bootstrap, way)
            check_copies(source.bootstrap, target.bootstrap, way)
        if way == "exact":
            # Every acknowledged record is in the copy, at the offset that its producer was told.
            load.check(target.bootstrap)


def test_a_copy_in_apache_kafka_is_right_whatever_is_killed(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "source") as source, ApacheKafka(tmp_path / "target") as target:
        make_topic(source.bootstrap, "payments", PARTITIONS)
        mirror = mirror_of(tmp_path, source.bootstrap, target.bootstrap, "mirror-maker")
        with mirror:
            with loaded(source.bootstrap):
                kills = [killing(source), killing(target), killing_mirror(mirror)]
                kill_by_turns(kills, target.bootstrap, "mirror-maker")
            check_copies(source.bootstrap, target.bootstrap, "mirror-maker")


@pytest.mark.parametrize("way", COPIES)
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
            with loaded(source.bootstrap):
                numbers = random.sample((1, 2, 3), min(KILLS, 3))
                kills: list[Callable[[], None]] = [partial(kill, number) for number in numbers]
                kills.append(killing_mirror(mirror))
                kill_by_turns(kills, target.bootstrap, way)
            check_copies(source.bootstrap, target.bootstrap, way)


def check_copies(source: str, target: str, way: str) -> None:
    """Wait until all partitions are equal: byte by byte, or record by record."""
    for number in range(PARTITIONS):
        where = TopicPartition("payments", number)
        if way == "exact":
            until(partial(are_equal, source, target, where))
        else:
            until(partial(rows_are_equal, source, where, target, TopicPartition(COPIES[way], number)))


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

"""Groups of real members (librdkafka) that grow, shrink, restart and are killed: no record is skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.group_traffic import Traffic
from tests.support.ottla_node import OttlaNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path_factory.mktemp("groups"), {"group.initial.rebalance.delay.ms": "0"}) as node:
        yield node


@pytest.fixture
def traffic(node: OttlaNode, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Traffic]:
    topic = request.node.name.translate(str.maketrans("[]- ", "...."))[:60]
    traffic = Traffic(node.bootstrap, topic, tmp_path)
    yield traffic
    traffic.kill_all()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_grows_and_shrinks_while_records_flow(traffic: Traffic, strategy: str) -> None:
    with traffic.flowing():
        first = traffic.start_member(partition_assignment_strategy=strategy)
        traffic.wait_for_work(first)
        second = traffic.start_member(partition_assignment_strategy=strategy)
        third = traffic.start_member(partition_assignment_strategy=strategy)
        for member in (second, third, first):
            traffic.wait_for_work(member)
        traffic.stop_member(second)
        traffic.stop_member(first)
        traffic.wait_for_work(third)
    traffic.drain()
    traffic.stop_all()
    repeated = traffic.judge()
    if strategy == "range":
        assert repeated == 0, "who gives its partitions back has committed everything"


def test_static_members_restart_without_disturbing_others(traffic: Traffic) -> None:
    with traffic.flowing():
        first = traffic.start_member(group_instance_id="one")
        second = traffic.start_member(group_instance_id="two")
        for member in (first, second):
            traffic.wait_for_work(member)
        assigned = assignments(traffic, first)
        traffic.stop_member(second)
        again = traffic.start_member(group_instance_id="two")
        traffic.wait_for_work(again)
        traffic.wait_for_work(first)
        assert assignments(traffic, first) == assigned, "the other one was not told of the restart"
    traffic.drain()
    traffic.stop_all()
    assert traffic.judge() == 0


def assignments(traffic: Traffic, member: str) -> int:
    return len([note for note in traffic.notes(member) if note.what == "assigned"])


@pytest.mark.thorough(
    guard="tests/clients/test_consumer_groups.py::test_members_and_broker_are_killed_and_nothing_is_skipped"
)
def test_members_and_broker_are_killed_and_nothing_is_skipped(traffic: Traffic, node: OttlaNode) -> None:
    with traffic.flowing():
        first, second = traffic.start_member(), traffic.start_member()
        for member in (first, second):
            traffic.wait_for_work(member)
        traffic.kill_member(first)
        third = traffic.start_member()
        node.kill()
        node.start()
        for member in (second, third):
            traffic.wait_for_work(member)
        node.kill()
        traffic.kill_member(second)
        node.start()
        traffic.wait_for_work(third)
    traffic.drain()
    traffic.stop_all()
    traffic.judge()

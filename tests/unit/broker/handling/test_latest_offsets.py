"""The lag of a share group is counted from ends that come from wherever partitions are led."""

from types import SimpleNamespace
from typing import Any

from ottla.broker.handling.latest_offsets import find_latest_offsets
from ottla.model.uuid import Uuid
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

ORDERS, AUDITS = Uuid(b"the id of orders"), Uuid(b"the id of audits")


class World:
    """Node 1 of a cluster, and what it asks of others."""

    node_id = 1

    def __init__(self, **leaders: dict[int, int]) -> None:
        ids = {"orders": ORDERS, "audits": AUDITS}
        self.topics = {
            ids[name]: SimpleNamespace(
                name=name,
                partitions={number: SimpleNamespace(leader=leader) for number, leader in some.items()},
            )
            for name, some in leaders.items()
        }
        self.led: dict[tuple[Uuid, int], Any] = {}
        self.asked: list[tuple[int, dict[str, list[int]]]] = []
        self.answered: list[Any] = []
        broker = SimpleNamespace(
            node_id=1,
            partitions=SimpleNamespace(by_key=self.led),
            image=SimpleNamespace(topics=SimpleNamespace(find_by_id=self.topics.get)),
            share_persister=SimpleNamespace(ask=self._ask),
        )
        self.context: Any = SimpleNamespace(broker=broker)

    def lead(self, topic_id: Uuid, number: int, high_watermark: int, *, is_leader: bool = True) -> None:
        log = SimpleNamespace(high_watermark=high_watermark)
        self.led[topic_id, number] = SimpleNamespace(is_leader=is_leader, log=log)

    def _ask(self, leader: int, request: Any, answered: Any) -> None:
        assert request.replica_id == -1
        for topic in request.topics:
            assert {one.timestamp for one in topic.partitions} == {-1}, "the end"
        named = {topic.name: [one.partition_index for one in topic.partitions] for topic in request.topics}
        self.asked.append((leader, named))
        self.answered.append(answered)

    def find(self, *wanted: tuple[Uuid, int]) -> dict[tuple[Uuid, int], Any]:
        found: dict[tuple[Uuid, int], Any] = {}
        find_latest_offsets(wanted, self.context).when_done(found.update)
        return found


def ends(**offsets: dict[int, int | ErrorCode]) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=name,
                partitions=tuple(
                    ListOffsetsPartitionResponse(
                        partition_index=number,
                        error_code=end if isinstance(end, ErrorCode) else ErrorCode.NONE,
                        offset=-1 if isinstance(end, ErrorCode) else end,
                    )
                    for number, end in some.items()
                ),
            )
            for name, some in offsets.items()
        )
    )


def test_what_is_led_here_is_known_at_once() -> None:
    world = World(orders={0: 1, 1: 1})
    world.lead(ORDERS, 0, 7)
    world.lead(ORDERS, 1, 0)
    assert world.find((ORDERS, 0), (ORDERS, 1)) == {(ORDERS, 0): 7, (ORDERS, 1): 0}
    assert not world.asked


def test_each_other_leader_is_asked_once_for_all_that_it_leads() -> None:
    world = World(orders={0: 2, 1: 3, 2: 2}, audits={0: 2})
    world.lead(ORDERS, 0, 99, is_leader=False)
    found = world.find((ORDERS, 0), (ORDERS, 1), (ORDERS, 2), (AUDITS, 0))
    assert world.asked == [(2, {"orders": [0, 2], "audits": [0]}), (3, {"orders": [1]})]
    world.answered[0](ends(orders={0: 5, 2: ErrorCode.NOT_LEADER_OR_FOLLOWER}, audits={0: 8}))
    assert not found, "all answers are waited for"
    world.answered[1](ends(orders={1: 6}))
    assert found == {
        (ORDERS, 0): 5,
        (ORDERS, 1): 6,
        (ORDERS, 2): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        (AUDITS, 0): 8,
    }


def test_a_leader_that_does_not_answer_or_leaves_something_out_is_told() -> None:
    world = World(orders={0: 2, 1: 2, 2: 3})
    found = world.find((ORDERS, 0), (ORDERS, 1), (ORDERS, 2))
    world.answered[0](ends(orders={0: 5}))
    world.answered[1](Unanswered("it is down"))
    missing = ErrorCode.LEADER_NOT_AVAILABLE
    assert found == {(ORDERS, 0): 5, (ORDERS, 1): missing, (ORDERS, 2): missing}


def test_what_nobody_leads_or_nobody_knows_is_told_apart() -> None:
    world = World(orders={0: -1, 1: 1, 2: 0})
    found = world.find((ORDERS, 0), (ORDERS, 1), (ORDERS, 9), (AUDITS, 0))
    assert found == {
        (ORDERS, 0): ErrorCode.LEADER_NOT_AVAILABLE,
        (ORDERS, 1): ErrorCode.LEADER_NOT_AVAILABLE,
        (ORDERS, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (AUDITS, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    world.find((ORDERS, 2))
    assert world.asked == [(0, {"orders": [2]})], "node 0 is a node"

"""Leaders of a node ask for other in-sync replicas together, and none keeps the others from theirs."""

from types import SimpleNamespace
from typing import Any

from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler

from ottla.broker.deferred import Deferred
from ottla.broker.logs.leading import Proposal
from ottla.broker.replication.in_sync_changes import InSyncChanges
from ottla.model.uuid import Uuid
from ottla.wire.messages.alter_partition import (
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
)

TOPIC = Uuid(b"topic-0000000001")


class Leader:
    """As much of a leader as a proposal needs. It may fail when it is accepted."""

    def __init__(self, index: int, fails: bool = False) -> None:
        self.partition = SimpleNamespace(topic_id=TOPIC, index=index, leader_epoch=0)
        self.proposal: Proposal | None = None
        self._fails = fails

    def accepted(self, _in_sync: object, _partition_epoch: int) -> None:
        self.proposal = None
        if self._fails:
            raise RuntimeError("somebody who waited for the high watermark has failed")


class World:
    """A controller that accepts everything."""

    def __init__(self) -> None:
        self.scheduler = ManualScheduler(ManualClock(0))
        self.asked: list[tuple[AlterPartitionRequest, Deferred[Any]]] = []
        self.changes = InSyncChanges(self._ask, self.scheduler, lambda: (1, 1))

    def _ask(self, request: AlterPartitionRequest) -> Deferred[Any]:
        self.asked.append((request, Deferred()))
        return self.asked[-1][1]

    def propose(self, *leaders: Leader) -> None:
        for leader in leaders:
            leader.proposal = Proposal(frozenset((1, 2)), ((1, 1), (2, 1)), 0, 0, is_growing=True)
            proposing: Any = leader
            self.changes.add(proposing)
        self.scheduler.run_once()

    def answer(self) -> list[int]:
        """Accept what the oldest request asks for, and return for which partitions that is."""
        request, response = self.asked.pop(0)
        (topic,) = request.topics
        numbers = [one.partition_index for one in topic.partitions]
        results = tuple(
            AlterPartitionPartitionResult(
                partition_index=number, leader_id=1, leader_epoch=0, isr=(1, 2), partition_epoch=1
            )
            for number in numbers
        )
        accepted = AlterPartitionTopicResult(topic_id=TOPIC, partitions=results)
        response.resolve(AlterPartitionResponse(topics=(accepted,)))
        self.scheduler.run_once()
        return numbers


def test_a_leader_that_fails_keeps_no_other_from_its_in_sync_replicas() -> None:
    world = World()
    failing, other, later = Leader(0, fails=True), Leader(1), Leader(2)
    world.propose(failing, other)
    assert world.answer() == [0, 1]
    assert other.proposal is None
    world.propose(later)
    assert world.answer() == [2]
    assert later.proposal is None

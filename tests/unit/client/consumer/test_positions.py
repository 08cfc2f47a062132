"""Where to read on, as a leader's answers decide it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer.assignment import Assignment, PartitionState, Position, Status
from ottla.client.consumer.positions import LogTruncated, NoOffset, Positions
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import ConnectionLost, UnsupportedByBroker
from ottla.client.topology import PartitionView, TopicView, Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

WHERE = TopicPartition("t", 0)
CURRENT_EPOCH = 5


class FakeCluster:
    """A cluster of one leader that gives prepared answers."""

    def __init__(self, answer: Callable[[], EpochEndOffset]) -> None:
        view = PartitionView(0, 1, CURRENT_EPOCH, (1,), (1,), ErrorCode.NONE)
        self.topology = Topology(topics={"t": TopicView("t", ZERO_UUID, False, {0: view}, ErrorCode.NONE)})
        self.asked: list[OffsetForLeaderEpochRequest] = []
        self.refreshed = 0
        self._answer = answer

    async def leader(self, where: TopicPartition) -> PartitionView:
        view = self.topology.leader_of(where)
        assert view is not None
        return view

    async def ask_node(
        self, _node_id: int, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        self.asked.append(request)
        topic = OffsetForLeaderTopicResult(topic="t", partitions=(self._answer(),))
        return OffsetForLeaderEpochResponse(topics=(topic,))

    async def refresh(self, _topics: object) -> Topology:
        self.refreshed += 1
        return self.topology


def _end(epoch: int, offset: int, error_code: ErrorCode = ErrorCode.NONE) -> EpochEndOffset:
    return EpochEndOffset(partition=0, leader_epoch=epoch, end_offset=offset, error_code=error_code)


def _check(
    answer: Callable[[], EpochEndOffset], policy: str = "latest"
) -> tuple[PartitionState, FakeCluster]:
    """Check a position of 100 in epoch 3 with a leader of epoch 5."""
    cluster: Any = FakeCluster(answer)
    settings = ConsumerSettings.of({"bootstrap.servers": "x", "auto.offset.reset": policy})
    assignment = Assignment(lambda: None)
    assignment.replace([WHERE], Status.NEEDS_RESET)
    state = assignment.state(WHERE)
    state.seek(Position(100, 3))
    state.status = Status.NEEDS_CHECK
    positions = Positions(cluster, settings, None, lambda: None)
    assert positions.needs_work(assignment, 0.0)
    asyncio.run(positions.settle(assignment, 0.0))
    return state, cluster


def test_a_leader_that_has_what_was_read_is_read_on() -> None:
    state, cluster = _check(lambda: _end(3, 100))
    assert (state.status, state.position, state.checked_epoch) == (
        Status.READY,
        Position(100, 3),
        CURRENT_EPOCH,
    )
    part = cluster.asked[0].topics[0].partitions[0]
    assert (part.leader_epoch, part.current_leader_epoch) == (3, CURRENT_EPOCH)
    assert cluster.asked[0].replica_id == -1


def test_a_log_that_was_cut_is_read_on_from_where_it_parts() -> None:
    state, _ = _check(lambda: _end(2, 80))
    assert (state.status, state.position, state.fetch_offset) == (Status.READY, Position(80, 2), 80)


def test_with_no_reset_policy_a_cut_log_is_told() -> None:
    with pytest.raises(LogTruncated, match="read up to 100, but its log now ends or differs at 80") as raised:
        _check(lambda: _end(2, 80), "none")
    assert raised.value.end_offset == 80


def test_a_leader_that_knows_nothing_so_old_leads_to_a_reset() -> None:
    state, _ = _check(lambda: _end(-1, -1))
    assert state.status is Status.NEEDS_RESET


def test_a_leader_that_moved_is_looked_for_again() -> None:
    state, cluster = _check(lambda: _end(-1, -1, ErrorCode.FENCED_LEADER_EPOCH))
    assert state.status is Status.NEEDS_CHECK
    assert cluster.refreshed == 1


def test_a_leader_that_is_gone_is_looked_for_again() -> None:
    def gone() -> EpochEndOffset:
        raise ConnectionLost("gone")

    state, cluster = _check(gone)
    assert state.status is Status.NEEDS_CHECK
    assert cluster.refreshed == 1


def test_a_broker_too_old_to_be_asked_is_believed() -> None:
    def too_old() -> EpochEndOffset:
        raise UnsupportedByBroker("too old")

    state, _ = _check(too_old)
    assert (state.status, state.checked_epoch) == (Status.READY, CURRENT_EPOCH)


def test_an_answer_after_a_seek_does_not_count() -> None:
    states: list[PartitionState] = []

    def seek_meanwhile() -> EpochEndOffset:
        states[0].seek(Position(7))
        return _end(2, 80)

    cluster: Any = FakeCluster(seek_meanwhile)
    settings = ConsumerSettings.of({"bootstrap.servers": "x"})
    assignment = Assignment(lambda: None)
    assignment.replace([WHERE], Status.NEEDS_RESET)
    states.append(assignment.state(WHERE))
    states[0].seek(Position(100, 3))
    states[0].status = Status.NEEDS_CHECK
    asyncio.run(Positions(cluster, settings, None, lambda: None).settle(assignment, 0.0))
    assert states[0].position == Position(7)


def test_without_an_offset_and_a_policy_the_user_is_told() -> None:
    cluster: Any = FakeCluster(lambda: _end(0, 0))
    settings = ConsumerSettings.of({"bootstrap.servers": "x", "auto.offset.reset": "none"})
    assignment = Assignment(lambda: None)
    assignment.replace([WHERE], Status.NEEDS_RESET)
    with pytest.raises(NoOffset, match="no offset is committed for t-0") as raised:
        asyncio.run(Positions(cluster, settings, None, lambda: None).settle(assignment, 0.0))
    assert raised.value.partitions == (WHERE,)


def test_a_partition_that_is_told_to_wait_waits() -> None:
    cluster: Any = FakeCluster(lambda: _end(3, 100))
    settings = ConsumerSettings.of({"bootstrap.servers": "x", "auto.offset.reset": "none"})
    assignment = Assignment(lambda: None)
    assignment.replace([WHERE], Status.NEEDS_RESET)
    assignment.state(WHERE).wait_until_s = 10.0
    positions = Positions(cluster, settings, None, lambda: None)
    assert not positions.needs_work(assignment, 9.9)
    assert positions.needs_work(assignment, 10.0)

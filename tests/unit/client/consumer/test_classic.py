"""A member of a classic group beats, joins and starts over as its coordinator tells it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.consumer.assignment import Assignment, Status
from ottla.client.consumer.classic import ClassicMembership
from ottla.client.consumer.embedded_protocol import encode_assignment
from ottla.client.consumer.membership import Handover, Subscribed
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import BrokerError, ClientError
from ottla.client.topology import Topology
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

P0 = TopicPartition("t", 0)


class Member:
    """A member, what it asked, and what it is answered."""

    def __init__(self, **settings: str) -> None:
        self.assignment = Assignment(lambda: None)
        self.lost: list[frozenset[TopicPartition]] = []
        self.handover = Handover(self.assignment, self._commit)
        self.handover.subscribed = Subscribed(["t"], on_lost=self._lose)
        given = {"bootstrap.servers": "nowhere:1", "group.id": "g", **settings}
        named = {name.replace("_", "."): value for name, value in given.items()}
        cluster: Any = self
        self.topology = Topology({}, {}, {}, -1, "c")
        self.woken = 0
        self.membership = ClassicMembership(cluster, ConsumerSettings.of(named), self.handover, self._wake)
        self.membership._ask_coordinator = self._answer  # type: ignore[assignment, method-assign]
        self.asked: list[Any] = []
        self.answers: list[Any] = []

    async def refresh(self, _topics: object) -> Topology:
        return self.topology

    async def _commit(self) -> None:
        pass

    async def _lose(self, partitions: frozenset[TopicPartition]) -> None:
        self.lost.append(partitions)

    def _wake(self) -> None:
        self.woken += 1

    async def _answer(self, request: Any, *_more: object) -> Any:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ClientError):
            raise answer
        return answer(request) if callable(answer) else answer

    async def beat(self, code: ErrorCode) -> float:
        self.answers.append(HeartbeatResponse(error_code=code))
        return await self.membership._beat()

    async def join(self, *answers: Any) -> None:
        self.answers += answers
        await self.membership.work()
        joining = self.membership._joining
        assert joining is not None
        await asyncio.wait([joining])
        await self.membership.work()


def _joined(member_id: str = "m-1", generation: int = 3, **more: Any) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader="somebody",
        member_id=member_id,
        members=(),
        **more,
    )


def _refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code, generation_id=-1, protocol_name=None, leader="", member_id=member_id, members=()
    )


def _share(*partitions: TopicPartition, code: ErrorCode = ErrorCode.NONE) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=encode_assignment(partitions))


def play(scene: Callable[[Member], Awaitable[None]], **settings: str) -> None:
    async def run() -> None:
        member = Member(**settings)
        member.membership.polled(asyncio.get_running_loop().time())
        await scene(member)
        await member.membership.stop()

    asyncio.run(run())


def test_who_is_no_member_yet_does_not_beat() -> None:
    async def scene(member: Member) -> None:
        assert await member.membership._beat() == 1.5
        assert member.asked == []

    play(scene, heartbeat_interval_ms="1500")


def test_a_member_joins_with_the_id_that_it_is_given() -> None:
    async def scene(member: Member) -> None:
        required = _refused(ErrorCode.MEMBER_ID_REQUIRED, "m-1")
        await member.join(required, _joined(), _share(P0))
        first, second, sync = member.asked
        assert isinstance(first, JoinGroupRequest)
        assert (first.member_id, second.member_id) == ("", "m-1")
        assert isinstance(sync, SyncGroupRequest)
        assert (sync.member_id, sync.generation_id, sync.assignments) == ("m-1", 3, ())
        assert member.handover.owned == {P0}
        assert member.membership.metadata.generation == 3
        assert not member.membership.needs_work
        assert await member.beat(ErrorCode.NONE) == 3.0
        beat = member.asked[-1]
        assert isinstance(beat, HeartbeatRequest)
        assert (beat.member_id, beat.generation_id) == ("m-1", 3)

    play(scene)


@pytest.mark.parametrize(
    ("refusal", "joins_as"),
    [
        (_refused(ErrorCode.UNKNOWN_MEMBER_ID), ""),
        (_refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), ""),
        (BrokerError(ErrorCode.NOT_COORDINATOR, "it moved"), ""),
    ],
)
def test_a_member_that_is_not_taken_now_tries_again(refusal: Any, joins_as: str) -> None:
    async def scene(member: Member) -> None:
        await member.join(refusal, _joined(), _share(P0))
        assert [ask.member_id for ask in member.asked] == ["", joins_as, "m-1"]
        assert member.handover.owned == {P0}

    play(scene, retry_backoff_ms="1", retry_backoff_max_ms="2")


def test_a_group_that_rebalances_between_join_and_sync_is_joined_again() -> None:
    async def scene(member: Member) -> None:
        again = _share(code=ErrorCode.REBALANCE_IN_PROGRESS)
        await member.join(_joined(), again, _joined(generation=4), _share(P0))
        assert member.membership.metadata.generation == 4

    play(scene, retry_backoff_ms="1", retry_backoff_max_ms="2")


def test_a_refusal_for_good_is_an_error_of_the_poll() -> None:
    async def scene(member: Member) -> None:
        with pytest.raises(BrokerError):
            await member.join(_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        # The next poll joins again: the right may have been granted.
        assert member.membership.needs_work

    play(scene)


async def _join(member: Member) -> None:
    await member.join(_joined(), _share(P0))
    member.assignment.replace([P0], Status.READY)
    member.asked.clear()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_member_that_the_group_dropped_loses_what_it_had_and_joins_anew(code: ErrorCode) -> None:
    async def scene(member: Member) -> None:
        await _join(member)
        assert await member.beat(code) == 3.0
        assert member.membership.metadata.generation == -1
        kept = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else "m-1"
        assert member.membership.metadata.member_id == kept
        assert member.membership.needs_work
        await member.join(_joined(generation=9), _share())
        assert member.lost == [{P0}]
        assert member.membership.metadata.generation == 9

    play(scene)


def test_a_rebalance_is_joined_once() -> None:
    async def scene(member: Member) -> None:
        await _join(member)
        woken = member.woken
        for _ in range(2):
            assert await member.beat(ErrorCode.REBALANCE_IN_PROGRESS) == 3.0
        assert member.woken == woken + 1
        assert member.membership.needs_work
        assert member.handover.owned == {P0}, "it is given up inside poll"

    play(scene)


def test_a_coordinator_that_moved_is_asked_again_soon() -> None:
    async def scene(member: Member) -> None:
        await _join(member)
        assert await member.beat(ErrorCode.NOT_COORDINATOR) == 0.25
        assert not member.membership.needs_work

    play(scene, retry_backoff_ms="250")


def test_a_member_that_another_one_replaced_is_told() -> None:
    async def scene(member: Member) -> None:
        await _join(member)
        with pytest.raises(BrokerError):
            await member.beat(ErrorCode.FENCED_INSTANCE_ID)

    play(scene, group_instance_id="i")


def test_an_answer_to_a_beat_of_an_older_generation_says_nothing() -> None:
    async def scene(member: Member) -> None:
        await _join(member)

        def late(_request: object) -> HeartbeatResponse:
            member.membership._generation = 8
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)

        member.answers.append(late)
        assert await member.membership._beat() == 3.0
        assert member.membership.metadata.member_id == "m-1"
        assert not member.membership.needs_work

    play(scene)


def test_a_member_whose_user_does_not_poll_leaves_and_comes_back_with_the_next_poll() -> None:
    async def scene(member: Member) -> None:
        await _join(member)
        member.membership.polled(asyncio.get_running_loop().time() - 301)
        # Nobody can be reached, so the group learns it from the silence.
        member.membership.leave = _leave_nothing  # type: ignore[method-assign]
        assert await member.membership._beat() == 3.0
        assert member.asked == []
        assert member.membership.needs_work
        await member.join(_joined(generation=4), _share())
        assert member.lost == [{P0}]

    play(scene)


async def _leave_nothing() -> None:
    pass

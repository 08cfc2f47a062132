"""A member of a share group joins once, keeps its place with what the broker told it, and leaves."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pytest

from ottla.client.errors import BrokerError, ClientError, ConnectionLost
from ottla.client.share.membership import ShareMembership
from ottla.client.share.settings import ShareConsumerSettings
from ottla.client.topology import Topology
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

ORDERS = Uuid(b"the orders of us")
ASSIGNED = Assignment(topic_partitions=(TopicPartitions(topic_id=ORDERS, partitions=(0, 2)),))


class Cluster:
    """A cluster whose coordinator answers what the test says."""

    def __init__(self) -> None:
        self.topology = Topology({}, {}, {}, -1, "c")
        self.refreshed: list[Collection[str]] = []

    async def refresh(self, topics: Collection[str]) -> Topology:
        self.refreshed.append(topics)
        self.topology = Topology({}, {}, {ORDERS: "orders"}, -1, "c")
        return self.topology


class Member:
    """A member, what it asked, and what it is answered."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        settings = ShareConsumerSettings.of({"bootstrap.servers": "nowhere:1", "group.id": "g"})
        self.news = 0
        self.membership = ShareMembership(self.cluster, settings, self._wake)  # type: ignore[arg-type]
        self.asked: list[ShareGroupHeartbeatRequest] = []
        self.answers: list[ShareGroupHeartbeatResponse | ClientError] = []
        self.membership._ask_coordinator = self._answer  # type: ignore[assignment, method-assign]

    def _wake(self) -> None:
        self.news += 1

    async def _answer(self, request: Any) -> ShareGroupHeartbeatResponse:
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else _took(1)
        if isinstance(answer, ClientError):
            raise answer
        return answer

    async def beat(self, *answers: ShareGroupHeartbeatResponse | ClientError) -> float:
        self.answers += answers
        return await self.membership._beat()


def _took(epoch: int, assignment: Assignment | None = None, interval_ms: int = 5000) -> Any:
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


def _refused(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code, member_epoch=0, heartbeat_interval_ms=0)


def play(scene: Callable[[Member], Awaitable[None]]) -> None:
    async def run() -> None:
        member = Member()
        member.membership.subscribe(["orders", "audits"])
        member.membership.polled(asyncio.get_running_loop().time())
        await scene(member)

    asyncio.run(run())


def test_it_joins_once_and_goes_on_with_the_epoch_it_was_given() -> None:
    async def scene(member: Member) -> None:
        assert await member.beat(_took(7, interval_ms=1500)) == 1.5
        await member.beat(_took(7), _took(8))
        await member.beat()
        joined, second, third = member.asked
        assert joined.member_epoch == 0
        assert joined.subscribed_topic_names == ("audits", "orders")
        assert (second.member_epoch, second.subscribed_topic_names) == (7, None)
        assert third.member_epoch == 7, "the answer before the last one"
        assert len({ask.member_id for ask in member.asked}) == 1

    play(scene)


def test_it_leaves_with_the_epoch_that_leaves_and_only_if_it_is_in() -> None:
    async def scene(member: Member) -> None:
        await member.membership.leave()
        assert not member.asked, "the group does not know it"
        await member.beat(_took(3))
        await member.membership.leave()
        assert [ask.member_epoch for ask in member.asked] == [0, -1]
        assert member.asked[1].member_id == member.asked[0].member_id

    play(scene)


def test_a_group_that_cannot_be_reached_keeps_nobody_from_leaving() -> None:
    async def scene(member: Member) -> None:
        await member.beat(_took(3))
        member.answers = [ConnectionLost("gone")]
        await member.membership.leave()
        assert member.asked[-1].member_epoch == -1

    play(scene)


def test_what_it_is_assigned_is_known_by_name_before_it_reads() -> None:
    async def scene(member: Member) -> None:
        await member.beat(_took(1, ASSIGNED))
        assert member.cluster.refreshed == [frozenset({"orders", "audits"})]
        assert {(item.topic, item.partition) for item in member.membership.assigned} == {
            ("orders", 0),
            ("orders", 2),
        }
        await member.beat(_took(1))
        assert len(member.membership.assigned) == 2, "no news is no change"
        await member.beat(_took(2, Assignment(topic_partitions=())))
        assert not member.membership.assigned

    play(scene)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_member_that_the_group_forgot_joins_again_with_its_topics(code: ErrorCode) -> None:
    async def scene(member: Member) -> None:
        await member.beat(_took(5, ASSIGNED))
        await member.beat(_refused(code))
        assert not member.membership.assigned, "its records are those of others now"
        await member.beat(_took(6))
        again = member.asked[-1]
        assert (again.member_epoch, again.subscribed_topic_names) == (0, ("audits", "orders"))

    play(scene)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_what_a_forgotten_member_was_to_get_is_not_for_the_new_one(code: ErrorCode) -> None:
    async def scene(member: Member) -> None:
        # The name of the topic is not known yet, so the assignment waits.
        topology = Topology({}, {}, {}, -1, "c")

        async def know_nothing(topics: Collection[str]) -> Topology:
            return topology

        refresh = member.cluster.refresh
        member.cluster.refresh = know_nothing  # type: ignore[method-assign]
        await member.beat(_took(5, ASSIGNED))
        assert not member.membership.assigned
        await member.beat(_refused(code))
        member.cluster.refresh = refresh  # type: ignore[method-assign]
        await member.cluster.refresh(())
        await member.beat(_took(6))
        assert not member.membership.assigned

    play(scene)


def test_a_coordinator_that_moves_is_asked_again_soon_and_told_everything() -> None:
    async def scene(member: Member) -> None:
        await member.beat(_took(5))
        pause_s = await member.beat(_refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        assert pause_s < 1
        await member.beat(_took(5))
        assert (member.asked[-1].member_epoch, member.asked[-1].subscribed_topic_names) == (
            5,
            ("audits", "orders"),
        )

    play(scene)


def test_after_a_lost_answer_everything_is_told_again() -> None:
    async def scene(member: Member) -> None:
        await member.beat(_took(5))
        with pytest.raises(ConnectionLost):
            await member.beat(ConnectionLost("gone"))
        await member.beat(_took(5))
        assert member.asked[-1].subscribed_topic_names == ("audits", "orders")

    play(scene)


def test_what_cannot_pass_is_an_error() -> None:
    async def scene(member: Member) -> None:
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            await member.beat(_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))

    play(scene)


def test_a_member_whose_user_is_silent_leaves_until_the_user_comes_back() -> None:
    async def scene(member: Member) -> None:
        await member.beat(_took(5, ASSIGNED))
        now_s = asyncio.get_running_loop().time()
        member.membership.polled(now_s - 301)
        await member.beat()
        assert member.asked[-1].member_epoch == -1
        await member.beat()
        assert len(member.asked) == 2, "it is out, and says nothing"
        member.membership.polled(now_s)
        await member.beat(_took(1))
        assert member.asked[-1].member_epoch == 0

    play(scene)

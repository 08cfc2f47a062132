"""What a member whose broker assigns says in each heartbeat, and what it makes of each answer."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.consumer.assignment import Assignment
from ottla.client.consumer.broker_led import BrokerLedMembership
from ottla.client.consumer.membership import Handover, Subscribed
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import BrokerError, ClientError, ConnectionLost
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment as AssignedTopics,
)
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

T, U = Uuid((1).to_bytes(16)), Uuid((2).to_bytes(16))
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def answer(**facts: Any) -> ConsumerGroupHeartbeatResponse:
    told: dict[str, Any] = {"member_id": "m", "member_epoch": 3, "heartbeat_interval_ms": 2_000, **facts}
    return ConsumerGroupHeartbeatResponse(**told)


def assigned(*numbers: int, topic_id: Uuid = T) -> AssignedTopics:
    return AssignedTopics(topic_partitions=(TopicPartitions(topic_id=topic_id, partitions=numbers),))


class Coordinated:
    """A cluster with a coordinator: it answers heartbeats as told, and notes them."""

    def __init__(self) -> None:
        self.heard: list[ConsumerGroupHeartbeatRequest] = []
        self.answers: list[Any] = []
        self.forgotten: list[str] = []
        self.refreshed: list[Any] = []
        self.topology: Any = SimpleNamespace(
            topics={"t": SimpleNamespace(topic_id=T, partitions={0: None, 1: None})}, topic_names={T: "t"}
        )

    async def coordinator(self, key_type: int, key: str) -> int:
        return 1

    async def connection(self, node_id: int, lane: int = 0) -> Any:
        return self

    def forget_coordinator(self, key_type: int, key: str) -> None:
        self.forgotten.append(key)

    def version_for(self, kind: Any, at_most: int | None) -> int:
        return 1

    async def refresh(self, names: Any) -> Any:
        self.refreshed.append(names)
        return self.topology

    async def ask(self, request: Any, version: int, *, timeout_s: float | None) -> Any:
        self.heard.append(request)
        found = self.answers.pop(0) if self.answers else answer()
        if isinstance(found, BaseException):
            raise found
        return found


class Member:
    """A member, with what its user was told."""

    def __init__(self, **settings: Any) -> None:
        self.cluster: Any = Coordinated()
        self.told: list[tuple[str, frozenset[TopicPartition]]] = []
        self.woken = 0
        assignment = Assignment(lambda: None)
        self.handover = Handover(assignment, self._commit)
        self.handover.subscribed = Subscribed(
            ["t", "s"],
            on_assigned=lambda some: self.told.append(("assigned", some)),
            on_revoked=lambda some: self.told.append(("revoked", some)),
            on_lost=lambda some: self.told.append(("lost", some)),
        )
        chosen = {"bootstrap.servers": "b:1", "group.id": "g", "group.protocol": "consumer", **settings}
        self.settings = ConsumerSettings.of(chosen)
        cluster: Any = self.cluster
        self.member = BrokerLedMembership(cluster, self.settings, self.handover, self._wake)

    async def _commit(self) -> None:
        self.told.append(("committed", self.handover.owned))

    def _wake(self) -> None:
        self.woken += 1

    def has_to_do(self) -> bool:
        """Say whether a poll has something to do first."""
        return self.member._needs_step

    def fetches_as(self) -> Any:
        return self.member.metadata_for_fetch

    async def beat(self, *answers: Any) -> ConsumerGroupHeartbeatRequest:
        self.cluster.answers += answers
        await self.member._beat()
        heard: ConsumerGroupHeartbeatRequest = self.cluster.heard[-1]
        return heard


def story(tell: Callable[[Member], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        await tell(Member(**settings))

    asyncio.run(run())


# What it says


def test_the_first_heartbeat_says_all_and_the_next_one_only_that_it_lives() -> None:
    async def tell(its: Member) -> None:
        first = await its.beat()
        assert (first.group_id, first.member_epoch, first.instance_id, first.rack_id) == ("g", 0, "i", "r")
        assert first.subscribed_topic_names == ("s", "t")
        assert (first.subscribed_topic_regex, first.server_assignor) == (None, "uniform")
        assert (first.rebalance_timeout_ms, first.topic_partitions) == (7_000, ())
        second = await its.beat()
        assert (second.member_id, second.member_epoch) == ("m", 3)
        assert (second.rack_id, second.subscribed_topic_names, second.server_assignor) == (None, None, None)
        assert (second.rebalance_timeout_ms, second.topic_partitions) == (-1, None)
        assert second.instance_id == "i"

    story(
        tell,
        **{
            "max.poll.interval.ms": 7_000,
            "client.rack": "r",
            "group.instance.id": "i",
            "group.remote.assignor": "uniform",
        },
    )


def test_a_pattern_is_taken_back_by_an_empty_one() -> None:
    async def tell(its: Member) -> None:
        its.handover.subscribed = Subscribed(pattern="pay.*")
        assert (await its.beat()).subscribed_topic_regex == "pay.*"
        its.handover.subscribed = Subscribed(["t"])
        assert (await its.beat()).subscribed_topic_regex is None, "nothing was said about topics"
        its.member.subscription_changed()
        changed = await its.beat()
        assert (changed.subscribed_topic_regex, changed.subscribed_topic_names) == ("", ("t",))

    story(tell)


def test_what_was_perhaps_not_heard_is_said_again() -> None:
    async def tell(its: Member) -> None:
        await its.beat()
        with pytest.raises(ConnectionLost):
            await its.beat(ConnectionLost("gone"))
        again = await its.beat()
        assert again.subscribed_topic_names == ("s", "t")
        assert again.topic_partitions == ()
        assert (await its.beat()).subscribed_topic_names is None
        # An error that passes is no answer either.
        await its.beat(answer(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        assert (await its.beat()).subscribed_topic_names == ("s", "t")

    story(tell)


def test_a_member_that_leaves_says_whether_it_will_be_back() -> None:
    async def tell(its: Member) -> None:
        await its.member.leave()
        assert its.cluster.heard == [], "who has not joined need not leave"
        await its.beat()
        await its.member.leave()
        left = its.cluster.heard[-1]
        assert (left.member_epoch, left.member_id) == (-2 if its.settings.group_instance_id else -1, "m")
        assert its.member.metadata.generation == -1
        assert (await its.beat()).subscribed_topic_names == ("s", "t")
        its.cluster.answers.append(ConnectionLost("gone"))
        await its.member.leave()

    story(tell)
    story(tell, **{"group.instance.id": "i"})


# What it makes of answers


def test_the_broker_says_who_it_is_and_how_often_it_beats() -> None:
    async def tell(its: Member) -> None:
        own = its.member.metadata
        assert (own.group_id, own.generation) == ("g", -1)
        assert its.fetches_as() is None
        assert await its.member._beat() == 2.0
        assert (its.member.metadata.member_id, its.member.metadata.generation) == ("m", 3)
        assert its.fetches_as() == its.member.metadata
        # An answer without an id leaves the one that it has, and an interval of nothing is no loop.
        its.cluster.answers.append(answer(member_id=None, heartbeat_interval_ms=0))
        assert await its.member._beat() == 0.001
        assert its.member.metadata.member_id == "m"

    story(tell)


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for_again(code: ErrorCode) -> None:
    async def tell(its: Member) -> None:
        its.cluster.answers.append(answer(error_code=code))
        assert await its.member._beat() == its.settings.retry_backoff_ms / 1000
        assert its.cluster.forgotten == ["g"]
        with pytest.raises(ConnectionLost):
            await its.beat(ConnectionLost("gone"))
        assert its.cluster.forgotten == ["g", "g"]
        await its.beat(answer(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        await its.beat()
        assert its.cluster.forgotten == ["g", "g"]

    story(tell)


def test_an_error_for_good_is_raised_with_the_words_of_the_broker() -> None:
    async def tell(its: Member) -> None:
        refusal = answer(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="no rule")
        with pytest.raises(BrokerError, match="group 'g' refused this member") as caught:
            await its.beat(refusal)
        assert caught.value.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert "no rule" in str(caught.value)

    story(tell)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_member_that_was_dropped_lets_go_before_it_joins_again(code: ErrorCode) -> None:
    async def tell(its: Member) -> None:
        await its.beat(answer(assignment=assigned(0)))
        await its.member._do_step()
        await its.beat(answer(error_code=code))
        heard = len(its.cluster.heard)
        await its.member._beat()
        assert len(its.cluster.heard) == heard, "first the user lets go"
        assert its.has_to_do()
        await its.member._do_step()
        assert its.told[-1] == ("lost", frozenset({T0}))
        assert not its.has_to_do()
        again = await its.beat()
        assert (again.member_epoch, again.topic_partitions) == (0, ())

    story(tell)


# Partitions


def test_partitions_are_given_up_before_others_are_taken_on_and_both_are_told() -> None:
    async def tell(its: Member) -> None:
        woken = its.woken
        await its.beat(answer(assignment=assigned(0)))
        assert its.woken == woken + 1
        await its.member._do_step()
        assert its.handover.owned == {T0}
        owned = await its.beat(answer(assignment=assigned(1)))
        assert owned.topic_partitions == (TopicPartitions(topic_id=T, partitions=(0,)),)
        assert owned.subscribed_topic_names is None
        await its.member._do_step()
        assert its.told == [
            ("assigned", frozenset({T0})),
            ("committed", frozenset({T0})),
            ("revoked", frozenset({T0})),
            ("assigned", frozenset({T1})),
        ]
        assert not its.has_to_do()
        await its.member._do_step()
        assert len(its.told) == 4

    story(tell)


def test_a_topic_that_is_not_known_yet_is_learned_first() -> None:
    async def tell(its: Member) -> None:
        await its.beat(answer(assignment=assigned(0, topic_id=U)))
        await its.member._do_step()
        assert its.cluster.refreshed == [{"t", "s"}] or its.cluster.refreshed == [frozenset({"t", "s"})]
        assert its.handover.owned == frozenset()
        assert its.has_to_do()
        its.cluster.topology.topic_names[U] = "u"
        await its.member._do_step()
        assert its.handover.owned == {TopicPartition("u", 0)}
        assert len(its.cluster.refreshed) == 1

    story(tell)


def test_who_is_not_asked_for_records_for_too_long_leaves_and_loses_all() -> None:
    async def tell(its: Member) -> None:
        its.member.polled(asyncio.get_running_loop().time() - 8)
        await its.beat(answer(assignment=assigned(0)))
        assert its.cluster.heard[-1].member_epoch == 0, "who has not joined yet is not late"
        await its.member._do_step()
        await its.member._beat()
        assert its.cluster.heard[-1].member_epoch == -1
        await its.member._do_step()
        assert its.told[-1] == ("lost", frozenset({T0}))

    story(tell, **{"max.poll.interval.ms": 7_000})


def test_a_failure_is_raised_to_whoever_polls() -> None:
    async def tell(its: Member) -> None:
        its.member.failure = ClientError("for good")
        assert its.has_to_do()
        with pytest.raises(ClientError, match="for good"):
            await its.member._do_step()

    story(tell)

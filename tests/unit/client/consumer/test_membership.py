"""Partitions given up, taken on and lost, with the user's callbacks."""

import asyncio

import pytest

from ottla.client.consumer.assignment import Assignment, Position, Status
from ottla.client.consumer.membership import Handover, Subscribed, matching_topics
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class World:
    """A handover of two partitions, and what happened."""

    def __init__(self, with_on_lost: bool = True) -> None:
        self.happened: list[tuple[str, frozenset[TopicPartition]]] = []
        self.assignment = Assignment(lambda: None)
        self.assignment.replace([P0, P1], Status.NEEDS_COMMITTED)
        self.handover = Handover(self.assignment, self._commit)
        self.handover.subscribed = Subscribed(
            ["t"],
            on_assigned=lambda some: self.happened.append(("assigned", some)),
            on_revoked=self._on_revoked,
            on_lost=(lambda some: self.happened.append(("lost", some))) if with_on_lost else None,
        )

    async def _commit(self) -> None:
        self.happened.append(("committed", self.handover.owned))

    async def _on_revoked(self, some: frozenset[TopicPartition]) -> None:
        self.happened.append(("revoked", some))


def test_what_is_given_up_is_committed_first_and_told_while_it_is_still_ours() -> None:
    world = World()
    asyncio.run(world.handover.give_up(frozenset({P0})))
    assert world.happened == [("committed", frozenset({P0, P1})), ("revoked", frozenset({P0}))]
    assert world.handover.owned == {P1}


def test_a_callback_that_fails_does_not_keep_what_was_given_up() -> None:
    def fail(_some: frozenset[TopicPartition]) -> None:
        raise RuntimeError("no")

    world = World()
    world.handover.subscribed = Subscribed(["t"], on_revoked=fail)
    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(world.handover.give_up(frozenset({P0})))
    assert world.handover.owned == {P1}


def test_what_is_lost_is_not_committed_and_gone_when_it_is_told() -> None:
    world = World()
    asyncio.run(world.handover.lose(frozenset({P0, P1})))
    assert world.happened == [("lost", frozenset({P0, P1}))]
    assert world.handover.owned == frozenset()


def test_without_its_own_callback_a_loss_is_told_as_a_revocation() -> None:
    world = World(with_on_lost=False)
    asyncio.run(world.handover.lose(frozenset({P0})))
    assert world.happened == [("revoked", frozenset({P0}))]


def test_what_is_taken_on_leaves_the_rest_as_it_was() -> None:
    world = World()
    world.assignment.replace([P0], Status.NEEDS_COMMITTED)
    world.assignment.state(P0).seek(Position(7))
    asyncio.run(world.handover.take_on(frozenset({P1})))
    assert world.happened == [("assigned", frozenset({P1}))]
    assert world.assignment.state(P0).position == Position(7)
    assert world.assignment.state(P1).status is Status.NEEDS_COMMITTED


def test_a_pattern_matches_whole_names_and_nothing_hidden() -> None:
    names = ["pay", "payments", "prepay", "__pay"]
    assert matching_topics("pay.*", names, []) == {"pay", "payments"}
    assert matching_topics(".*pay", names, ["__pay"]) == {"pay", "prepay"}


def test_a_pattern_is_one_of_those_that_brokers_know() -> None:
    with pytest.raises(ClientError, match="no regular expression of RE2"):
        Subscribed(pattern="(?!internal).*")


def test_paused_partitions_leave_room_for_the_others() -> None:
    world = World()
    for number, state in enumerate(world.assignment):
        state.buffered_bytes = 100 + number
    assert world.assignment.buffered_bytes() == 201
    world.assignment.state(P0).is_paused = True
    assert world.assignment.buffered_bytes() == 101

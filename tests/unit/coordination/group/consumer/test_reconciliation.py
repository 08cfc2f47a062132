"""Each row of the table of how a member gets to its target."""

import pytest

from ottla.coordination.group.consumer.member import assignment_of_record
from ottla.coordination.group.consumer.reconciliation import (
    Assignment,
    Goal,
    Held,
    MemberState,
    reconcile,
)
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.consumer_group import ConsumerGroupCurrentMemberAssignmentValue
from ottla.wire.error_code import ErrorCode

A = Uuid(b"topic A---------")
B = Uuid(b"topic B---------")
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


def goal(
    epoch: int = 6,
    target: dict[Uuid, frozenset[int]] | None = None,
    subscribed: tuple[Uuid, ...] = (A, B),
    held: tuple[tuple[Uuid, int], ...] = (),
) -> Goal:
    return Goal(
        epoch,
        {A: frozenset((0, 1))} if target is None else target,
        lambda topic: topic in subscribed,
        lambda topic, number: (topic, number) in held,
        wants_nothing=not subscribed,
    )


def test_a_member_that_has_its_target_stays_as_it_is() -> None:
    current = Assignment(6, 5, STABLE, {A: {0: 6, 1: 6}})
    assert reconcile(current, goal(), {}) is current


def test_a_new_member_gets_what_is_free_in_the_epoch_of_the_target() -> None:
    assert reconcile(Assignment(), goal(), {}) == Assignment(6, 0, STABLE, {A: {0: 6, 1: 6}})


def test_partitions_that_stay_keep_the_epoch_they_were_assigned_in() -> None:
    current = Assignment(5, 4, STABLE, {A: {0: 3}})
    assert reconcile(current, goal(), None) == Assignment(6, 5, STABLE, {A: {0: 3, 1: 6}})


def test_what_somebody_else_holds_is_waited_for_in_the_new_epoch() -> None:
    current = Assignment(5, 4, STABLE, {A: {0: 5}})
    after = reconcile(current, goal(held=((A, 1),)), None)
    assert after == Assignment(6, 5, UNRELEASED, {A: {0: 5}})


def test_a_member_that_waits_gets_what_has_become_free() -> None:
    current = Assignment(6, 5, UNRELEASED, {A: {0: 5}})
    assert reconcile(current, goal(), None) == Assignment(6, 6, STABLE, {A: {0: 5, 1: 6}})


def test_a_member_that_waits_still_waits() -> None:
    current = Assignment(6, 6, UNRELEASED, {A: {0: 5}})
    assert reconcile(current, goal(held=((A, 1),)), None) == current


def test_a_member_must_give_up_first_and_stays_in_its_epoch() -> None:
    current = Assignment(5, 4, STABLE, {A: {0: 5}, B: {0: 5, 1: 5}})
    after = reconcile(current, goal(), None)
    assert after == Assignment(5, 5, UNREVOKED, {A: {0: 5}}, {B: {0: 5, 1: 5}})


def test_a_member_that_says_it_owns_nothing_of_it_need_not_give_it_up() -> None:
    current = Assignment(5, 4, STABLE, {A: {0: 5}, B: {0: 5}})
    after = reconcile(current, goal(), {A: frozenset((0,))})
    assert after == Assignment(6, 5, STABLE, {A: {0: 5, 1: 6}})


@pytest.mark.parametrize("owned", [None, {B: frozenset((0,))}, {A: frozenset((0,)), B: frozenset((0, 7))}])
def test_a_member_that_has_not_given_up_does_not_move(owned: dict[Uuid, frozenset[int]] | None) -> None:
    current = Assignment(5, 5, UNREVOKED, {A: {0: 5}}, {B: {0: 5}})
    assert reconcile(current, goal(), owned) is current


@pytest.mark.parametrize("owned", [{}, {A: frozenset((0,))}, {B: frozenset((1,))}])
def test_a_member_that_has_given_up_goes_on(owned: dict[Uuid, frozenset[int]]) -> None:
    current = Assignment(5, 5, UNREVOKED, {A: {0: 5}}, {B: {0: 5}})
    assert reconcile(current, goal(), owned) == Assignment(6, 5, STABLE, {A: {0: 5, 1: 6}})


def test_a_member_may_get_back_what_it_has_just_given_up() -> None:
    """The record that it still holds it is its own."""
    current = Assignment(5, 5, UNREVOKED, {}, {A: {0: 4, 1: 4}})
    after = reconcile(current, goal(held=((A, 0), (A, 1))), {})
    assert after == Assignment(6, 5, STABLE, {A: {0: 6, 1: 6}})


def test_while_it_gives_up_the_target_may_move_on_and_ask_for_more() -> None:
    current = Assignment(5, 5, UNREVOKED, {A: {0: 5}}, {B: {0: 5}})
    after = reconcile(current, goal(epoch=9, target={}), {A: frozenset((0,))})
    assert after == Assignment(5, 5, UNREVOKED, {}, {A: {0: 5}})


def test_an_unsubscribed_topic_counts_as_not_in_the_target() -> None:
    current = Assignment(5, 4, STABLE, {A: {0: 5}, B: {0: 5}})
    target = {A: frozenset((0,)), B: frozenset((0,))}
    after = reconcile(current, goal(target=target, subscribed=(A,)), None)
    assert after == Assignment(5, 5, UNREVOKED, {A: {0: 5}}, {B: {0: 5}})


def test_a_changed_subscription_takes_topics_away_without_a_new_target() -> None:
    current = Assignment(6, 5, STABLE, {A: {0: 5}, B: {0: 5}})
    after = reconcile(current, goal(subscribed=(A,)), None, subscription_changed=True)
    assert after == Assignment(6, 6, UNREVOKED, {A: {0: 5}}, {B: {0: 5}})


def test_a_changed_subscription_adds_to_what_is_to_be_given_up() -> None:
    current = Assignment(6, 5, UNREVOKED, {A: {0: 5}, B: {0: 5}}, {B: {1: 5}})
    after = reconcile(current, goal(subscribed=(A,)), None, subscription_changed=True)
    assert after == Assignment(6, 6, UNREVOKED, {A: {0: 5}}, {B: {0: 5, 1: 5}})


def test_a_changed_subscription_that_keeps_its_topics_changes_nothing() -> None:
    current = Assignment(6, 5, STABLE, {A: {0: 5}})
    assert reconcile(current, goal(), None, subscription_changed=True) is current


def test_topics_taken_away_that_it_does_not_own_are_just_gone() -> None:
    current = Assignment(6, 5, STABLE, {A: {0: 5}, B: {0: 5}})
    after = reconcile(current, goal(subscribed=(A,)), {A: frozenset((0,))}, subscription_changed=True)
    assert after == Assignment(6, 6, STABLE, {A: {0: 5}})


def test_a_state_of_a_newer_release_fences_the_member() -> None:
    current = Assignment(5, 4, MemberState.UNKNOWN, {A: {0: 5}})
    for owned in (None, {A: frozenset((0,))}):
        with pytest.raises(Refused) as refused:
            reconcile(current, goal(), owned)
        assert refused.value.error_code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_in_an_unknown_state_that_owns_nothing_starts_again() -> None:
    current = Assignment(5, 4, UNKNOWN, {A: {0: 5}})
    assert reconcile(current, goal(), {}) == Assignment(6, 5, STABLE, {A: {0: 5, 1: 6}})


def test_nothing_held_is_shared_between_two_states() -> None:
    before: Held = {A: {0: 5}}
    reconcile(Assignment(5, 4, STABLE, before), goal(), None)
    assert before == {A: {0: 5}}


def test_a_state_that_a_newer_release_wrote_is_unknown() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=5,
        previous_member_epoch=4,
        state=9,
        assigned_partitions=(),
        partitions_pending_revocation=(),
    )
    assert assignment_of_record(value) == Assignment(5, 4, MemberState.UNKNOWN)

"""How one member gets from what it has to what it should have, heartbeat by heartbeat.

A partition must be given up by its old owner before its new one may have it. So a member first revokes what
it has to give, and says so by no longer listing it; only then it moves to the new epoch, and gets what nobody
holds any more. States of a member:

    STABLE                 it has its whole target
    UNREVOKED_PARTITIONS   it still has to give partitions up; its epoch stays
    UNRELEASED_PARTITIONS  it is in the new epoch, but somebody else has not yet given up what it is to get
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.model.uuid import Uuid

Partitions = Mapping[Uuid, frozenset[int]]
IsHeldByOther = Callable[[Uuid, int], bool]


class MemberState(IntEnum):
    """The state of a member, by the number in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member has, and in which epoch."""

    member_epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=dict)
    pending_revocation: Partitions = field(default_factory=dict)


def reconcile(
    current: Assignment,
    target_epoch: int,
    target: Partitions,
    owned: Partitions | None,
    subscribed: frozenset[Uuid],
    is_held_by_other: IsHeldByOther,
) -> Assignment:
    """Return the member's next step towards its target; the same assignment when it has to wait.

    `owned` is what the member says it has, or None when this heartbeat does not say.
    """
    target = {topic: numbers for topic, numbers in target.items() if topic in subscribed}
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if owned is None or overlap(owned, current.pending_revocation):
            return current
        # It has given up what it had to: on to the target, whatever that is by now.
        return _advance(_replace_state(current, {}), target_epoch, target, is_held_by_other)
    if current.state is MemberState.STABLE and current.member_epoch == target_epoch:
        lost = subtract(
            current.assigned,
            {topic: current.assigned[topic] for topic in current.assigned if topic in subscribed},
        )
        return current if not lost else _advance(current, target_epoch, target, is_held_by_other)
    return _advance(current, target_epoch, target, is_held_by_other)


def _advance(
    current: Assignment, target_epoch: int, target: Partitions, is_held_by_other: IsHeldByOther
) -> Assignment:
    kept = intersect(current.assigned, target)
    revoked = subtract(current.assigned, kept)
    if revoked:
        return Assignment(
            current.member_epoch, current.previous_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked
        )
    wanted = subtract(target, kept)
    free = {
        topic: available
        for topic, numbers in wanted.items()
        if (available := frozenset(number for number in numbers if not is_held_by_other(topic, number)))
    }
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_PARTITIONS
    previous_epoch = current.member_epoch if current.member_epoch != target_epoch else current.previous_epoch
    return Assignment(target_epoch, previous_epoch, state, unite(kept, free))


def _replace_state(current: Assignment, pending: Partitions) -> Assignment:
    return Assignment(
        current.member_epoch, current.previous_epoch, MemberState.STABLE, current.assigned, pending
    )


def intersect(left: Partitions, right: Partitions) -> Partitions:
    """Return what is in both."""
    both = {topic: numbers & right.get(topic, frozenset()) for topic, numbers in left.items()}
    return {topic: numbers for topic, numbers in both.items() if numbers}


def subtract(left: Partitions, right: Partitions) -> Partitions:
    """Return what is in the left one only."""
    rest = {topic: numbers - right.get(topic, frozenset()) for topic, numbers in left.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def unite(left: Partitions, right: Partitions) -> Partitions:
    """Return what is in either."""
    none: frozenset[int] = frozenset()
    return {topic: left.get(topic, none) | right.get(topic, none) for topic in {**left, **right}}


def overlap(left: Partitions, right: Partitions) -> bool:
    """Say whether anything is in both."""
    return any(numbers & right.get(topic, frozenset()) for topic, numbers in left.items())

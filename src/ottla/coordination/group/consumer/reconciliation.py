"""How a member of a consumer group gets from what it has to what it should have (KIP-848).

A partition is given to a member only after its last owner has let go of it. So a member first gives up what
it has to, and says so; only then it goes on to the target's epoch and gets what is free.

| state      | heartbeat                                         | next                                |
|------------|---------------------------------------------------|-------------------------------------|
| STABLE     | nothing new                                       | the same                            |
| STABLE     | newer target, nothing to give up                  | STABLE or UNRELEASED, target epoch  |
| STABLE     | newer target, something to give up                | UNREVOKED, old epoch                |
| STABLE     | topic unsubscribed, its target not yet renewed    | UNREVOKED, old epoch                |
| UNREVOKED  | still owns what it must give up, or does not say  | the same                            |
| UNREVOKED  | has given it up                                   | as STABLE with a newer target       |
| UNRELEASED | any                                               | as STABLE with a newer target       |
| UNKNOWN    | owns nothing                                      | as STABLE with a newer target       |
| UNKNOWN    | owns something, or does not say                   | fenced: it must join again          |

UNREVOKED: has yet to give something up. UNRELEASED: waits for others to give up what it is to get. UNKNOWN: a
newer release wrote a state that this one does not know.

Every partition carries the epoch in which it was assigned, so that a commit that a member sent just before
its epoch changed is still taken for partitions that have stayed its own (KIP-1251).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

Held = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic, each with the epoch in which it was assigned."""

NOTHING_HELD: Held = {}


class MemberState(IntEnum):
    """The state of a member, by the number in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(slots=True)
class Assignment:
    """What a member has, and in which epoch. Nobody changes one: like `Member` it is not frozen for speed."""

    member_epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    pending_revocation: Held = field(default_factory=dict)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Say whether nothing is left to do for the target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


@dataclass(slots=True)
class Goal:
    """Where a member is to get, and what it depends on. Nobody changes one."""

    target_epoch: int
    target: Partitions
    is_subscribed: Callable[[Uuid], bool]
    """Whether the member wants a topic now; the target may be older than its subscription."""
    is_held: Callable[[Uuid, int], bool]
    """Whether any member has a partition, or has yet to give it up."""
    wants_nothing: bool = False
    """Whether the member subscribes to no topic at all."""


def reconcile(
    current: Assignment, goal: Goal, owned: Partitions | None, subscription_changed: bool = False
) -> Assignment:
    """Return the member's next step towards its goal; the same assignment when it has to wait.

    `owned` is what the member says it has, or None when this heartbeat does not say.
    """
    match current.state:
        case MemberState.STABLE if current.member_epoch == goal.target_epoch:
            return _drop_unsubscribed(current, goal, owned) if subscription_changed else current
        case MemberState.UNREVOKED_PARTITIONS if _may_own(owned, current.pending_revocation):
            return _drop_unsubscribed(current, goal, owned) if subscription_changed else current
        case MemberState.UNKNOWN:
            if owned is None or owned:
                message = "the member is in a state this coordinator does not know: it has to join again"
                raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)
            return _advance(current, goal, owned, goal.target_epoch)
    return _advance(current, goal, owned, current.member_epoch)


def _advance(current: Assignment, goal: Goal, owned: Partitions | None, epoch: int) -> Assignment:
    """Give up what is not in the target; if there is nothing (left) to give up, take what is free."""
    kept: dict[Uuid, Mapping[int, int]] = {}
    revoked: dict[Uuid, Mapping[int, int]] = {}
    for topic, have in current.assigned.items():
        wanted = goal.target.get(topic) if goal.is_subscribed(topic) else None
        stay = {number: at for number, at in have.items() if wanted is not None and number in wanted}
        if stay:
            kept[topic] = stay
        if len(stay) < len(have):
            revoked[topic] = {number: at for number, at in have.items() if number not in stay}
    if revoked and _may_own(owned, revoked):
        return Assignment(epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    all_free = _take_free(current, goal, kept)
    state = MemberState.STABLE if all_free else MemberState.UNRELEASED_PARTITIONS
    return Assignment(goal.target_epoch, current.member_epoch, state, kept)


def _take_free(current: Assignment, goal: Goal, kept: dict[Uuid, Mapping[int, int]]) -> bool:
    """Add what the target has and nobody holds. False when somebody still holds some of it."""
    all_free = True
    for topic, numbers in goal.target.items():
        have = kept.get(topic, {})
        if len(have) == len(numbers) or not goal.is_subscribed(topic):
            continue
        # What the member itself had to give up, and has given up by now, it may get back.
        given_up = current.pending_revocation.get(topic, {})
        missing = sorted(numbers.difference(have))
        free = [number for number in missing if number in given_up or not goal.is_held(topic, number)]
        all_free = all_free and len(free) == len(missing)
        if free:
            kept[topic] = {**have, **dict.fromkeys(free, goal.target_epoch)}
    return all_free


def _drop_unsubscribed(current: Assignment, goal: Goal, owned: Partitions | None) -> Assignment:
    """Give up the topics that are no longer wanted, without waiting for a new target."""
    kept = {topic: have for topic, have in current.assigned.items() if goal.is_subscribed(topic)}
    if len(kept) == len(current.assigned) and (current.pending_revocation or not goal.wants_nothing):
        return current
    pending = dict(current.pending_revocation)
    for topic, have in current.assigned.items():
        if topic not in kept:
            pending[topic] = {**pending.get(topic, {}), **have}
    epoch = current.member_epoch
    if pending and _may_own(owned, pending):
        return Assignment(epoch, epoch, MemberState.UNREVOKED_PARTITIONS, kept, pending)
    return Assignment(epoch, epoch, current.state, kept, current.pending_revocation)


def _may_own(owned: Partitions | None, held: Held) -> bool:
    """Say whether the member has any of these, as far as it says."""
    if owned is None:
        return True
    return any(not numbers.isdisjoint(held.get(topic, ())) for topic, numbers in owned.items())

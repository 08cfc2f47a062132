"""How a member of a streams group gets from the tasks it has to those it should have (KIP-1071).

| state      | heartbeat                                         | next                                |
|------------|---------------------------------------------------|-------------------------------------|
| STABLE     | nothing new                                       | the same                            |
| STABLE     | newer target, nothing to give up                  | STABLE or UNRELEASED, target epoch  |
| STABLE     | newer target, something to give up                | UNREVOKED, old epoch                |
| UNREVOKED  | still owns what it must give up, or does not say  | the same                            |
| UNREVOKED  | has given it up                                   | as STABLE, one epoch further        |
| UNRELEASED | any                                               | as STABLE with a newer target       |
| UNKNOWN    | owns nothing                                      | as STABLE with a newer target       |
| UNKNOWN    | owns something, or does not say                   | fenced: it must join again          |

An active task is free if no process has it as an active task, and the member's own process has no copy of it:
two threads of one process share a state directory, which only one of them may open. For the same reason a
standby or warm-up task is free if the member's process has the task in no form. What another process copies
does not matter.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.streams.member import Assignment, MemberState
from ottla.coordination.group.streams.tasks import (
    NOTHING_HELD,
    HeldTasks,
    TargetTasks,
    Tasks,
    TasksWithEpochs,
    have_in_common,
)
from ottla.wire.error_code import ErrorCode

IsFree = Callable[[str, int], bool]
"""Whether a member may have a task of a subtopology now."""


class Goal(NamedTuple):
    """Where a member is to get, and what it depends on."""

    target_epoch: int
    target: TargetTasks
    is_free_as_active: IsFree
    is_free_as_copy: IsFree


def reconcile(current: Assignment, goal: Goal, owned: TargetTasks | None) -> Assignment:
    """Return the member's next step towards its goal; the same assignment when it has to wait.

    `owned` is what the member says it has, or None when this heartbeat does not say.
    """
    epoch = current.member_epoch
    match current.state:
        case MemberState.STABLE if epoch == goal.target_epoch:
            return current
        case MemberState.UNREVOKED_TASKS:
            if owned is None or have_in_common(owned, current.pending_revocation):
                return current
            epoch += 1
        case MemberState.UNKNOWN:
            if owned is None or any(owned):
                message = (
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin."
                )
                raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)
            epoch = goal.target_epoch
    return _advance(current, goal, owned, epoch)


def _advance(current: Assignment, goal: Goal, owned: TargetTasks | None, epoch: int) -> Assignment:
    """Give up what is not in the target; if there is nothing (left) to give up, take what is free."""
    held, target = current.held, goal.target
    active = _active_change(held.active, target.active, goal)
    standby = _copy_change(held.standby, target.standby, goal.is_free_as_copy)
    warmup = _copy_change(held.warmup, target.warmup, goal.is_free_as_copy)
    revoked = HeldTasks(active.revoked, standby.revoked, warmup.revoked)
    if not revoked.is_empty and (owned is None or have_in_common(owned, revoked)):
        kept = HeldTasks(active.kept, standby.kept, warmup.kept)
        return Assignment(epoch, current.member_epoch, MemberState.UNREVOKED_TASKS, kept, revoked)
    has_all = active.has_all and standby.has_all and warmup.has_all
    state = MemberState.STABLE if has_all else MemberState.UNRELEASED_TASKS
    now = HeldTasks(active.with_free, standby.with_free, warmup.with_free)
    return Assignment(goal.target_epoch, current.member_epoch, state, now, NOTHING_HELD)


class _ActiveChange(NamedTuple):
    kept: TasksWithEpochs
    revoked: TasksWithEpochs
    with_free: TasksWithEpochs
    has_all: bool


class _CopyChange(NamedTuple):
    kept: Tasks
    revoked: Tasks
    with_free: Tasks
    has_all: bool


def _active_change(held: TasksWithEpochs, target: Tasks, goal: Goal) -> _ActiveChange:
    kept, revoked, with_free, has_all = {}, {}, {}, True
    for one in sorted({*held, *target}):
        have, wanted = held.get(one, {}), target.get(one, frozenset())
        stay = {number: at for number, at in have.items() if number in wanted}
        missing = sorted(wanted.difference(stay))
        free = [number for number in missing if goal.is_free_as_active(one, number)]
        has_all = has_all and len(free) == len(missing)
        if stay:
            kept[one] = stay
        if len(stay) < len(have):
            revoked[one] = {number: at for number, at in have.items() if number not in stay}
        if stay or free:
            with_free[one] = {**stay, **dict.fromkeys(free, goal.target_epoch)}
    return _ActiveChange(kept, revoked, with_free, has_all)


def _copy_change(held: Tasks, target: Tasks, is_free: IsFree) -> _CopyChange:
    kept, revoked, with_free, has_all = {}, {}, {}, True
    for one in sorted({*held, *target}):
        have, wanted = held.get(one, frozenset()), target.get(one, frozenset())
        stay = have & wanted
        missing = wanted - stay
        free = {number for number in missing if is_free(one, number)}
        has_all = has_all and len(free) == len(missing)
        if stay:
            kept[one] = stay
        if stay != have:
            revoked[one] = have - stay
        if stay or free:
            with_free[one] = stay | free
    return _CopyChange(kept, revoked, with_free, has_all)

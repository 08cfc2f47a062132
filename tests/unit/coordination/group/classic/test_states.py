"""The states of a classic group: which may follow which, and what makes each follow.

`TRIGGERS` has every transition that happens, with what brings it about. It is held against the table in the
code, and each entry is tried.
"""

from collections.abc import Callable

import pytest
from tests.support.classic_members import GROUP, TestMember, bring_assignment, group_of, stable_group
from tests.support.group_world import GroupWorld

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.states import MAY_COME_FROM, GroupState

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
ALL_PAIRS = [(before, after) for before in GroupState for after in GroupState]


@pytest.mark.parametrize(("before", "after"), ALL_PAIRS, ids=lambda state: state.value)
def test_a_group_goes_only_where_the_table_lets_it(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup(GROUP, state=before)
    if before in MAY_COME_FROM[after]:
        group.move_to(after, 5)
        assert (group.previous_state, group.state, group.state_since_ms) == (before, after, 5)
    else:
        with pytest.raises(AssertionError):
            group.move_to(after, 5)
        assert group.state is before


# Each of these brings a group into a state.


def empty(world: GroupWorld) -> list[TestMember]:
    members = stable_group(world)
    members[0].leave()
    return members


def preparing(world: GroupWorld) -> list[TestMember]:
    members = stable_group(world, 2)
    newcomer = TestMember(world)
    newcomer.join()
    return [*members, newcomer]


def first_preparing(world: GroupWorld) -> list[TestMember]:
    member = TestMember(world)
    assert member.join() == []
    return [member]


def completing(world: GroupWorld) -> list[TestMember]:
    members = [TestMember(world), TestMember(world)]
    joins = [member.join() for member in members]
    world.advance(6000)
    for member, answer in zip(members, joins, strict=True):
        member.joined(answer)
    return members


def stable(world: GroupWorld) -> list[TestMember]:
    return stable_group(world, 2)


# Each of these makes it leave the state.


def somebody_joins(members: list[TestMember]) -> None:
    TestMember(members[0].world).join()


def all_join_again(members: list[TestMember]) -> None:
    for member in members:
        member.join()


def time_passes(members: list[TestMember]) -> None:
    members[0].world.advance(3000)


def rebalance_timeout_passes(members: list[TestMember]) -> None:
    """The newcomer waits; the others keep their sessions but do not join again."""
    for _ in range(4):
        members[0].world.advance(5000)
        for member in members[:-1]:
            member.beat()


def sync_timeout_passes(members: list[TestMember]) -> None:
    """The leader never brings the assignment, but lives."""
    for _ in range(4):
        members[0].world.advance(5000)
        for member in members:
            member.beat()


def all_leave(members: list[TestMember]) -> None:
    for member in members:
        member.leave()


def one_leaves(members: list[TestMember]) -> None:
    members[1].leave()


def one_is_silent(members: list[TestMember]) -> None:
    for _ in range(3):
        members[0].world.advance(5000)
        members[0].beat()


def leader_syncs(members: list[TestMember]) -> None:
    bring_assignment(members)


def leader_joins_again(members: list[TestMember]) -> None:
    members[0].join()


def one_changes_its_subscription(members: list[TestMember]) -> None:
    members[1].protocols = (("range", b"something else"),)
    members[1].join()


Trigger = tuple[
    GroupState, GroupState, Callable[[GroupWorld], list[TestMember]], Callable[[list[TestMember]], None]
]

TRIGGERS: list[Trigger] = [
    (EMPTY, PREPARING, empty, somebody_joins),
    (PREPARING, COMPLETING, preparing, all_join_again),
    (PREPARING, COMPLETING, preparing, rebalance_timeout_passes),
    (PREPARING, COMPLETING, first_preparing, time_passes),
    (PREPARING, EMPTY, preparing, all_leave),
    (COMPLETING, STABLE, completing, leader_syncs),
    (COMPLETING, PREPARING, completing, somebody_joins),
    (COMPLETING, PREPARING, completing, one_leaves),
    (COMPLETING, PREPARING, completing, one_is_silent),
    (COMPLETING, PREPARING, completing, one_changes_its_subscription),
    (STABLE, PREPARING, stable, somebody_joins),
    (STABLE, PREPARING, stable, one_leaves),
    (STABLE, PREPARING, stable, one_is_silent),
    (STABLE, PREPARING, stable, leader_joins_again),
    (STABLE, PREPARING, stable, one_changes_its_subscription),
]


def test_every_transition_of_the_table_has_a_trigger() -> None:
    tried = {(before, after) for before, after, _, _ in TRIGGERS}
    allowed = {
        (before, after) for after, befores in MAY_COME_FROM.items() for before in befores if after is not DEAD
    }
    assert tried == allowed


@pytest.mark.parametrize(
    ("before", "after", "arrange", "act"), TRIGGERS, ids=lambda part: getattr(part, "__name__", part)
)
def test_triggers_bring_about_their_transitions(
    before: GroupState,
    after: GroupState,
    arrange: Callable[[GroupWorld], list[TestMember]],
    act: Callable[[list[TestMember]], None],
) -> None:
    world = GroupWorld()
    members = arrange(world)
    assert group_of(world).state is before
    act(members)
    assert after in visited(group_of(world)), "it has gone through the state"


def visited(group: ClassicGroup) -> tuple[GroupState, GroupState]:
    """Return where a group is and where it was before: some triggers complete a rebalance at once."""
    return group.state, group.previous_state

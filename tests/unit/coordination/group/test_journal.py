"""The recent past of groups, bounded."""

from tests.classic_members import GROUP, TestMember, stable_group
from tests.group_world import GroupWorld

from ottla.coordination.group.journal import Event, Journal


def test_entries_are_kept_in_order() -> None:
    journal = Journal()
    journal.add("g", 1, Event.MEMBER_JOINED, "m", 3, "why")
    journal.add("g", 2, Event.MEMBER_LEFT)
    first, second = journal.of("g")
    assert (first.at_ms, first.event, first.member_id, first.generation, first.detail) == (
        1, Event.MEMBER_JOINED, "m", 3, "why",
    )  # fmt: skip
    assert second.event is Event.MEMBER_LEFT
    assert journal.of("another") == []


def test_a_busy_group_keeps_its_newest_entries() -> None:
    journal = Journal(entries_max=3)
    for at_ms in range(10):
        journal.add("g", at_ms, Event.COMMIT_ACCEPTED)
    assert [entry.at_ms for entry in journal.of("g")] == [7, 8, 9]


def test_the_group_that_was_quiet_for_longest_is_forgotten_first() -> None:
    journal = Journal(items_max=4)
    for group in ("a", "b", "c"):
        journal.add(group, 1, Event.COMMIT_ACCEPTED)
    journal.add("a", 2, Event.COMMIT_ACCEPTED)
    journal.add("d", 3, Event.COMMIT_ACCEPTED)
    assert journal.of("b") == []
    assert len(journal.of("a")) == 2
    assert len(journal.of("c")) == len(journal.of("d")) == 1


def test_a_commit_counts_for_each_of_its_partitions() -> None:
    journal = Journal(items_max=100)
    journal.add("small", 1, Event.COMMIT_ACCEPTED, detail=(1,))
    journal.add("large", 1, Event.COMMIT_ACCEPTED, detail=tuple(range(99)))
    assert journal.of("small") == []
    assert len(journal.of("large")) == 1


def test_the_story_of_a_group_can_be_read() -> None:
    world = GroupWorld()
    leader, follower = stable_group(world, 2)
    TestMember(world).join()
    follower.leave()
    events = [(entry.event, entry.generation) for entry in world.coordinator.journal.of(GROUP)]
    assert events == [
        (Event.MEMBER_JOINED, 0),
        (Event.REBALANCE_STARTED, 0),
        (Event.MEMBER_JOINED, 0),
        (Event.GENERATION_STARTED, 1),
        (Event.ASSIGNED, 1),
        (Event.MEMBER_JOINED, 1),
        (Event.REBALANCE_STARTED, 1),
        (Event.MEMBER_LEFT, 1),
    ]
    assigned = world.coordinator.journal.of(GROUP)[4]
    assert assigned.detail.keys() == {leader.member_id, follower.member_id}

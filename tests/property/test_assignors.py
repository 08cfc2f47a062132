"""Assignors give every partition to somebody who wants it, evenly, and move no more than they must."""

from collections.abc import Mapping

from hypothesis import given
from tests.property.group_wishes import (
    Topics,
    Wishes,
    check_complete,
    groups,
    kept,
    loads,
    with_assignment,
)

from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.coordination.group.consumer.assignors.range import assign_ranges
from ottla.coordination.group.consumer.assignors.uniform import assign_uniformly
from ottla.model.uuid import Uuid


@given(groups())
def test_uniform_gives_every_partition_to_one_member_that_wants_it(group: tuple[Wishes, Topics]) -> None:
    check_complete(*group, assign_uniformly(*group))


@given(groups())
def test_range_gives_every_partition_to_one_member_that_wants_it(group: tuple[Wishes, Topics]) -> None:
    check_complete(*group, assign_ranges(*group))


@given(groups(same_topics=True))
def test_uniform_gives_nobody_two_more_than_another(group: tuple[Wishes, Topics]) -> None:
    counts = loads(assign_uniformly(*group))
    assert not counts or counts[-1] - counts[0] <= 1


@given(groups(same_topics=True))
def test_uniform_moves_no_more_than_balance_takes(group: tuple[Wishes, Topics]) -> None:
    wishes, topics = group
    before = sorted((_still_good(wish, topics) for wish in wishes.values()), reverse=True)
    total = sum(topics[topic] for topic in next(iter(wishes.values())).topics) if wishes else 0
    quota, extras = divmod(total, len(wishes)) if wishes else (0, 0)
    # Whoever has most keeps the partitions that are left over.
    at_best = sum(min(have, quota + (place < extras)) for place, have in enumerate(before))
    assert kept(wishes, assign_uniformly(wishes, topics)) == at_best


@given(groups())
def test_uniform_cannot_be_made_more_even_by_one_move(group: tuple[Wishes, Topics]) -> None:
    wishes, topics = group
    assignment = assign_uniformly(wishes, topics)
    load = {name: sum(map(len, partitions.values())) for name, partitions in assignment.items()}
    for giver, partitions in assignment.items():
        for topic in partitions:
            takers = [name for name, wish in wishes.items() if topic in wish.topics]
            assert all(load[giver] - load[taker] <= 1 for taker in takers)


def test_uniform_evens_out_by_way_of_others() -> None:
    first, second = Uuid(b"the first  topic"), Uuid(b"the second topic")
    wishes = {
        "x": Wish("x", frozenset({second})),
        "y": Wish("y", frozenset({first, second}), assigned={second: frozenset({0})}),
        "z": Wish("z", frozenset({first})),
    }
    # No single move from x to y or from y to z helps, where x has 4, y has 3 and z has 2.
    assert loads(assign_uniformly(wishes, {first: 4, second: 5})) == [3, 3, 3]


@given(groups())
def test_nothing_moves_when_nothing_changes(group: tuple[Wishes, Topics]) -> None:
    wishes, topics = group
    for assign in (assign_uniformly, assign_ranges):
        once = assign(wishes, topics)
        assert assign(with_assignment(wishes, once), topics) == once


@given(groups(same_topics=True))
def test_uniform_leaves_everybody_what_it_has_when_a_member_leaves(group: tuple[Wishes, Topics]) -> None:
    wishes, topics = group
    if len(wishes) > 1:
        before = assign_uniformly(wishes, topics)
        settled = with_assignment(wishes, before)
        settled.popitem()
        _check_contains(assign_uniformly(settled, topics), {name: before[name] for name in settled})


@given(groups(same_topics=True))
def test_range_cuts_topics_of_one_size_alike(group: tuple[Wishes, Topics]) -> None:
    wishes, topics = group
    same_size = dict.fromkeys(topics, 6)
    for partitions in assign_ranges(wishes, same_size).values():
        assert len(set(partitions.values())) <= 1


@given(groups())
def test_range_gives_blocks(group: tuple[Wishes, Topics]) -> None:
    for partitions in assign_ranges(*group).values():
        for numbers in partitions.values():
            assert numbers == frozenset(range(min(numbers), max(numbers) + 1))


@given(groups(same_topics=True))
def test_range_keeps_static_members_in_a_row_by_their_instance_ids(group: tuple[Wishes, Topics]) -> None:
    wishes, topics = group
    static = {name: wish for name, wish in wishes.items() if wish.instance_id is not None}
    renamed = {
        f"new {name}": Wish(f"new {name}", wish.topics, wish.instance_id) for name, wish in static.items()
    }
    after = assign_ranges(renamed, topics)
    assert {f"new {name}": partitions for name, partitions in assign_ranges(static, topics).items()} == after


def _still_good(wish: Wish, topics: Topics) -> int:
    return sum(
        sum(number < topics[topic] for number in numbers)
        for topic, numbers in wish.assigned.items()
        if topic in wish.topics
    )


def _check_contains(outer: Mapping[str, Partitions], inner: Mapping[str, Partitions]) -> None:
    for name, partitions in inner.items():
        for topic, numbers in partitions.items():
            assert numbers <= outer[name][topic]

"""Whatever a cluster looks like, a plan makes it no worse, and carried out it needs no other."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metadata.balance_plan import Move, Node, Placed, TooFewBrokers, plan_moves, shares
from ottla.model.ids import TopicPartition


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Placed]]:
    racks = draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=6))
    nodes = [Node(number, rack) for number, rack in enumerate(racks, 1)]
    ids = [node.node_id for node in nodes]
    partitions = draw(
        st.lists(
            st.builds(
                lambda replicas, size: (tuple(replicas), size),
                st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True),
                st.sampled_from([0, 1_000_000, 1_000_000_000]),
            ),
            max_size=25,
        )
    )
    placed = [
        Placed(TopicPartition("t", number), replicas, size)
        for number, (replicas, size) in enumerate(partitions)
    ]
    return nodes, placed


def carried_out(partitions: Sequence[Placed], moves: Sequence[Move]) -> list[Placed]:
    after = {move.where: move.after for move in moves}
    return [one._replace(replicas=after.get(one.where, one.replicas)) for one in partitions]


def racks_of(nodes: Sequence[Node], replicas: Sequence[int]) -> int:
    racks = {node.node_id: node.rack or node.node_id for node in nodes}
    return len({racks[one] for one in replicas})


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_a_plan_keeps_what_a_partition_has(cluster: tuple[list[Node], list[Placed]]) -> None:
    nodes, partitions = cluster
    for move in plan_moves(nodes, partitions):
        assert len(set(move.after)) == len(move.after) == len(move.before)
        assert set(move.after) <= {node.node_id for node in nodes}
        assert racks_of(nodes, move.after) >= racks_of(nodes, move.before)
        assert move.after != move.before


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_a_plan_that_was_carried_out_needs_no_other(cluster: tuple[list[Node], list[Placed]]) -> None:
    nodes, partitions = cluster
    after = carried_out(partitions, plan_moves(nodes, partitions))
    assert plan_moves(nodes, after) == []


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_leaders_come_to_be_spread(cluster: tuple[list[Node], list[Placed]]) -> None:
    nodes, partitions = cluster
    ids = [node.node_id for node in nodes]
    after = carried_out(partitions, plan_moves(nodes, partitions, moves_replicas=False))
    leaders = shares(after, ids)
    for partition in after:
        lead = leaders[partition.replicas[0]].leaders
        assert all(lead - leaders[one].leaders <= 1 for one in partition.replicas)
    assert [set(one.replicas) for one in after] == [set(one.replicas) for one in partitions]


@given(clusters(), st.data())
@settings(max_examples=150, deadline=None)
def test_a_broker_is_emptied_or_it_is_said_why_not(
    cluster: tuple[list[Node], list[Placed]], data: st.DataObject
) -> None:
    nodes, partitions = cluster
    gone = data.draw(st.sampled_from([node.node_id for node in nodes]))
    fits = all(len(one.replicas) < len(nodes) or gone not in one.replicas for one in partitions)
    if not fits:
        with pytest.raises(TooFewBrokers):
            plan_moves(nodes, partitions, empty=[gone])
        return
    moves = plan_moves(nodes, partitions, empty=[gone], moves_replicas=False)
    after = carried_out(partitions, moves)
    assert all(gone not in one.replicas for one in after)
    assert sum(len(move.added) for move in moves) == sum(gone in one.replicas for one in partitions)


def test_a_broker_that_joined_gets_its_share() -> None:
    nodes = [Node(number) for number in (1, 2, 3, 4)]
    partitions = [
        Placed(TopicPartition("t", number), (number % 3 + 1, (number + 1) % 3 + 1), 1_000)
        for number in range(60)
    ]
    moves = plan_moves(nodes, partitions)
    after = shares(carried_out(partitions, moves), [1, 2, 3, 4])
    assert all(29 <= share.replicas <= 31 for share in after.values())
    assert all(14 <= share.leaders <= 16 for share in after.values())
    assert sum(len(move.added) for move in moves) <= 31, "no more moves than it gets replicas"


def test_replicas_in_one_rack_are_moved_apart() -> None:
    nodes = [Node(1, "a"), Node(2, "a"), Node(3, "b")]
    (move,) = plan_moves(nodes, [Placed(TopicPartition("t", 0), (1, 2))])
    assert racks_of(nodes, move.after) == 2


def test_bytes_count_as_well_as_numbers() -> None:
    nodes = [Node(1), Node(2)]
    heavy = [Placed(TopicPartition("h", number), (1,), 10**9) for number in range(2)]
    light = [Placed(TopicPartition("l", number), (2,), 10) for number in range(2)]
    after = shares(carried_out([*heavy, *light], plan_moves(nodes, [*heavy, *light])), [1, 2])
    assert abs(after[1].size_bytes - after[2].size_bytes) < 1_000


def test_a_few_bytes_make_no_difference() -> None:
    nodes = [Node(1), Node(2)]
    partitions = [Placed(TopicPartition("t", number), (number % 2 + 1,)) for number in range(8)]
    partitions[0] = partitions[0]._replace(size_bytes=10_000)
    assert plan_moves(nodes, partitions) == []

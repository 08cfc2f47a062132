"""The simple assignor is even, and sticky where that is even."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.share.assignor import assign
from ottla.model.uuid import Uuid

ORDERS, OTHER = Uuid(b"o" * 16), Uuid(b"p" * 16)


def spread(assigned: dict[str, Partitions]) -> list[int]:
    return [sum(map(len, partitions.values())) for partitions in assigned.values()]


@given(members=st.integers(1, 30), partitions=st.integers(1, 12), before=st.integers(0, 30))
def test_every_partition_has_a_member_and_every_member_a_partition(
    members: int, partitions: int, before: int
) -> None:
    assignable = {ORDERS: range(partitions)}
    had = assign({f"m{n}": frozenset((ORDERS,)) for n in range(before)}, {}, assignable)
    assigned = assign({f"m{n}": frozenset((ORDERS,)) for n in range(members)}, had, assignable)
    counts = [0] * partitions
    for one in assigned.values():
        for number in one.get(ORDERS, ()):
            counts[number] += 1
    assert min(counts) >= 1
    assert max(counts) <= -(-members // partitions)
    assert max(spread(assigned)) - min(spread(assigned)) <= 1 or members > partitions
    assert min(spread(assigned)) >= 1 or members > partitions
    if before == members:
        assert assigned == had, "nothing moves without a reason"


def test_different_subscriptions_are_shared_out_topic_by_topic() -> None:
    wanted = {"a": frozenset((ORDERS,)), "b": frozenset((OTHER,)), "c": frozenset((ORDERS, OTHER))}
    assigned = assign(wanted, {}, {ORDERS: range(4), OTHER: range(2)})
    assert spread(assigned) == [2, 1, 3]
    assert set(assigned["c"]) == {ORDERS, OTHER}


def test_only_what_has_a_state_is_assigned() -> None:
    assert assign({"a": frozenset((ORDERS, OTHER))}, {}, {ORDERS: (1,)}) == {"a": {ORDERS: frozenset((1,))}}

"""What holds for the client's assignors, whatever the group."""

import pytest
from hypothesis import given
from tests.property.consumer_members import check_complete, groups, kept, loads

from ottla.client.consumer.assignors import ASSIGNORS
from ottla.client.consumer.assignors.assignor import Members, PartitionCounts
from ottla.client.consumer.assignors.cooperative_sticky import assign_cooperatively
from ottla.client.consumer.assignors.sticky import assign_sticky


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky"])
@given(group=groups())
def test_every_partition_has_one_reader(strategy: str, group: tuple[Members, PartitionCounts]) -> None:
    check_complete(*group, ASSIGNORS[strategy].assign(*group))


@given(group=groups(same_topics=True))
def test_sticky_shares_differ_by_one_at_most_and_keep_all_they_can(
    group: tuple[Members, PartitionCounts],
) -> None:
    members, _ = group
    shares = assign_sticky(*group)
    counts = loads(shares)
    assert counts[-1] - counts[0] <= 1
    # Of what a member owned, no more leaves it than its share is smaller.
    least = counts[0]
    assert kept(members, shares) >= sum(min(len(item.owned), least) for item in members.values())


@given(group=groups())
def test_a_settled_group_stays_as_it_is(group: tuple[Members, PartitionCounts]) -> None:
    members, partitions = group
    shares = assign_sticky(members, partitions)
    note = ASSIGNORS["sticky"].note
    again = {name: item._replace(user_data=note(tuple(shares[name]), 4)) for name, item in members.items()}
    assert assign_sticky(again, partitions) == shares


@given(group=groups())
def test_a_partition_that_moves_is_given_up_before_it_is_given_out(
    group: tuple[Members, PartitionCounts],
) -> None:
    members, partitions = group
    first = assign_cooperatively(members, partitions)
    for name, share in first.items():
        others = {where for other, item in members.items() if other != name for where in item.owned}
        assert not others & set(share)
    settled = {name: item._replace(owned=tuple(first[name]), generation=4) for name, item in members.items()}
    check_complete(settled, partitions, assign_cooperatively(settled, partitions))

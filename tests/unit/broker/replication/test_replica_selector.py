"""A consumer reads from a replica in its rack, if that has what it wants and the leader is elsewhere."""

import pytest
from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler, Replica, ReplicaNode, partition_record
from tests.unit.storage.logs import NOW_MS, batch

from ottla.broker.logs.partition import Partition
from ottla.broker.replication.replica_selector import HERE, select_by_rack

RACKS = {1: "a", 2: "b", 3: "b"}


@pytest.fixture
def led() -> Partition:
    """A partition that node 1 leads. Node 2 has 10 records, and node 3 has 8 and starts at 5."""
    clock = ManualClock(NOW_MS)
    replica = Replica(ReplicaNode(1, clock, ManualScheduler(clock)))
    replica.follow(partition_record(1, (1, 2, 3), replicas=3))
    replica.append(batch(10))
    leading = replica.partition.leading
    assert leading is not None
    leading.note_fetch(leading.followers[2], 10, 0, 0, 102)
    leading.note_fetch(leading.followers[3], 8, 5, 0, 103)
    return replica.partition


@pytest.mark.parametrize(
    ("rack", "offset", "expected"),
    [("a", 0, HERE), ("b", 0, 2), ("b", 6, 2), ("b", 10, 2), ("b", 11, HERE), ("c", 0, HERE)],
)
def test_the_nearest_is_one_of_the_rack_that_has_most(
    led: Partition, rack: str, offset: int, expected: int
) -> None:
    assert select_by_rack(led, offset, rack, RACKS, 1) == expected


def test_only_replicas_in_sync_count(led: Partition) -> None:
    led.in_sync = frozenset((1, 3))
    assert select_by_rack(led, 6, "b", RACKS, 1) == 3
    assert select_by_rack(led, 0, "b", RACKS, 1) == HERE


def test_brokers_that_do_not_serve_do_not_count(led: Partition) -> None:
    assert select_by_rack(led, 6, "b", {1: "a", 3: "b"}, 1) == 3


def test_a_leader_that_knows_no_follower_reads_itself(led: Partition) -> None:
    led.leading = None
    assert select_by_rack(led, 0, "b", RACKS, 1) == HERE

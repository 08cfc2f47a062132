"""The shards of a node: which one serves a key, and who wins when elections come out of order."""

from tests.support.group_world import GroupWorld, MemoryLog

from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.runtime.shard import Shard, ShardStatus
from ottla.wire.error_code import ErrorCode


def test_without_the_topic_nobody_is_the_coordinator() -> None:
    """Apache Kafka 4.3.1 says so too, in all APIs of groups and of transactions."""
    shards = GroupWorld().coordinator.shards
    shards.partition_count = None
    assert shards.find("group") is ErrorCode.NOT_COORDINATOR


def test_a_key_is_served_by_the_shard_of_its_partition() -> None:
    shards = GroupWorld(partitions=5).coordinator.shards
    for key in ("a", "b", "payments", "😀"):
        shard = shards.find(key)
        assert isinstance(shard, Shard)
        assert shard.partition == partition_of_key(key, 5)


def test_another_nodes_partition_is_refused() -> None:
    shards = GroupWorld(partitions=2).coordinator.shards
    partition = partition_of_key("group", 2)
    shards.resign(partition, 1)
    assert shards.find("group") is ErrorCode.NOT_COORDINATOR
    assert [shard.partition for shard in shards] == [1 - partition]


def test_a_shard_that_loads_is_refused() -> None:
    shards = GroupWorld().coordinator.shards
    assert shards.elect(0, 2, MemoryLog()) is not None
    assert shards.find("group") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_an_older_election_changes_nothing() -> None:
    shards = GroupWorld().coordinator.shards
    before = shards.get(0)
    assert shards.elect(0, 1, MemoryLog()) is None
    assert shards.elect(0, 0, MemoryLog()) is None
    assert shards.get(0) is before


def test_a_newer_election_takes_the_place_of_the_shard() -> None:
    shards = GroupWorld().coordinator.shards
    before = shards.get(0)
    assert before is not None
    after = shards.elect(0, 2, MemoryLog())
    assert shards.get(0) is after
    assert before.status is ShardStatus.RESIGNED


def test_a_resignation_that_comes_late_does_not_end_a_newer_shard() -> None:
    shards = GroupWorld().coordinator.shards
    newer = shards.elect(0, 5, MemoryLog())
    shards.resign(0, 4)
    assert shards.get(0) is newer
    shards.resign(0, 5)
    assert shards.get(0) is None
    shards.resign(0, 9)

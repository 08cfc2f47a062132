"""Replaying records of consumer groups, also when compaction has left only some of them."""

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.reconciliation import Assignment, MemberState
from ottla.coordination.group.consumer.records import (
    TOMBSTONES,
    current_record,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
    regex_record,
    regex_tombstone,
    target_epoch_record,
    target_record,
)
from ottla.coordination.group.consumer.replay import consumer_replays
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.settings import ConsumerIntervals
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    CurrentTopicPartitions,
)
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import OffsetCommitKey

T = Uuid(b"topic T---------")
MEMBER = Member(
    "m", "i", "rack", "client", "/host", frozenset(("a", "b")), "a.*", 1_000, "range",
    assignment=Assignment(7, 6, MemberState.UNREVOKED_PARTITIONS, {T: {0: 5, 2: 7}}, {T: {1: 4}}),
)  # fmt: skip


def apply(groups: dict[str, Group], record: CoordinatorRecord) -> None:
    consumer_replays(groups)[type(record.key)](record.key, record.value, None)


def replayed(*records: CoordinatorRecord) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for record in records:
        apply(groups, record)
    return groups


def test_records_bring_back_what_they_were_made_of() -> None:
    resolved = ResolvedRegex(frozenset(("a1", "a2")), 17, 99)
    group = replayed(
        member_record("g", MEMBER),
        regex_record("g", "a.*", *resolved),
        epoch_record("g", 9, -5),
        target_record("g", "m", {T: frozenset((0, 1))}),
        target_epoch_record("g", 8, 123),
        current_record("g", MEMBER),
    )["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.members == {"m": MEMBER}
    assert group.static_members == {"i": "m"}
    assert (group.epoch, group.metadata_hash) == (9, -5)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (8, 123)
    assert group.targets == {"m": {T: frozenset((0, 1))}}
    assert group.resolved_regexes == {"a.*": resolved}
    assert group._holders == {T: {0: "m", 1: "m", 2: "m"}}


@pytest.mark.parametrize(
    "tombstone",
    [
        TOMBSTONES.current("g", "m"),
        TOMBSTONES.target("g", "m"),
        TOMBSTONES.member("g", "m"),
        TOMBSTONES.target_epoch("g"),
        partition_metadata_tombstone("g"),
        TOMBSTONES.group("g"),
        regex_tombstone("g", "a.*"),
    ],
)
def test_what_is_not_there_can_be_taken_away(tombstone: CoordinatorRecord) -> None:
    assert replayed(tombstone) == {}
    replayed(epoch_record("g", 2, 0), tombstone)


def test_a_member_may_be_taken_away_before_what_it_has() -> None:
    """Kafka's own coordinator would not load this; compaction does not make it, but other tools may."""
    there = member_record("g", MEMBER), current_record("g", MEMBER)
    group = replayed(*there, TOMBSTONES.member("g", "m"))["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.is_empty
    assert not group.is_held(T, 0)


def test_an_assignment_alone_makes_a_member() -> None:
    group = replayed(current_record("g", MEMBER))["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.members["m"].assignment == MEMBER.assignment


def test_the_end_of_a_group_takes_it_away() -> None:
    assert replayed(epoch_record("g", 2, 0), TOMBSTONES.group("g")) == {}


def test_records_before_4_3_have_no_assignment_epochs() -> None:
    topics = (CurrentTopicPartitions(topic_id=T, partitions=(0, 1), assignment_epochs=None),)
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    for epoch, expected in ((7, 7), (-2, 0)):
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=6,
            state=0,
            assigned_partitions=topics,
            partitions_pending_revocation=(),
        )
        group = replayed(CoordinatorRecord(key, value, 0))["g"]
        assert isinstance(group, ConsumerGroup)
        assert group.members["m"].assignment.assigned == {T: {0: expected, 1: expected}}


def test_partition_metadata_of_older_releases_is_taken_away_with_the_next_epoch() -> None:
    world = ConsumerWorld(orders=1)
    world.join("m")
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    world.logs[0].append(
        (CoordinatorRecord(key, ConsumerGroupPartitionMetadataValue(topics=()), 0),), None, True
    )
    world.sync()
    world.crash()
    world.heartbeat("m", 2)
    assert world.records()[-1] == CoordinatorRecord(key, None, -1)
    written = len(world.records())
    world.heartbeat("m", 2)
    assert len(world.records()) == written


def test_a_group_that_only_holds_offsets_gives_way() -> None:
    groups: dict[str, Group] = {"g": ClassicGroup("g")}
    record = epoch_record("g", 2, 0)
    apply(groups, record)
    assert isinstance(groups["g"], ConsumerGroup)


def test_records_of_other_kinds_are_not_for_consumer_groups() -> None:
    assert OffsetCommitKey not in consumer_replays({})


def test_a_member_that_changes_its_regex_is_counted_once() -> None:
    group = ConsumerGroup("g")
    group.put(MEMBER)
    group.put(MEMBER)
    assert (group.regex_counts["a.*"], group.name_counts["a"], group.assignor_counts["range"]) == (1, 1, 1)
    group.remove("m")
    assert not group.regex_counts
    assert not group.name_counts
    assert not group.assignor_counts


def test_an_old_owner_that_is_replayed_late_does_not_free_the_partition() -> None:
    group = ConsumerGroup("g")
    group.put(Member("old", assignment=Assignment(2, 1, assigned={T: {0: 2}})))
    group.put(Member("new", assignment=Assignment(3, 2, assigned={T: {0: 3}})))
    group.put(Member("old", assignment=Assignment(3, 2)))
    assert group._holders[T][0] == "new"


def test_loading_gives_the_group_that_was_served() -> None:
    world = ConsumerWorld(apples=4, pears=2)
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    world.join("a", "apples", instance_id="i")
    world.join("b", subscribed_topic_regex="p.*")
    world.heartbeat("a", 2, instance_id="i", owned={})
    world.heartbeat("b", 2)
    world.heartbeat("a", -2, instance_id="i")
    served = world.group()
    world.crash()
    loaded = world.group()
    for name in ("members", "static_members", "targets", "resolved_regexes", "epoch", "metadata_hash",
                 "assignment_epoch", "assignment_timestamp_ms", "name_counts", "regex_counts"):  # fmt: skip
        assert getattr(loaded, name) == getattr(served, name), name

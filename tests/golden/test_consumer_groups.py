"""Consumer groups in directories that Apache Kafka wrote: loaded, and written again byte by byte."""

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.golden.directories import golden_directory
from tests.golden.metadata_logs import read_log
from tests.simulation.consumer_groups.checks import StrictReplay
from tests.support.group_world import FixedTopics

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    regex_record,
    target_epoch_record,
    target_record,
)
from ottla.coordination.group.consumer.replay import consumer_replays
from ottla.coordination.group.environment import TopicFacts
from ottla.coordination.group.kinds import Group
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.wire.coordinator_records import consumer_group
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.declare import replace
from ottla.wire.metadata_records.partitions import PartitionRecord
from ottla.wire.metadata_records.topics import TopicRecord

ARCHIVES = ("01-clean", "03-killed9")


def logged(archive: str) -> Iterator[list[CoordinatorRecord]]:
    """Return the records of consumer groups, batch by batch."""
    for path in sorted(golden_directory(archive).glob("__consumer_offsets-*/*.log")):
        for batch in iter_batches(memoryview(path.read_bytes())):
            if batch.is_control:
                continue
            records = []
            for record in iter_batch_records(batch):
                assert record.key is not None
                decoded = GROUP_RECORDS.decode(record.key, record.value)
                assert isinstance(decoded, CoordinatorRecord)
                if type(decoded.key).__name__.startswith("ConsumerGroup"):
                    records.append(decoded)
            if records:
                yield records


def written_again(group: ConsumerGroup, record: CoordinatorRecord) -> CoordinatorRecord:
    """Return the record that we would write for what a record of Kafka's has told us."""
    key, group_id = record.key, group.group_id
    match key:
        case consumer_group.ConsumerGroupMemberMetadataKey():
            return member_record(group_id, group.members[key.member_id])
        case consumer_group.ConsumerGroupMetadataKey():
            return epoch_record(group_id, group.epoch, group.metadata_hash)
        case consumer_group.ConsumerGroupTargetAssignmentMemberKey():
            return target_record(group_id, key.member_id, group.targets[key.member_id])
        case consumer_group.ConsumerGroupTargetAssignmentMetadataKey():
            return target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms)
        case consumer_group.ConsumerGroupCurrentMemberAssignmentKey():
            return current_record(group_id, group.members[key.member_id])
        case _:
            regex = key.regular_expression
            return regex_record(group_id, regex, *group.resolved_regexes[regex])


def in_order(record: CoordinatorRecord) -> CoordinatorRecord:
    """Sort the topics of an assignment: Kafka takes them from a hash map."""
    value = record.value
    for name in ("topic_partitions", "assigned_partitions", "partitions_pending_revocation"):
        if hasattr(value, name):
            value = replace(value, **{name: tuple(sorted(getattr(value, name)))})
    return record._replace(value=value)


@pytest.mark.parametrize("archive", ARCHIVES)
def test_what_a_record_tells_is_written_as_the_same_bytes(archive: str) -> None:
    groups: dict[str, Group] = {}
    kinds = set()
    for batch in logged(archive):
        for record in batch:
            consumer_replays(groups)[type(record.key)](record.key, record.value, None)
            if record.value is not None:
                group = groups[record.key.group_id]
                assert isinstance(group, ConsumerGroup)
                ours = written_again(group, record)
                assert GROUP_RECORDS.encode_key(ours.key) == GROUP_RECORDS.encode_key(record.key)
                theirs = in_order(record)
                assert GROUP_RECORDS.encode_value(ours.value, ours.value_version) == (
                    GROUP_RECORDS.encode_value(theirs.value, theirs.value_version)
                )
                kinds.add(type(record.value))
    assert len(kinds) == 6, "every kind of record that Kafka still writes"
    assert all(group.state_name == "Empty" for group in groups.values())


def known_topics(archive: str) -> FixedTopics:
    """Return the topics that the metadata log of an archive tells of."""
    names: dict[Uuid, str] = {}
    partitions: Counter[Uuid] = Counter()
    for batch in read_log(golden_directory(archive) / "__cluster_metadata-0"):
        for record in batch.records:
            if isinstance(record, TopicRecord):
                names[record.topic_id] = record.name
            elif isinstance(record, PartitionRecord):
                partitions[record.topic_id] += 1
    topics = FixedTopics()
    topics.facts = {name: TopicFacts(name, key, partitions[key]) for key, name in names.items()}
    return topics


@pytest.mark.parametrize("archive", ARCHIVES)
def test_hashes_of_topics_are_those_that_kafka_computed(archive: str) -> None:
    hashes = MetadataHashes(known_topics(archive))
    groups: dict[str, Group] = {}
    compared = 0
    for batch in logged(archive):
        for record in batch:
            consumer_replays(groups)[type(record.key)](record.key, record.value, None)
        for record in batch:
            if isinstance(record.value, consumer_group.ConsumerGroupMetadataValue):
                group = groups[record.key.group_id]
                assert isinstance(group, ConsumerGroup)
                subscribed = {topic for member in group.members.values() for topic in group.topics_of(member)}
                assert hashes.of_group(subscribed) == record.value.metadata_hash
                compared += bool(subscribed)
    assert compared > 2


@pytest.mark.parametrize("archive", ARCHIVES)
def test_our_notion_of_what_kafka_loads_fits_what_kafka_wrote(archive: str) -> None:
    strict = StrictReplay()
    for batch in logged(archive):
        for record in batch:
            strict.replay(record)

"""Topics in answers to Metadata: the very bytes that a plain encoding gives, and each encoded only once."""

import pytest

from ottla.broker.cluster.metadata_answers import DescribedTopics
from ottla.metadata.topics import Topic
from ottla.model.uuid import Uuid
from ottla.wire.codec import encode
from ottla.wire.declare import replace, spec_of
from ottla.wire.encoded_items import as_array
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.metadata_records.partitions import PartitionRecord

LIVING = frozenset((1, 2))
OPERATIONS = -2147483648
ORDERS = Uuid(bytes(range(16)))
PAYMENTS = Uuid(bytes(range(1, 17)))


def record(topic_id: Uuid, number: int, leader: int = 1, replicas: tuple[int, ...] = (1,)) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas[:1],
        removing_replicas=(),
        adding_replicas=(),
        leader=leader,
        leader_epoch=number // 100,
        partition_epoch=0,
        directories=(),
    )


def orders() -> Topic:
    """Partitions that look alike, and all that make a difference: other leaders, no leader, dead replicas."""
    records = [record(ORDERS, number) for number in range(300)]
    records += [record(ORDERS, 300, 2, (2, 1)), record(ORDERS, 301, 3, (3, 1)), record(ORDERS, 302, -1)]
    records += [record(ORDERS, 303, 2, (2, 3))]
    return Topic("orders", ORDERS, {one.partition_id: one for one in records})


def offsets() -> Topic:
    return Topic("__consumer_offsets", PAYMENTS, {0: record(PAYMENTS, 0)})


def plainly(topic: Topic, version: int = 1) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name.startswith("__"),
        partitions=tuple(
            MetadataResponsePartition(
                error_code=error_of(one, version),
                partition_index=one.partition_id,
                leader_id=one.leader if one.leader in LIVING else -1,
                leader_epoch=one.leader_epoch,
                replica_nodes=available(one.replicas, version),
                isr_nodes=available(one.isr, version),
                offline_replicas=tuple(set(one.replicas) - LIVING),
            )
            for one in topic.partitions.values()
        ),
    )


def error_of(one: PartitionRecord, version: int) -> ErrorCode:
    if one.leader not in LIVING:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if version == 0 and not LIVING.issuperset(one.replicas):
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE


def available(replicas: tuple[int, ...], version: int) -> tuple[int, ...]:
    """The first version has no field for replicas that are offline, and leaves them out."""
    return replicas if version > 0 else tuple(replica for replica in replicas if replica in LIVING)


@pytest.mark.parametrize("version", list(spec_of(MetadataResponse).versions))
def test_topics_are_the_bytes_of_a_plain_encoding(version: int) -> None:
    topics = (orders(), offsets())
    described = DescribedTopics().describe(topics, LIVING, OPERATIONS, version)

    answer = MetadataResponse(brokers=(), topics=as_array(2, b"".join(described)))
    expected = MetadataResponse(brokers=(), topics=tuple(plainly(one, version) for one in topics))
    assert encode(answer, version) == encode(expected, version)


def test_only_a_topic_that_changed_is_encoded_anew() -> None:
    kept = DescribedTopics()
    before, other = orders(), offsets()
    first, untouched = kept.describe((before, other), LIVING, OPERATIONS, 12)
    after = before._replace(
        partitions={**before.partitions, 7: replace(before.partitions[7], leader=2, leader_epoch=9)}
    )

    second, again = kept.describe((after, other), LIVING, OPERATIONS, 12)

    assert again is untouched
    assert second != first
    assert second == DescribedTopics().describe((after,), LIVING, OPERATIONS, 12)[0]


def test_what_is_kept_for_some_brokers_or_operations_is_not_told_with_others() -> None:
    kept = DescribedTopics()
    [all_living] = kept.describe((orders(),), LIVING, OPERATIONS, 12)

    assert kept.describe((orders(),), frozenset((2,)), OPERATIONS, 12) != [all_living]
    assert kept.describe((orders(),), LIVING, 0xDF8, 12) != [all_living]


def test_topics_that_take_too_much_room_are_described_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.cluster.metadata_answers.BYTES_MAX", 1000)
    kept = DescribedTopics()

    first = kept.describe((orders(), offsets()), LIVING, OPERATIONS, 12)

    assert kept.describe((orders(), offsets()), LIVING, OPERATIONS, 12) == first

"""CreateTopics and CreatePartitions. That the answers are Kafka's is tested against a live one."""

import pytest
from tests.support.deciding import DecidingController, directory_of, new_topic, registration

from ottla.metadata.directory_ids import UNASSIGNED
from ottla.metadata.features import default_levels
from ottla.quorum.controller.topics.new_topics import decide_create_partitions, decide_create_topics
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionRecord
from ottla.wire.metadata_records.topics import TopicRecord


def grow(name: str, count: int, *assignments: tuple[int, ...]) -> CreatePartitionsRequest:
    chosen = tuple(CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments)
    topic = CreatePartitionsTopic(name=name, partition_count=count, assignments=chosen or None)
    return CreatePartitionsRequest(topics=(topic,), timeout_ms=0, validate_only=False)


def test_records_of_a_topic_come_in_kafkas_order() -> None:
    controller = DecidingController()
    controller.create(new_topic("t", 2, 1, configs={"retention.ms": "5", "min.insync.replicas": "1"}))
    kinds = [type(record) for record in controller.records]
    assert kinds == [
        TopicRecord, ConfigRecord, ConfigRecord, ClearElrRecord, PartitionRecord, PartitionRecord,
    ]  # fmt: skip


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    brokers = [registration(0, fenced=True), registration(1), registration(2)]
    controller = DecidingController(brokers)
    topic = controller.have("t", (0, 1, 2))
    partition = topic.partitions[0]
    assert partition.replicas == (0, 1, 2)
    assert partition.isr == (1, 2)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 0)
    assert partition.directories == tuple(map(directory_of, (0, 1, 2)))


def test_a_broker_with_several_directories_chooses_one_itself() -> None:
    controller = DecidingController([registration(0, directories=2)])
    assert controller.have("t", (0,)).partitions[0].directories == (UNASSIGNED,)


def test_topics_that_are_refused_spoil_no_other() -> None:
    controller = DecidingController()
    good, bad, again = controller.create(
        new_topic("good", 1, 1), new_topic("bad", 1, 5), new_topic("more", 1, 1)
    )
    assert (good.error_code, again.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert bad.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert set(controller.image.topics.names) == {"good", "more"}


def test_defaults_are_those_of_the_node() -> None:
    controller = DecidingController(configs={"num.partitions": "7"})
    (result,) = controller.create(new_topic("t"))
    assert (result.num_partitions, result.replication_factor) == (7, 1)
    assert len(controller.topic("t").partitions) == 7


def test_the_answer_has_the_id_that_the_topic_got() -> None:
    controller = DecidingController()
    (result,) = controller.create(new_topic("t", 1, 1))
    assert result.topic_id == controller.topic("t").id


def test_only_checking_writes_nothing() -> None:
    controller = DecidingController()
    ask = CreateTopicsRequest(topics=(new_topic("t", 1, 1),), validate_only=True)
    reply = controller.ask(decide_create_topics, ask)
    assert reply.topics[0].error_code is ErrorCode.NONE
    assert not controller.records


def test_two_names_that_metrics_could_not_tell_apart_are_not_allowed() -> None:
    controller = DecidingController()
    controller.have("a.b", (0,))
    (result,) = controller.create(new_topic("a_b", 1, 1))
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    (result,) = controller.create(new_topic("a-b", 1, 1))
    assert result.error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ([new_topic("a", 10_001, 1)], ErrorCode.POLICY_VIOLATION),
        ([new_topic("a", 6_000, 1), new_topic("b", 6_000, 1)], ErrorCode.POLICY_VIOLATION),
        ([new_topic("a", 10_000, 1)], ErrorCode.POLICY_VIOLATION),
        ([new_topic("a", 9_999, 1)], ErrorCode.NONE),
    ],
    ids=["too many", "too many together", "too many records", "just enough"],
)
def test_one_request_makes_so_many_records_at_most(topics: list[CreatableTopic], expected: ErrorCode) -> None:
    controller = DecidingController()
    assert {result.error_code for result in controller.create(*topics)} == {expected}


def test_partitions_are_numbered_on() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1), (1, 0))
    reply = controller.ask(decide_create_partitions, grow("t", 5))
    assert reply.results[0].error_code is ErrorCode.NONE
    topic = controller.topic("t")
    assert sorted(topic.partitions) == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in topic.partitions.values()} == {2}


def test_added_partitions_lie_where_they_are_put() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0,))
    controller.ask(decide_create_partitions, grow("t", 3, (1,), (0,)))
    assert [controller.partition("t", number).replicas for number in range(3)] == [(0,), (1,), (0,)]


def test_with_an_old_metadata_version_no_eligible_leaders_are_cleared() -> None:
    controller = DecidingController(features=default_levels(21))
    controller.create(new_topic("t", 1, 1, configs={"min.insync.replicas": "1"}))
    assert not any(isinstance(record, ClearElrRecord) for record in controller.records)

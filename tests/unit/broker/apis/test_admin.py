"""What the handlers of admin APIs add to the controller's decisions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.deciding import new_topic
from tests.support.in_process import InProcessClient, in_process_node

from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

TOPIC, BROKER_LOGGER = 2, 8


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InProcessClient]:
    with in_process_node(tmp_path, {"delete.topic.enable": "false"}) as node:
        client = InProcessClient(node)
        assert client.ask(CreateTopicsRequest(topics=(new_topic("t", 2, 1),))).topics[0].error_code == 0
        yield client


def test_a_topic_is_there_when_its_creation_is_answered(client: InProcessClient) -> None:
    (topic,) = client.ask(MetadataRequest(topics=None)).topics
    assert (topic.name, len(topic.partitions)) == ("t", 2)
    assert {partition.error_code for partition in topic.partitions} == {ErrorCode.NONE}


def test_a_missing_topic_is_created_and_still_unknown_in_the_answer(client: InProcessClient) -> None:
    ask = MetadataRequest(topics=(MetadataRequestTopic(name="missing"),))
    (topic,) = client.ask(ask).topics
    assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    # Decisions are committed in their order: when this one is, so is the creation of the missing topic.
    client.ask(CreateTopicsRequest(topics=(new_topic("later", 1, 1),)))
    (topic,) = client.ask(ask).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(
    ("version", "expected"),
    [(1, ErrorCode.INVALID_REQUEST), (2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_first_versions_do_not_know_that_deleting_can_be_disabled(
    client: InProcessClient, version: int, expected: ErrorCode
) -> None:
    ask = DeleteTopicsRequest(topic_names=("t",), timeout_ms=0)
    assert client.ask(ask, version).responses[0].error_code is expected


def test_log_levels_are_changed_here_and_configs_by_the_controller(client: InProcessClient) -> None:
    def resource(kind: int, name: str, key: str, value: str) -> AlterConfigsResource:
        config = AlterableConfig(name=key, config_operation=0, value=value)
        return AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))

    ask = IncrementalAlterConfigsRequest(
        resources=(
            resource(BROKER_LOGGER, "1", "root", "WARN"),
            resource(TOPIC, "t", "retention.ms", "5"),
            resource(BROKER_LOGGER, "1", "no.such.logger", "WARN"),
            resource(BROKER_LOGGER, "77", "root", "WARN"),
        ),
        validate_only=True,
    )
    answers = {(one.resource_type, one.resource_name, one.error_code) for one in client.ask(ask).responses}
    assert (TOPIC, "t", ErrorCode.NONE) in answers
    assert (BROKER_LOGGER, "77", ErrorCode.INVALID_REQUEST) in answers
    assert len(client.ask(ask).responses) == 4


def test_who_asks_for_topics_by_id_does_not_ask_by_name(client: InProcessClient) -> None:
    (topic,) = client.ask(MetadataRequest(topics=None)).topics
    by_id = MetadataRequestTopic(name=None, topic_id=topic.topic_id)
    by_name = MetadataRequestTopic(name="other", topic_id=ZERO_UUID)
    answer = client.ask(MetadataRequest(topics=(by_name, by_id), allow_auto_topic_creation=False))
    assert [one.name for one in answer.topics] == ["t"]
    (other,) = client.ask(MetadataRequest(topics=(by_name,), allow_auto_topic_creation=False)).topics
    assert other.name == "other"


def test_a_log_whose_topic_name_is_too_long_for_a_copy_stays_where_it_is(client: InProcessClient) -> None:
    names = ("x" * 249, "t")
    topics = tuple(AlterReplicaLogDirTopic(name=name, partitions=(0,)) for name in names)
    ask = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path="/no/such/directory", topics=topics),))
    answers = {one.topic_name: one.partitions[0].error_code for one in client.ask(ask).results}
    assert answers == dict(
        zip(names, (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.LOG_DIR_NOT_FOUND), strict=True)
    )


def test_nobody_can_unregister_the_node_that_serves_them(
    client: InProcessClient, caplog: pytest.LogCaptureFixture
) -> None:
    (broker,) = client.ask(MetadataRequest(topics=())).brokers
    answer = client.ask(UnregisterBrokerRequest(broker_id=broker.node_id))
    assert answer.error_code is ErrorCode.POLICY_VIOLATION
    (topic,) = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),))).topics
    assert {partition.leader_id for partition in topic.partitions} == {broker.node_id}
    assert "refused to unregister a broker that is alive" in caplog.text


def manual(
    name: str, *assignments: tuple[int, tuple[int, ...]], partitions: int = -1, factor: int = -1
) -> Any:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=replicas)
            for number, replicas in assignments
        ),
        configs=(),
    )


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        (manual("x", (1, (0,))), "partitions should be a consecutive 0-based integer sequence"),
        (manual("x", (0, ())), "The manual partition assignment includes an empty replica list."),
        (manual("x", (0, (0, 0))), "The manual partition assignment includes the broker 0 more than once."),
        (
            manual("x", (0, (99,))),
            "The manual partition assignment includes broker 99, but no such broker is registered.",
        ),
        (manual("x", (0, (0,)), (0, (0,))), "Found multiple manual partition assignments for partition 0"),
        (
            manual("x", (0, (0,)), partitions=2),
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            manual("x", (0, (0,)), factor=2),
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (manual("x", partitions=0), "Number of partitions was set to an invalid non-positive value."),
        (manual("x", factor=0), "Replication factor must be larger than 0, or -1 to use the default value."),
    ],
)
def test_refused_topics_get_the_messages_of_apache_kafka(
    client: InProcessClient, topic: CreatableTopic, text: str
) -> None:
    """These are the answers of Apache Kafka 4.3.1: people and tools look for them."""
    (answer,) = client.ask(CreateTopicsRequest(topics=(topic,))).topics
    assert answer.error_message == text


@pytest.mark.parametrize(
    ("count", "assignments", "text"),
    [
        (4, ((0,),), "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        (3, ((),), "The manual partition assignment includes an empty replica list."),
        (3, ((0, 0),), "The manual partition assignment includes the broker 0 more than once."),
        (
            3,
            ((99,),),
            "The manual partition assignment includes broker 99, but no such broker is registered.",
        ),
    ],
)
def test_refused_partitions_get_the_messages_of_apache_kafka(
    client: InProcessClient, count: int, assignments: tuple[tuple[int, ...], ...], text: str
) -> None:
    asked = CreatePartitionsTopic(
        name="t",
        partition_count=count,
        assignments=tuple(CreatePartitionsAssignment(broker_ids=one) for one in assignments),
    )
    ask = CreatePartitionsRequest(topics=(asked,), timeout_ms=1000, validate_only=True)
    (answer,) = client.ask(ask).results
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def test_credentials_that_are_not_there_get_the_messages_of_apache_kafka(
    client: InProcessClient,
) -> None:
    users = tuple(UserName(name=name) for name in ("bob", "carol", "carol"))
    answer = client.ask(DescribeUserScramCredentialsRequest(users=users))
    assert {result.user: result.error_message for result in answer.results} == {
        "bob": "Attempt to describe a user credential that does not exist: bob",
        "carol": "Cannot describe SCRAM credentials for the same user twice in a single request: carol",
    }

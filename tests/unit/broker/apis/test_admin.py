"""What the handlers of admin APIs add to the controller's decisions."""

from collections.abc import Iterator
from pathlib import Path

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
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
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

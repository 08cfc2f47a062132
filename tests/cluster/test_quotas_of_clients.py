"""Clients over their quota are told to wait, and are not listened to meanwhile."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_request, produce_request
from tests.support.in_process import InProcessClient, in_process_node
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.broker.lifecycle.startup import Node
from ottla.model.uuid import ZERO_UUID
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    QuotaAlteration,
    QuotaOperation,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path) as node:
        create_topic(InProcessClient(node), "t")
        yield node


def limit(node: Node, key: str, value: float) -> None:
    change = QuotaAlteration(
        entity=(EntityData(entity_type="client-id", entity_name="test"),),
        ops=(QuotaOperation(key=key, value=value, remove=False),),
    )
    answer = InProcessClient(node).ask(AlterClientQuotasRequest(entries=(change,), validate_only=False))
    assert answer.entries[0].error_code is ErrorCode.NONE


def test_a_producer_over_its_quota_is_slowed_down(node: Node) -> None:
    limit(node, "producer_byte_rate", 1000)
    client = InProcessClient(node)
    request = produce_request("t", batch_of(b"x" * 8000))
    assert client.ask(request, 12).throttle_time_ms == 0
    answer = client.ask(request, 12)
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE, "it was appended"
    assert answer.throttle_time_ms > 0
    assert client.muted_ms[-1] == answer.throttle_time_ms


def test_a_consumer_over_its_quota_gets_nothing_until_it_has_waited(node: Node) -> None:
    client = InProcessClient(node)
    for _ in range(3):
        client.ask(produce_request("t", batch_of(b"x" * 8000)), 12)
    limit(node, "consumer_byte_rate", 1000)
    assert len(client.ask(fetch_request("t", 0), 12).responses[0].partitions[0].records) <= 10_000

    answer = client.ask(fetch_request("t", 1), 12)

    assert answer.responses == ()
    assert answer.throttle_time_ms > 0
    assert client.muted_ms == [answer.throttle_time_ms]


def test_a_client_that_takes_too_much_time_is_slowed_down(node: Node) -> None:
    limit(node, "request_percentage", 0.000001)
    client = InProcessClient(node)
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    answer = client.ask(
        ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(asked,)),))
    )
    assert answer.throttle_time_ms == 1000
    assert client.muted_ms == [1000]


def test_others_are_not_concerned(node: Node) -> None:
    limit(node, "producer_byte_rate", 1)
    client = InProcessClient(node)
    answer = client.ask(produce_request("t", batch_of(b"x" * 8000)), 12, client_id="somebody else")
    assert answer.throttle_time_ms == 0
    assert client.muted_ms == []


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)


def test_who_creates_too_many_partitions_is_refused(node: Node) -> None:
    limit(node, "controller_mutation_rate", 1)
    client = InProcessClient(node)
    answer = client.ask(creation("large", 50))
    assert answer.topics[0].error_code is ErrorCode.NONE
    assert answer.throttle_time_ms == 0

    answer = client.ask(creation("another", 1))

    assert answer.topics[0].error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 0 < answer.throttle_time_ms <= 39_000
    assert client.muted_ms == [answer.throttle_time_ms]
    state = DeleteTopicState(name="large", topic_id=ZERO_UUID)
    deleted = client.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=1000))
    assert deleted.responses[0].error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    more = CreatePartitionsTopic(name="large", partition_count=51, assignments=None)
    added = client.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False))
    assert added.results[0].error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_topics_that_are_created_on_demand_are_charged_too(node: Node) -> None:
    limit(node, "controller_mutation_rate", 1)
    client = InProcessClient(node)
    assert client.ask(creation("large", 50)).topics[0].error_code is ErrorCode.NONE

    ask = MetadataRequest(topics=(MetadataRequestTopic(name="on-demand"),))
    client.ask(ask)

    assert client.muted_ms == []
    [coordinator] = client.ask(FindCoordinatorRequest(coordinator_keys=("group",))).coordinators
    assert coordinator.error_code is ErrorCode.NONE
    # The topic of the coordinator was decided on later and is there; the other one was refused.
    [topic] = client.ask(ask).topics
    assert topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_older_versions_do_what_they_are_asked_and_have_to_wait(node: Node) -> None:
    limit(node, "controller_mutation_rate", 1)
    client = InProcessClient(node)
    answer = client.ask(creation("large", 50), 5)
    assert answer.topics[0].error_code is ErrorCode.NONE
    assert 0 < answer.throttle_time_ms <= 39_000
    answer = client.ask(creation("another", 1), 5)
    assert answer.topics[0].error_code is ErrorCode.NONE
    assert client.muted_ms[-1] == answer.throttle_time_ms > 0


def test_who_connects_too_often_is_turned_away(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as ottla, PlainClient(ottla.bootstrap) as client:
        change = QuotaAlteration(
            entity=(EntityData(entity_type="ip", entity_name="127.0.0.1"),),
            ops=(QuotaOperation(key="connection_creation_rate", value=1, remove=False),),
        )
        client.ask(AlterClientQuotasRequest(entries=(change,), validate_only=False))
        served = 0
        with contextlib.suppress(ConnectionError):
            for _ in range(30):
                with PlainClient(ottla.bootstrap) as another:
                    another.ask(ApiVersionsRequest())
                served += 1
        assert 10 <= served < 30
        client.ask(ApiVersionsRequest())


def test_a_node_accepts_no_faster_than_it_is_told(tmp_path: Path) -> None:
    with OttlaNode(tmp_path, {"max.connection.creation.rate": "1"}) as ottla:
        for _ in range(12):
            with PlainClient(ottla.bootstrap) as client:
                client.ask(ApiVersionsRequest())


def test_the_time_of_other_nodes_and_of_writes_that_nobody_waits_for_does_not_count(node: Node) -> None:
    limit(node, "request_percentage", 0.000001)
    client = InProcessClient(node)
    client.ask(fetch_request("t", 0, replica_id=1), 12)
    unanswered = produce_request("t", batch_of(b"x"), acks=0)
    client.send(encode_request(unanswered, api_of(ApiKey.PRODUCE), 12, 1, "test"))
    assert client.muted_ms == []
    client.ask(fetch_request("t", 0), 12)
    assert client.muted_ms == [1000]

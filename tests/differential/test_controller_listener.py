"""The listener of the controller answers as Apache Kafka's does: envelopes, and the APIs of admin clients."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.java.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.java.oracle import Oracle
from tests.java.recorded_broker import RecordedBroker
from tests.support.mixed_cluster import wait_until
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.security.principal import Principal
from ottla.security.principal_data import encode_principal
from ottla.testing.ports import free_port
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.envelope import EnvelopeRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_groups import ListGroupsRequest

ALICE = encode_principal(Principal("User", "alice"))
HOST = bytes((192, 0, 2, 7))


class Pair:
    """The listeners of two controllers, one of each kind."""

    def __init__(self, kafka: RecordedBroker, ottla: str) -> None:
        self._kafka = kafka
        self._ottla = ottla

    def ask(self, request: Any, version: int | None = None) -> tuple[Any, Any]:
        with self._kafka.client() as theirs, PlainClient(self._ottla) as ours:
            return theirs.ask(request, version), ours.ask(request, version)


@pytest.fixture(scope="module")
def apache_controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ApacheKafka(tmp_path_factory.mktemp("apache")) as kafka:
        yield f"127.0.0.1:{kafka.controller_port}"


@pytest.fixture(scope="module")
def ottla_controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:1,CONTROLLER://{address}"}
    options = ["--standalone", "--cluster-id", CLUSTER_ID]
    with OttlaNode(tmp_path_factory.mktemp("ottla"), settings, options=options):
        yield address


@pytest.fixture
def pair(request: pytest.FixtureRequest, oracle: Oracle, ottla_controller: str) -> Pair:
    kafka = RecordedBroker(oracle, lambda: request.getfixturevalue("apache_controller"))
    return Pair(kafka, ottla_controller)


def test_the_same_apis_are_served(pair: Pair) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    theirs, ours = pair.ask(request)
    assert sorted(ours.api_keys) == sorted(theirs.api_keys)


@pytest.mark.parametrize("endpoint_type", [1, 2, 3])
def test_controllers_are_listed_as_kafka_lists_them(pair: Pair, endpoint_type: int) -> None:
    theirs, ours = pair.ask(
        DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
    )
    assert (ours.error_code, ours.endpoint_type, ours.cluster_id, ours.controller_id) == (
        theirs.error_code,
        theirs.endpoint_type,
        theirs.cluster_id,
        theirs.controller_id,
    )
    assert [(one.broker_id, one.host) for one in ours.brokers] == [
        (one.broker_id, one.host) for one in theirs.brokers
    ]


def sealed(request: Any, key: ApiKey, version: int, **changes: Any) -> EnvelopeRequest:
    frame = encode_request(request, api_of(key), version, 5, "a-client")[4:]
    fields = {"request_data": frame, "request_principal": ALICE, "client_host_address": HOST, **changes}
    return EnvelopeRequest(**fields)


def creation(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(topic,))


@pytest.mark.parametrize("version", [5, 7])
def test_a_request_in_an_envelope_is_served(pair: Pair, version: int) -> None:
    request = sealed(creation(f"sealed-{version}"), ApiKey.CREATE_TOPICS, version)
    opened = []
    for answer in pair.ask(request):
        assert answer.error_code is ErrorCode.NONE
        correlation_id, response = decode_response(
            api_of(ApiKey.CREATE_TOPICS), version, answer.response_data
        )
        (topic,) = response.topics
        opened.append((correlation_id, topic.name, topic.error_code, topic.num_partitions))
    assert opened[0] == opened[1] == (5, f"sealed-{version}", ErrorCode.NONE, 2)


REFUSED: dict[str, Callable[[], EnvelopeRequest]] = {
    "not forwardable": lambda: sealed(ListGroupsRequest(), ApiKey.LIST_GROUPS, 4),
    "an envelope": lambda: sealed(sealed(creation("x"), ApiKey.CREATE_TOPICS, 7), ApiKey.ENVELOPE, 0),
    "no principal": lambda: sealed(creation("x"), ApiKey.CREATE_TOPICS, 7, request_principal=None),
    "half a principal": lambda: sealed(creation("x"), ApiKey.CREATE_TOPICS, 7, request_principal=ALICE[:-3]),
    "no such principal": lambda: sealed(creation("x"), ApiKey.CREATE_TOPICS, 7, request_principal=b"\0\x09"),
    "half an address": lambda: sealed(creation("x"), ApiKey.CREATE_TOPICS, 7, client_host_address=HOST[:3]),
    "no request": lambda: EnvelopeRequest(
        request_data=b"", request_principal=ALICE, client_host_address=HOST
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_envelopes_are_refused_as_kafka_refuses_them(pair: Pair, name: str) -> None:
    theirs, ours = pair.ask(REFUSED[name]())
    assert (ours.error_code, ours.response_data) == (theirs.error_code, theirs.response_data)
    assert ours.error_code is not ErrorCode.NONE


def test_the_controller_is_asked_without_a_broker(pair: Pair) -> None:
    for answer in pair.ask(creation("without-a-broker")):
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE]
    change = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resource = AlterConfigsResource(resource_type=2, resource_name="without-a-broker", configs=(change,))
    for answer in pair.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)):
        assert [one.error_code for one in answer.responses] == [ErrorCode.NONE]
    asked = DescribeConfigsResource(
        resource_type=2, resource_name="without-a-broker", configuration_keys=("retention.ms",)
    )

    def have_changed() -> bool:
        answers = pair.ask(DescribeConfigsRequest(resources=(asked,)))
        found = [[one.value for one in result.configs] for answer in answers for result in answer.results]
        return found == [["1000"], ["1000"]]

    # Apache Kafka's controller publishes a change to itself a little later than it answers.
    wait_until(have_changed, "both controllers have the change")

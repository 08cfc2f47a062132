"""DescribeConfigs answers each resource on its own. What it tells is tested with `describe`."""

from typing import Any, cast

import pytest

from ottla.broker.apis.configs.describe_configs import describe_configs
from ottla.broker.apis.configs.list_config_resources import list_config_resources
from ottla.broker.node import BrokerContext
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.image import EMPTY_IMAGE, ConfigResource, MetadataImage
from ottla.metadata.topics import Topic, Topics
from ottla.model.uuid import Uuid
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC_ID = Uuid(b"0123456789abcdef")


class FakeBroker:
    """As much of a broker as these handlers use."""

    def __init__(self) -> None:
        self.node_id = 0
        self.configs: EffectiveConfigs = load_node_config().configs
        self.image: MetadataImage = EMPTY_IMAGE._replace(
            brokers=cast("Any", {0: None, 7: None}),
            topics=Topics({TOPIC_ID: Topic(name="t", id=TOPIC_ID, partitions={})}, {"t": TOPIC_ID}),
            configs={
                ConfigResource(ResourceType.TOPIC, "t"): {"retention.ms": "5"},
                ConfigResource(ResourceType.GROUP, "g"): {"consumer.session.timeout.ms": "50000"},
                ConfigResource(ResourceType.CLIENT_METRICS, "m"): {"metrics": "*"},
            },
        )


class FakeClient:
    """A client that is never told to wait."""

    listener_name = "PLAINTEXT"
    local = ("127.0.0.1", 9092)
    peer_host = "127.0.0.1"
    peer_port = 50_000

    def has_hung_up(self) -> bool:
        return False

    def mute(self, milliseconds: int) -> None:
        raise AssertionError("describing configs is never throttled here")


@pytest.fixture
def context() -> BrokerContext:
    return BrokerContext(cast("Any", FakeBroker()), FakeClient())


def describe(context: BrokerContext, resource_type: int, name: str) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=None
    )
    (result,) = describe_configs(DescribeConfigsRequest(resources=(resource,)), context).results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


@pytest.mark.parametrize(
    ("resource_type", "name", "config", "value"),
    [
        (ResourceType.TOPIC, "t", "retention.ms", "5"),
        (ResourceType.BROKER, "0", "node.id", "0"),
        (ResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000"),
        (ResourceType.GROUP, "unknown", "consumer.session.timeout.ms", "45000"),
        (ResourceType.CLIENT_METRICS, "m", "metrics", "*"),
        (ResourceType.CLIENT_METRICS, "unknown", "metrics", ""),
    ],
)
def test_each_kind_of_resource_is_described(
    context: BrokerContext, resource_type: int, name: str, config: str, value: str
) -> None:
    result = describe(context, resource_type, name)
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    assert {entry.name: entry.value for entry in result.configs}[config] == value


def test_the_root_logger_has_a_level(context: BrokerContext) -> None:
    levels = {entry.name: entry.value for entry in describe(context, ResourceType.BROKER_LOGGER, "0").configs}
    assert levels["root"] in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")


def test_all_brokers_together_have_what_was_set_for_them(context: BrokerContext) -> None:
    assert describe(context, ResourceType.BROKER, "").configs == ()


# Kafka's answers, seen on a live one.
@pytest.mark.parametrize(
    ("resource_type", "name", "error_code"),
    [
        (ResourceType.TOPIC, "unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.TOPIC, "..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.BROKER, "7", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "x", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "7", ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (3, "x", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_is_refused_as_in_kafka(
    context: BrokerContext, resource_type: int, name: str, error_code: ErrorCode
) -> None:
    result = describe(context, resource_type, name)
    assert result.error_code is error_code
    assert result.configs == ()


def test_only_the_configs_asked_for_are_described(context: BrokerContext) -> None:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name="t", configuration_keys=("segment.ms", "nonsense")
    )
    (result,) = describe_configs(DescribeConfigsRequest(resources=(resource,)), context).results
    assert [entry.name for entry in result.configs] == ["segment.ms"]


@pytest.mark.parametrize(
    ("version", "types", "listed"),
    [
        (0, (), [(16, "m")]),
        (1, (), [(2, "t"), (4, "0"), (4, "7"), (8, "0"), (8, "7"), (16, "m"), (32, "g")]),
        (1, (2, 2), [(2, "t")]),
        (1, (16, 32), [(16, "m"), (32, "g")]),
    ],
)
def test_resources_with_configs_are_listed(
    context: BrokerContext, version: int, types: tuple[int, ...], listed: list[tuple[int, str]]
) -> None:
    context.version = version
    response = list_config_resources(ListConfigResourcesRequest(resource_types=types), context)
    assert [(one.resource_type, one.resource_name) for one in response.config_resources] == listed


def test_an_unknown_type_of_resource_cannot_be_listed(context: BrokerContext) -> None:
    context.version = 1
    response = list_config_resources(ListConfigResourcesRequest(resource_types=(2, 99)), context)
    assert response.error_code is ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == ()

"""Change configs on Apache Kafka and on ourselves in the same way, and describe what came of it."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.differential.config_changes import ACCEPTED, DELETE, REFUSED, REPLACEMENTS, TOPIC_NAME, Attempt
from tests.java.oracle import Oracle
from tests.java.recorded_broker import RecordedBroker

from ottla.metadata.configs.alter import (
    Change,
    Situation,
    check_new_topic,
    decide_changes,
    decide_replacement,
)
from ottla.metadata.configs.describe import (
    Wanted,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_created_topic,
    describe_group,
    describe_topic,
)
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.topic import TopicConfig
from ottla.metadata.image import ConfigResource
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_configs
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

ALL = Wanted(synonyms=True)


class OttlaSide:
    """Our configs, changed as a controller would change them."""

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static = {**static, "broker.id": static["node.id"]}
        # Kafka's controller sets this when it forms a cluster with eligible leader replicas (KIP-966).
        self.overrides: dict[ConfigResource, dict[str, str]] = {
            ConfigResource(ResourceType.BROKER, ""): {"min.insync.replicas": "1"}
        }

    def of(self, resource_type: int, name: str) -> dict[str, str]:
        return self.overrides.get(ConfigResource(resource_type, name), {})

    @property
    def effective(self) -> EffectiveConfigs:
        node_id = self.static["node.id"]
        return EffectiveConfigs(
            self.static, self.of(ResourceType.BROKER, ""), self.of(ResourceType.BROKER, node_id)
        )

    def attempt(
        self, attempt: Attempt, *, only_check: bool, replaces: bool = False
    ) -> tuple[ErrorCode, str | None]:
        resource = ConfigResource(attempt.resource_type, attempt.resource_name)
        current = self.overrides.get(resource, {})
        situation = Situation(self.effective, has_eligible_leader_replicas=True)
        try:
            if replaces:
                wanted = [(name, value) for _, name, value in attempt.changes]
                new_texts = decide_replacement(resource, wanted, current, situation)
            else:
                changes = [Change(name, operation, value) for operation, name, value in attempt.changes]
                new_texts = decide_changes(resource, changes, current, situation)
        except ChangeRefused as refusal:
            return refusal.error_code, refusal.message
        if resource.type == ResourceType.TOPIC and resource.name != TOPIC_NAME:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
        if not only_check:
            after = {name: text for name, text in {**current, **new_texts}.items() if text is not None}
            self.overrides[resource] = after
        return ErrorCode.NONE, None


class KafkaSide:
    """Apache Kafka."""

    def __init__(self, kafka: RecordedBroker) -> None:
        self.client = kafka.client()

    def attempt(
        self, attempt: Attempt, *, only_check: bool, replaces: bool = False
    ) -> tuple[ErrorCode, str | None]:
        request: Any
        if replaces:
            configs = tuple(
                alter_configs.AlterableConfig(name=name, value=value) for _, name, value in attempt.changes
            )
            resource = alter_configs.AlterConfigsResource(
                resource_type=attempt.resource_type, resource_name=attempt.resource_name, configs=configs
            )
            request = alter_configs.AlterConfigsRequest(resources=(resource,), validate_only=only_check)
        else:
            request = IncrementalAlterConfigsRequest(
                resources=(
                    AlterConfigsResource(
                        resource_type=attempt.resource_type,
                        resource_name=attempt.resource_name,
                        configs=tuple(
                            AlterableConfig(name=name, config_operation=operation, value=value)
                            for operation, name, value in attempt.changes
                        ),
                    ),
                ),
                validate_only=only_check,
            )
        (response,) = self.client.ask(request).responses
        return response.error_code, response.error_message

    def describe(self, resource_type: int, name: str) -> list[Any]:
        resource = DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(
            resources=(resource,), include_synonyms=True, include_documentation=False
        )
        (result,) = self.client.ask(request).results
        assert result.error_code is ErrorCode.NONE, result.error_message
        return sorted(result.configs, key=lambda config: str(config.name))

    def create_topic(self, *overrides: tuple[str, str | None], only_check: bool) -> Any:
        topic = CreatableTopic(
            name="another-topic" if only_check else TOPIC_NAME,
            num_partitions=1,
            replication_factor=1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in overrides),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=30_000, validate_only=only_check)
        (result,) = self.client.ask(request).topics
        return result


@pytest.fixture
def sides(
    request: pytest.FixtureRequest, oracle: Oracle, kafka: RecordedBroker
) -> Iterator[tuple[KafkaSide, OttlaSide]]:
    """Both, with the topic."""
    properties = json.loads(
        oracle.answer("properties", lambda: json.dumps(request.getfixturevalue("apache_kafka").properties))
    )
    theirs = KafkaSide(kafka)
    assert theirs.create_topic(only_check=False).error_code in (
        ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS,
    )  # fmt: skip
    yield theirs, OttlaSide(properties)
    theirs.client.close()


def test_what_kafka_refuses_is_refused_with_the_same_code_and_names(
    sides: tuple[KafkaSide, OttlaSide],
) -> None:
    kafka, ottla = sides
    differences = []
    for attempt in REFUSED:
        expected = kafka.attempt(attempt, only_check=True)
        assert expected[0] is not ErrorCode.NONE, attempt
        actual = ottla.attempt(attempt, only_check=True)
        if actual[0] != expected[0] or config_names(expected[1]) - config_names(actual[1]):
            differences.append(f"{attempt}\n    Kafka: {expected}\n    Ottla: {actual}")
    assert not differences, "\n".join(differences)


def test_a_whole_set_of_overrides_is_judged_alike(sides: tuple[KafkaSide, OttlaSide]) -> None:
    kafka, ottla = sides
    for attempt in REPLACEMENTS:
        expected, _ = kafka.attempt(attempt, only_check=True, replaces=True)
        actual, message = ottla.attempt(attempt, only_check=True, replaces=True)
        assert actual is expected, f"{attempt}: {message}"


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        (("segment.bytes", "1"),),
        (("foo", "x"),),
        (("segment.bytes", None),),
        (("segment.bytes", "2000000"), ("segment.bytes", "2000001")),
        (("remote.storage.enable", "true"),),
        (("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")),
        (("internal.segment.bytes", "10"), ("retention.ms", "+5")),
        (("foo", "x"), ("segment.bytes", "1")),
    ],
    ids=str,
)
def test_a_new_topic_has_the_configs_kafka_would_give_it(
    sides: tuple[KafkaSide, OttlaSide], overrides: tuple[tuple[str, str | None], ...]
) -> None:
    kafka, ottla = sides
    expected = kafka.create_topic(*overrides, only_check=True)
    error_code, message, configs = created(ottla, overrides)
    assert error_code is expected.error_code
    assert config_names(expected.error_message) <= config_names(message)
    assert configs == expected.configs


def created(
    ottla: OttlaSide, overrides: tuple[tuple[str, str | None], ...]
) -> tuple[ErrorCode, str | None, tuple[Any, ...]]:
    try:
        accepted = check_new_topic(overrides)
    except ChangeRefused as refusal:
        return refusal.error_code, refusal.message, ()
    return ErrorCode.NONE, None, describe_created_topic(ottla.effective, accepted)


def test_configs_are_described_as_kafka_describes_them_before_and_after_changes(
    sides: tuple[KafkaSide, OttlaSide],
) -> None:
    kafka, ottla = sides
    compare_descriptions(kafka, ottla)
    try:
        for attempt in ACCEPTED:
            assert kafka.attempt(attempt, only_check=False) == (ErrorCode.NONE, None), attempt
            assert ottla.attempt(attempt, only_check=False) == (ErrorCode.NONE, None), attempt
        compare_descriptions(kafka, ottla)
    finally:
        put_back(kafka, ottla)
    compare_descriptions(kafka, ottla)


def compare_descriptions(kafka: KafkaSide, ottla: OttlaSide) -> None:
    effective = ottla.effective
    ours = {
        (ResourceType.BROKER, "0"): describe_broker(effective, ALL),
        (ResourceType.BROKER, ""): describe_broker_defaults(effective, ALL),
    }
    topic, group, subscription = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLIENT_METRICS
    ours[topic, TOPIC_NAME] = describe_topic(effective, ottla.of(topic, TOPIC_NAME), ALL)
    for name in ("g", "g2", "unknown"):
        ours[group, name] = describe_group(effective, ottla.of(group, name), ALL)
    for name in ("m2", "m3", "unknown"):
        ours[subscription, name] = describe_client_metrics(ottla.of(subscription, name), ALL)
    for (resource_type, name), listed in ours.items():
        described = [config for config in listed if not config.name.startswith("ottla.")]
        expected = described_when_settled(kafka, resource_type, name, list(described))
        assert [config.name for config in described] == [config.name for config in expected]
        for config, other in zip(described, expected, strict=True):
            assert config == other


def described_when_settled(
    kafka: KafkaSide, resource_type: int, name: str, hoped_for: list[Any]
) -> list[Any]:
    """Ask until the answer is as hoped for: a broker follows its controller a moment later."""
    deadline = time.monotonic() + 30
    while (described := kafka.describe(resource_type, name)) != hoped_for and time.monotonic() < deadline:
        time.sleep(0.02)
    return described


def put_back(kafka: KafkaSide, ottla: OttlaSide) -> None:
    """Take the brokers' overrides away again, since others use the same Apache Kafka."""
    for resource, overrides in ottla.overrides.items():
        if resource.type == ResourceType.BROKER:
            removals = [(DELETE, name, None) for name in overrides if name != "min.insync.replicas"]
            removal = Attempt(resource.type, resource.name, *removals)
            assert kafka.attempt(removal, only_check=False)[0] is ErrorCode.NONE
            assert ottla.attempt(removal, only_check=False)[0] is ErrorCode.NONE


def config_names(message: str | None) -> set[str]:
    """Return the declared configs that a message names."""
    known = NodeConfig.keys.keys() | TopicConfig.keys.keys() | GroupConfig.keys.keys()
    return known & set(re.findall(r"[a-z][a-z.]*[a-z]", message or ""))

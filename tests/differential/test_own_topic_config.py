"""Apache Kafka takes over metadata in which a topic has a config of ours."""

from pathlib import Path

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.support.plain_client import PlainClient

from ottla.model.ids import Offset
from ottla.quorum.batches import encode_batch
from ottla.records.batch import iter_batches
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.metadata_records.configs import ConfigRecord

pytestmark = pytest.mark.live_oracle

TOPIC = "t"
METADATA_VERSION = 29
SET = 0


def test_a_config_that_kafka_does_not_know_does_not_stop_it(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    with kafka, PlainClient(kafka.bootstrap) as client:
        assert create_topic(client) is ErrorCode.NONE
    append_to_metadata_log(
        kafka.data_directory,
        ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name=TOPIC, name="ottla.acks.all.sync", value="false"
        ),
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=TOPIC, name="retention.ms", value="777"),
    )
    with kafka, PlainClient(kafka.bootstrap) as client:
        assert set_config(client, "segment.ms", "999") is ErrorCode.NONE
        configs = described(client)
        assert configs["retention.ms"] == "777"
        assert "ottla.acks.all.sync" not in configs


def create_topic(client: PlainClient) -> ErrorCode:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=30_000, validate_only=False)
    (result,) = client.ask(request).topics
    code: ErrorCode = result.error_code
    return code


def append_to_metadata_log(data_directory: Path, *records: ConfigRecord) -> None:
    """Write records behind the last one, as the leader of the last epoch would have."""
    segment = max((data_directory / "__cluster_metadata-0").glob("*.log"))
    *_, last = iter_batches(memoryview(segment.read_bytes()))
    batch = encode_batch(
        records, METADATA_VERSION, Offset(last.last_offset + 1), last.leader_epoch, last.max_timestamp
    )
    with segment.open("ab") as log:
        log.write(batch)


def set_config(client: PlainClient, name: str, value: str) -> ErrorCode:
    config = AlterableConfig(name=name, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=TOPIC, configs=(config,))
    (response,) = client.ask(
        IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    ).responses
    code: ErrorCode = response.error_code
    return code


def described(client: PlainClient) -> dict[str, str | None]:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name=TOPIC, configuration_keys=None
    )
    (result,) = client.ask(DescribeConfigsRequest(resources=(resource,))).results
    assert result.error_code is ErrorCode.NONE, result.error_message
    return {config.name: config.value for config in result.configs}

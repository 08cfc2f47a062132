"""Apache Kafka takes over a directory whose metadata we wrote, and we take it back."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.differential.kafka_json import as_kafka_json
from tests.golden.metadata_logs import data_records, in_no_order, read_batches
from tests.java.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.java.jars import java_classpath, java_command
from tests.support.deciding import new_topic
from tests.support.plain_client import PlainClient
from tests.support.quorum_node import QuorumNode

from ottla.metadata.image import MetadataImage
from ottla.metadata.record_versions import record_version
from ottla.metadata.snapshot_records import snapshot_records
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.metadata_quorum import OtherVoters
from ottla.runtime.disk import RealDisk
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_client_quotas, incremental_alter_configs
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.metadata_records.access_control import AccessControlEntryRecord

pytestmark = pytest.mark.live_oracle

TOPIC_OVERRIDE = 1
KEEP_SNAPSHOTS = {"metadata.max.retention.ms": "-1"}


def write_everything(node: QuorumNode) -> None:
    """Have every kind of record in the log, on both sides of a snapshot."""
    broker_epoch = node.come_up()
    assert (
        node.create(
            new_topic("orders", 3, 1, configs={"cleanup.policy": "compact", "min.insync.replicas": "1"}),
            new_topic("gone", 2, 1),
            new_topic("grown", 1, 1, configs={"retention.ms": "123456"}),
        )
        == [ErrorCode.NONE] * 3
    )
    node.ask(
        DeleteTopicsRequest(topics=(DeleteTopicState(name="gone", topic_id=ZERO_UUID),), timeout_ms=0),
    )
    alter_configs(node, 2, "grown", "max.message.bytes", "2000000")
    alter_configs(node, 4, "", "message.max.bytes", "1100000")
    alter_configs(node, 32, "a-group", "consumer.session.timeout.ms", "46000")
    node.ask(
        alter_client_quotas.AlterClientQuotasRequest(
            entries=(
                alter_client_quotas.QuotaAlteration(
                    entity=(
                        alter_client_quotas.EntityData(entity_type="user", entity_name="alice"),
                        alter_client_quotas.EntityData(entity_type="client-id", entity_name=None),
                    ),
                    ops=(
                        alter_client_quotas.QuotaOperation(key="producer_byte_rate", value=1e6, remove=False),
                    ),
                ),
            ),
            validate_only=False,
        ),
    )
    node.ask(
        AlterUserScramCredentialsRequest(
            deletions=(),
            upsertions=(
                ScramCredentialUpsertion(
                    name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
                ),
            ),
        ),
    )
    node.controller.append(
        [
            AccessControlEntryRecord(
                id=Uuid(b"rule-00000000001"), resource_type=2, resource_name="orders", pattern_type=3,
                principal="User:alice", host="*", operation=3, permission_type=3,
            )
        ])  # fmt: skip
    node.ask(
        AllocateProducerIdsRequest(broker_id=node.node_id, broker_epoch=broker_epoch),
    )
    node.write_snapshot()
    grown = CreatePartitionsTopic(name="grown", partition_count=4, assignments=None)
    node.ask(
        CreatePartitionsRequest(topics=(grown,), timeout_ms=0, validate_only=False),
    )
    assert node.create(new_topic("after the snapshot".replace(" ", "-"), 2, 1)) == [ErrorCode.NONE]
    node.tick(node.now_ms + 10_000)
    node.quorum.flush()


def alter_configs(node: QuorumNode, kind: int, name: str, key: str, value: str) -> None:
    config = incremental_alter_configs.AlterableConfig(name=key, config_operation=0, value=value)
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=(config,)
    )
    ask = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    assert node.ask(ask).responses[0].error_code is ErrorCode.NONE


def dump(*files: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what Kafka's DumpLogSegments reads, by file. It must not complain about anything."""
    command = java_command(
        java_classpath(), "org.apache.kafka.tools.DumpLogSegments",
        "--cluster-metadata-decoder", "--skip-record-metadata", "--files", ",".join(map(str, files)),
    )  # fmt: skip
    done = subprocess.run(command, check=True, text=True, capture_output=True)
    payloads: dict[str, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("Dumping "):
            current = payloads.setdefault(Path(line.removeprefix("Dumping ")).name, [])
        elif line.startswith("| payload: "):
            current.append(json.loads(line.removeprefix("| payload: ")))
        elif line.startswith("baseOffset: "):
            assert line.endswith("isvalid: true"), line
        elif line:
            assert line.startswith(
                ("KRaft bootstrap snapshot", "Snapshot end offset", "Log starting offset")
            ), line
    assert "xception" not in done.stderr, done.stderr
    return payloads


def test_kafkas_tool_reads_what_we_wrote_without_complaint(tmp_path: Path) -> None:
    node = QuorumNode(RealDisk(), str(tmp_path / "data"), configs=KEEP_SNAPSHOTS)
    write_everything(node)
    node.stop()
    files = [tmp_path / "data" / "bootstrap.checkpoint"]
    metadata = Path(node.metadata_path)
    files += [path for path in sorted(metadata.iterdir()) if path.suffix in (".log", ".checkpoint")]
    assert len(files) == 4, "what formatting wrote, a snapshot and a segment"
    dumped = dump(*files)
    for path in files:
        ours = [
            (record_version(record, 30), as_kafka_json(record, record_version(record, 30)))
            for record in data_records(read_batches(path))
        ]
        assert [(one["version"], one["data"]) for one in dumped[path.name]] == ours, path.name
    assert sum(map(len, dumped.values())) > 80


class Takeover:
    """A directory of ours that Apache Kafka has started on, and what it held before."""

    def __init__(self, kafka: ApacheKafka, image: MetadataImage) -> None:
        self.kafka = kafka
        self.image = image
        self.client = PlainClient(kafka.bootstrap)


@pytest.fixture(scope="module")
def takeover(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Takeover]:
    root = tmp_path_factory.mktemp("takeover")
    node = QuorumNode(RealDisk(), str(root / "data"), node_id=3)
    write_everything(node)
    image = node.image
    node.stop()
    with ApacheKafka(root, {"node.id": "3"}, data_directory=root / "data") as kafka:
        takeover = Takeover(kafka, image)
        try:
            yield takeover
        finally:
            takeover.client.close()


def test_apache_kafka_lists_our_topics_with_their_ids(takeover: Takeover) -> None:
    answer = takeover.client.ask(MetadataRequest(topics=None))
    assert answer.cluster_id is not None
    found = {topic.name: (topic.topic_id, len(topic.partitions)) for topic in answer.topics}
    assert found == {topic.name: (topic.id, len(topic.partitions)) for topic in takeover.image.topics}
    assert set(found) == {"orders", "grown", "after-the-snapshot"}
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    assert {(one.error_code, one.leader_id) for one in partitions} == {(ErrorCode.NONE, 3)}
    assert all(one.leader_epoch > 0 for one in partitions), "it goes on from our epochs"


def test_apache_kafka_has_our_configs(takeover: Takeover) -> None:
    for topic in takeover.image.topics:
        resource = DescribeConfigsResource(resource_type=2, resource_name=topic.name, configuration_keys=None)
        (result,) = takeover.client.ask(DescribeConfigsRequest(resources=(resource,))).results
        overrides = {one.name: one.value for one in result.configs if one.config_source == TOPIC_OVERRIDE}
        assert overrides == takeover.image.topic_config(topic.name)


def test_apache_kafka_has_our_quotas_credentials_and_voter(takeover: Takeover) -> None:
    answer = takeover.client.ask(DescribeClientQuotasRequest(components=(), strict=False))
    quotas = {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }
    assert quotas == takeover.image.quotas
    described = takeover.client.ask(DescribeUserScramCredentialsRequest(users=None))
    assert [(one.user, one.credential_infos[0].iterations) for one in described.results] == [("alice", 4096)]
    topic = DescribeQuorumTopic(
        topic_name="__cluster_metadata", partitions=(DescribeQuorumPartition(partition_index=0),)
    )
    quorum = takeover.client.ask(DescribeQuorumRequest(topics=(topic,)))
    state = quorum.topics[0].partitions[0]
    assert (state.leader_id, state.leader_epoch) == (3, 2)
    assert [voter.replica_id for voter in state.current_voters] == [3]


def test_we_take_back_what_apache_kafka_took_over(tmp_path: Path) -> None:
    data = tmp_path / "data"
    node = QuorumNode(RealDisk(), str(data))
    write_everything(node)
    before = node.image
    node.stop()
    kafka = ApacheKafka(tmp_path, {"node.id": "1"}, data_directory=data)
    with kafka, PlainClient(kafka.bootstrap) as client:
        answer = client.ask(CreateTopicsRequest(topics=(new_topic("theirs", 2, 1),)))
        assert answer.topics[0].error_code is ErrorCode.NONE
    after = QuorumNode(RealDisk(), str(data))
    assert after.driver.epoch == 3
    assert set(after.image.topics.names) == {*before.topics.names, "theirs"}
    for topic in before.topics:
        assert after.image.topics.find_by_id(topic.id) is not None
    unchanged = before._replace(
        position=after.image.position,
        topics=after.image.topics,
        brokers=after.image.brokers,
        controllers=after.image.controllers,
        configs=after.image.configs,
    )
    assert after.image == unchanged
    assert dict(before.configs).items() <= dict(after.image.configs).items()
    assert in_no_order(snapshot_records(after.image))
    after.come_up()
    leaders = {one.leader for topic in after.image.topics for one in topic.partitions.values()}
    assert leaders == {1}


def test_a_quorum_whose_voters_the_configuration_names_is_led_on_by_both(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    kafka.properties["controller.quorum.voters"] = f"0@127.0.0.1:{kafka.controller_port}"
    del kafka.properties["controller.quorum.bootstrap.servers"]
    settings = tmp_path / "format.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in kafka.properties.items()))
    command = java_command(
        java_classpath(), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(settings)
    )
    subprocess.run(command, check=True, capture_output=True)
    with kafka, PlainClient(kafka.bootstrap) as client:
        assert client.ask(CreateTopicsRequest(topics=(new_topic("theirs", 1, 1),))).topics[0].error_code == 0

    data = str(kafka.data_directory)
    voters = {"controller.quorum.voters": kafka.properties["controller.quorum.voters"]}
    with pytest.raises(OtherVoters):
        QuorumNode(RealDisk(), data)
    node = QuorumNode(RealDisk(), data, configs=voters)
    assert node.driver.kraft_version == 0
    node.come_up()
    assert node.create(new_topic("ours", 1, 1)) == [ErrorCode.NONE]
    node.stop()

    with kafka, PlainClient(kafka.bootstrap) as client:
        names = {topic.name for topic in client.ask(MetadataRequest(topics=None)).topics}
        assert names == {"theirs", "ours"}

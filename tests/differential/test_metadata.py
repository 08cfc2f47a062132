"""Metadata, features, directories: what a broker tells of itself and the cluster, as Apache Kafka does."""

from typing import Any

import pytest
from tests.differential.side_by_side import NO_SUCH_ID, Both, versions_of
from tests.support.data_plane import create_topic
from tests.support.readiness import wait_until_led

from ottla.model.uuid import ZERO_UUID
from ottla.wire.apis import ApiKey
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def described(answer: Any) -> Any:
    return (
        [(broker.node_id, broker.rack) for broker in answer.brokers],
        answer.controller_id,
        answer.error_code,
        answer.cluster_authorized_operations,
        sorted(
            (
                topic.name or "",
                topic.error_code,
                topic.topic_id != ZERO_UUID,
                topic.is_internal,
                topic.topic_authorized_operations,
                sorted(part[:3] + part[4:] for part in topic.partitions),
            )
            for topic in answer.topics
        ),
    )


@pytest.mark.parametrize("version", versions_of(ApiKey.METADATA))
def test_metadata_in_every_version(both: Both, version: int) -> None:
    first, second = f"metadata-{version}-a", f"metadata-{version}-b"
    both.create(first)
    both.create(second, 3)

    def ask(*topics: str, **settings: bool) -> None:
        if version >= 4:
            settings.setdefault("allow_auto_topic_creation", False)
        both.ask(
            MetadataRequest(topics=tuple(MetadataRequestTopic(name=topic) for topic in topics), **settings),
            version,
            described,
        )

    ask(first, second)
    ask(first, first)
    if version >= 1:
        ask()
    if version >= 4:
        ask("no-such-topic", "not a name", "")
    if version >= 8:
        ask(first, include_topic_authorized_operations=True)
    if 8 <= version <= 10:
        ask(first, include_cluster_authorized_operations=True)
    if version >= 10:
        both.ask(
            lambda side: MetadataRequest(
                topics=(
                    MetadataRequestTopic(topic_id=side.ids[first], name=None),
                    MetadataRequestTopic(topic_id=NO_SUCH_ID, name=None),
                ),
                allow_auto_topic_creation=False,
            ),
            version,
            described,
        )


@pytest.mark.parametrize(
    ("topics", "limit", "cursor"),
    [
        (("pages-b", "pages-a"), 2000, None),
        (("pages-b", "pages-a"), 1, None),
        (("pages-b", "pages-a"), 0, None),
        (("pages-b", "pages-a"), 1, ("pages-b", 0)),
        (("pages-b",), 2, None),
        (("pages-b",), 2, ("pages-b", 2)),
        (("pages-b",), 2, ("pages-b", 7)),
        (("pages-b",), 2, ("pages-b", -1)),
        (("pages-a",), 5, ("pages-x", 0)),
        (("pages-a", "pages-x"), 5, ("pages-x", 0)),
        (("pages-a", "no-such-topic", "not a name"), 5, None),
    ],
)
def test_pages_of_partitions(
    both: Both, topics: tuple[str, ...], limit: int, cursor: tuple[str, int] | None
) -> None:
    for side in both.sides:
        known = side.client.ask(MetadataRequest(topics=None)).topics
        if "pages-a" not in [topic.name for topic in known]:
            for name, partitions in (("pages-a", 1), ("pages-b", 3)):
                create_topic(side.client, name, partitions)
                wait_until_led(side.client, name, partitions)
    both.ask(
        DescribeTopicPartitionsRequest(
            topics=tuple(DescribeTopicPartitionsRequestTopic(name=topic) for topic in topics),
            response_partition_limit=limit,
            cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
        0,
        lambda answer: (answer.next_cursor, [topic[:2] + topic[3:] for topic in answer.topics]),
    )


def test_features_are_those_of_apache_kafka(both: Both) -> None:
    for version in versions_of(ApiKey.API_VERSIONS):
        for name in ("client", "", "not a name"):
            both.ask(
                ApiVersionsRequest(client_software_name=name, client_software_version="1"),
                version,
                lambda answer: (
                    answer.error_code,
                    sorted(answer.supported_features),
                    sorted(answer.finalized_features),
                ),
            )


def test_every_version_that_ottla_speaks_is_one_that_apache_kafka_speaks(both: Both) -> None:
    ask = ApiVersionsRequest(client_software_name="client", client_software_version="1")
    of_kafka, of_ottla = (
        {api.api_key: (api.min_version, api.max_version) for api in side.client.ask(ask, 4).api_keys}
        for side in both.sides
    )
    assert of_ottla.items() <= of_kafka.items()


def test_producer_ids(both: Both) -> None:
    cases = (None, -1, -1), ("", -1, -1), (None, 5, 3), (None, 5, -1), (None, -1, 5)
    for transactional_id, producer_id, epoch in cases:
        ask = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=1000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        # Apache Kafka says that it is loading until it has its first block of ids.
        while both.sides[0].client.ask(ask, 5).error_code == 14:
            pass
        both.ask(
            ask,
            5,
            lambda answer: (answer.error_code, answer.producer_epoch, answer.producer_id >= 0),
        )


def test_log_directories(both: Both) -> None:
    both.create("directories", 3)
    for version in versions_of(ApiKey.DESCRIBE_LOG_DIRS):
        both.ask(
            DescribeLogDirsRequest(
                topics=(DescribableLogDirTopic(topic="directories", partitions=(0, 2, 9)),)
            ),
            version,
            lambda answer: [
                (
                    one.error_code,
                    one.is_cordoned,
                    one.total_bytes > 0,
                    [(t.name, sorted(t.partitions)) for t in one.topics],
                )
                for one in answer.results
            ],
        )
    for topic in ("directories", "no-such-topic"):
        move = AlterReplicaLogDir(
            path="/nowhere", topics=(AlterReplicaLogDirTopic(name=topic, partitions=(0,)),)
        )
        both.ask(
            AlterReplicaLogDirsRequest(dirs=(move,)),
            2,
            lambda answer: answer.results,
        )

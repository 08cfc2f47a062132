"""What the differential tests share: one Apache Kafka for a whole test run, or what it answered."""

from collections.abc import Iterator

import pytest
from tests.differential.side_by_side import Both
from tests.java.apache_kafka import ApacheKafka
from tests.java.oracle import Oracle
from tests.java.recorded_broker import RecordedBroker
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import start_coordinators

UNUSUAL_PROPERTIES = {
    "log.retention.hours": "72",
    "log.cleaner.threads": "2",
    "log.roll.hours": "100",
    "min.insync.replicas": "1",
    "message.max.bytes": "2000000",
    "group.consumer.session.timeout.ms": "50000",
    "group.consumer.assignment.interval.ms": "0",
    "internal.metadata.log.segment.bytes": "10485760",
    "unclean.leader.election.interval.ms": "200000",
    "ssl.keystore.password": "secret",
    "listener.name.plaintext.ssl.keystore.type": "PKCS12",
    "listener.name.plaintext.ssl.key.password": "secret",
    "super.users": "User:root",
    "some.unknown.config": "hello",
}
"""Configs that change nothing for other tests, and that DescribeConfigs tells something about."""


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A running Apache Kafka. It is shared: create topics and groups with names of your own.

    Tests ask `kafka`, which starts it only where its answers are not recorded.
    """
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka"), UNUSUAL_PROPERTIES) as kafka:
        with PlainClient(kafka.bootstrap) as client:
            start_coordinators(client)
        yield kafka


@pytest.fixture(scope="session")
def ottla_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running Ottla, shared as well."""
    with OttlaNode(tmp_path_factory.mktemp("ottla"), {"message.max.bytes": "2000000"}) as node:
        yield node


@pytest.fixture
def kafka(request: pytest.FixtureRequest, oracle: Oracle) -> RecordedBroker:
    """Apache Kafka, or what it answered."""
    return RecordedBroker(oracle, lambda: request.getfixturevalue("apache_kafka").bootstrap)


@pytest.fixture
def both(kafka: RecordedBroker, ottla_node: OttlaNode) -> Iterator[Both]:
    """Both of them, to be asked side by side."""
    asked = Both(kafka.client(), PlainClient(ottla_node.bootstrap))
    yield asked
    asked.close()

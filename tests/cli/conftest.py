"""The clusters that commands are tried against: Ottla, and Apache Kafka where Java is."""

from collections.abc import Iterator

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.support.ottla_node import KEEPS_OLD_RECORDS

from ottla.testing.node import ThreadNode

SETTINGS = {
    # Otherwise no transaction could be made to hang: brokers ask coordinators before they take a write.
    "transaction.partition.verification.enable": "false",
    # A member of a share group learns what it reads with its second heartbeat.
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    **KEEPS_OLD_RECORDS,
}


@pytest.fixture(scope="session")
def ottla_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ThreadNode(tmp_path_factory.mktemp("ottla"), SETTINGS) as node:
        yield node.bootstrap


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka"), SETTINGS) as kafka:
        yield kafka.bootstrap


@pytest.fixture(params=["ottla", pytest.param("apache-kafka", marks=pytest.mark.live_oracle)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """A broker of each kind. They are shared: use topics and groups with names of your own."""
    name = "ottla_bootstrap" if request.param == "ottla" else "kafka_bootstrap"
    found: str = request.getfixturevalue(name)
    return found


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    text: str = request.node.name
    return "".join(letter if letter.isalnum() else "-" for letter in text)[-60:].strip("-")

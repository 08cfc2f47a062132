"""One node for all clients, and one Apache Kafka for what must behave alike on both."""

from collections.abc import Iterator

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.support.ottla_node import KEEPS_OLD_RECORDS, OttlaNode

# A member of a share group learns what it reads with its second heartbeat.
QUICK_SHARE_GROUPS = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
}
# A member learns what others have given up with a heartbeat, by default once in five seconds.
QUICK_CONSUMER_GROUPS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}

# The same test of the same client, on Ottla, runs each time.
ON_APACHE_KAFKA = pytest.mark.thorough(guard="tests/clients/test_consumer_of_ours.py")

# Clients meet what users have: most nodes of tests keep no journal (`tests/support/departures.py`).
JOURNAL = {"ottla.journal.enable": "true"}


@pytest.fixture(scope="session")
def ottla_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running node. It is shared: use topics with names of your own."""
    settings = {"num.partitions": "3", **JOURNAL, **KEEPS_OLD_RECORDS}
    with OttlaNode(tmp_path_factory.mktemp("clients"), settings) as node:
        yield node


@pytest.fixture(scope="session")
def ottla_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Ottla node whose groups start at once."""
    settings = {
        "num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        **JOURNAL,
        **QUICK_CONSUMER_GROUPS,
        **QUICK_SHARE_GROUPS,
        **KEEPS_OLD_RECORDS,
    }
    with OttlaNode(tmp_path_factory.mktemp("ottla"), settings) as node:
        yield node.bootstrap


@pytest.fixture(scope="session")
def apache_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Apache Kafka, skipped where there is no Java."""
    settings = {"num.partitions": "1", **QUICK_CONSUMER_GROUPS, **QUICK_SHARE_GROUPS, **KEEPS_OLD_RECORDS}
    with ApacheKafka(tmp_path_factory.mktemp("apache"), settings) as kafka:
        yield kafka.bootstrap


@pytest.fixture(params=["Ottla", pytest.param("Apache Kafka", marks=ON_APACHE_KAFKA)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of either broker: the client must behave alike on both. Use topics of your own."""
    name = "ottla_bootstrap" if request.param == "Ottla" else "apache_bootstrap"
    address: str = request.getfixturevalue(name)
    return address

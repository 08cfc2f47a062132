"""One node for all clients, and one Apache Kafka for what must behave alike on both."""

from collections.abc import Iterator

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.ottla_node import OttlaNode

# Tests write records of 1970, which must not be deleted while they are looked at.
_KEEPS_ALL = {"log.initial.task.delay.ms": "3600000"}


@pytest.fixture(scope="session")
def ottla_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running node. It is shared: use topics with names of your own."""
    with OttlaNode(tmp_path_factory.mktemp("clients"), {"num.partitions": "3", **_KEEPS_ALL}) as node:
        yield node


@pytest.fixture(scope="session")
def ottla_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Ottla node whose groups start at once."""
    settings = {"num.partitions": "1", "group.initial.rebalance.delay.ms": "0", **_KEEPS_ALL}
    with OttlaNode(tmp_path_factory.mktemp("ottla"), settings) as node:
        yield node.bootstrap


@pytest.fixture(scope="session")
def apache_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Apache Kafka, skipped where there is no Java."""
    with ApacheKafka(tmp_path_factory.mktemp("apache"), {"num.partitions": "1", **_KEEPS_ALL}) as kafka:
        yield kafka.bootstrap


@pytest.fixture(params=["Ottla", "Apache Kafka"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of either broker: the client must behave alike on both. Use topics of your own."""
    name = "ottla_bootstrap" if request.param == "Ottla" else "apache_bootstrap"
    address: str = request.getfixturevalue(name)
    return address

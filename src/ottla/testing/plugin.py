"""The pytest plugin: real nodes as fixtures. pytest finds it as soon as Ottla is installed.

    def test_an_order_is_booked(kafka):
        kafka.create_topic("orders")
        book_orders(bootstrap=kafka.bootstrap)
        assert kafka.values("orders") == [b"coffee"]

- `kafka`: a fresh node for this test, in a thread of the test process (`ottla.testing.node.ThreadNode`)
- `kafka_process`: a fresh node in a process of its own (`ottla.testing.node.ProcessNode`)
- `kafka_cluster`: three fresh nodes that form a cluster (`ottla.testing.process_cluster.ProcessCluster`)
- `shared_kafka`: one node, in a thread, for the whole run: use topics and groups with names of your own

`@pytest.mark.kafka(settings={...})` gives the node of a test its own settings.

Nothing of Ottla is imported before a test asks for a node: pytest starts as quickly as without it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.node import ProcessNode, ThreadNode
    from ottla.testing.process_cluster import ProcessCluster


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "kafka(settings): configs of the node for this test")


@pytest.fixture
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ThreadNode]":
    """A fresh node in a thread of this process."""
    from ottla.testing.node import ThreadNode

    with ThreadNode(tmp_path_factory.mktemp("kafka"), _settings(request)) as node:
        yield node


@pytest.fixture
def kafka_process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[ProcessNode]":
    """A fresh node in a process of its own."""
    from ottla.testing.node import ProcessNode

    with ProcessNode(tmp_path_factory.mktemp("kafka"), _settings(request)) as node:
        yield node


@pytest.fixture
def kafka_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[ProcessCluster]":
    """Three fresh nodes that form a cluster, each in a process of its own."""
    from ottla.testing.process_cluster import ProcessCluster

    with ProcessCluster(tmp_path_factory.mktemp("kafka"), settings=_settings(request)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def shared_kafka(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ThreadNode]":
    """One node for all tests."""
    from ottla.testing.node import ThreadNode

    with ThreadNode(tmp_path_factory.mktemp("kafka")) as node:
        yield node


def _settings(request: pytest.FixtureRequest) -> dict[str, str]:
    marker = request.node.get_closest_marker("kafka")
    if marker is None:
        return {}
    if marker.args or set(marker.kwargs) != {"settings"}:
        raise pytest.UsageError("write @pytest.mark.kafka(settings={...}): the marker takes nothing else")
    from ottla.testing.settings import find_mistake

    settings: dict[str, str] = marker.kwargs["settings"]
    if (mistake := find_mistake(settings)) is not None:
        raise pytest.UsageError(f"@pytest.mark.kafka: {mistake}")
    return settings

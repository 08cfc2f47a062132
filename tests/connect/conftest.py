"""One node and one worker for all tests of connectors."""

import uuid
from collections.abc import Iterator

import pytest
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

FEW_PARTITIONS = ("--set", "offset.storage.partitions=2", "--set", "status.storage.partitions=1")


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running node."""
    with OttlaNode(tmp_path_factory.mktemp("connect"), QUICK) as running:
        yield running


@pytest.fixture(scope="session")
def worker(node: OttlaNode) -> Iterator[ConnectProcess]:
    """A running worker. It is shared: use names of your own."""
    with ConnectProcess(node.bootstrap, *FEW_PARTITIONS) as running:
        yield running


@pytest.fixture(scope="session")
def spark_worker(node: OttlaNode) -> Iterator[ConnectProcess]:
    """A worker for connectors on Spark, which takes long to start. A test may kill it and start it again."""
    names = ("group.id=spark", "config.storage.topic=spark-configs", "session.timeout.ms=6000")
    options = [part for name in (*names, "heartbeat.interval.ms=1000") for part in ("--set", name)]
    with ConnectProcess(node.bootstrap, *FEW_PARTITIONS, *options) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"c-{uuid.uuid4().hex[:10]}"

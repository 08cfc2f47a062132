"""One node and one registry for all tests of the registry."""

import uuid
from collections.abc import Iterator

import pytest
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running node."""
    with OttlaNode(tmp_path_factory.mktemp("registry"), QUICK) as running:
        yield running


@pytest.fixture(scope="session")
def registry(node: OttlaNode) -> Iterator[RegistryProcess]:
    """A running registry. It is shared: use subjects of your own."""
    with RegistryProcess(node.bootstrap) as running:
        yield running


@pytest.fixture
def subject() -> str:
    """A subject that no other test uses."""
    return f"s-{uuid.uuid4().hex[:12]}"

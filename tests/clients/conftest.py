"""One node for all clients."""

from collections.abc import Iterator

import pytest
from tests.ottla_node import OttlaNode


@pytest.fixture(scope="session")
def ottla_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A running node. It is shared: use topics with names of your own."""
    with OttlaNode(tmp_path_factory.mktemp("clients"), {"num.partitions": "3"}) as node:
        yield node

"""A filled cluster, and a console of it."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.console.filled import fill
from tests.support.console_visitor import ConsoleVisitor

from ottla.testing.node import ThreadNode

QUICK = {"num.partitions": "1", "offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node with topics, records and groups. It is shared: change nothing that is there."""
    with ThreadNode(tmp_path_factory.mktemp("filled"), QUICK) as node:
        asyncio.run(fill(node.bootstrap))
        yield node.bootstrap


@pytest.fixture(scope="session")
def visitor(filled: str) -> Iterator[ConsoleVisitor]:
    """Somebody who looks at that cluster, and changes nothing."""
    with ConsoleVisitor.of(filled) as looking:
        yield looking

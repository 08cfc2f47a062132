"""`ottla.read` as in a notebook: from a thread that has a loop of its own."""

import asyncio

from tests.pipelines.records import create_topic, produce
from tests.support.ottla_node import OttlaNode

import ottla


def test_a_topic_is_read_within_a_running_loop(node: OttlaNode) -> None:
    create_topic(node.bootstrap, "read-here", 2)
    produce(node.bootstrap, "read-here", [(b"%d" % number, b"v%d" % number) for number in range(100)])

    async def cell() -> int:
        return len(ottla.read("read-here", since="1 hour", bootstrap_servers=node.bootstrap))

    assert asyncio.run(cell()) == 100
    later = ottla.read("read-here", until="1 hour", bootstrap_servers=node.bootstrap)
    assert len(later.to_arrow()) == 0

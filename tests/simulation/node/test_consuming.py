"""`ottla consume --follow` in simulated time: it finds what comes later, goes on after a crash, and ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from ottla import Admin, Producer
from ottla.cli.records.reading import Reading, Wish
from ottla.cli.records.templates import Printable
from ottla.client.admin.settings import AdminSettings
from ottla.client.errors import BrokerError
from ottla.client.security import cluster_for
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.error_code import ErrorCode

Records = AsyncGenerator[Printable, None]
Story = Callable[[SimulatedNode, Admin, Records], Awaitable[None]]


def follow(topic: str, about: Story) -> list[str]:
    """Read a topic, which has one record, and return what people were told meanwhile."""
    simulation = Simulation(3)
    network = SimulatedNetwork(simulation)
    node = SimulatedNode(simulation, network)
    node.start()
    said: list[str] = []

    async def main() -> None:
        cluster = cluster_for(
            AdminSettings.of({"bootstrap.servers": node.bootstrap}), retry_timeout_ms=15_000
        )
        await cluster.start()
        async with Admin(node.bootstrap) as admin, Producer(node.bootstrap) as producer:
            await admin.topics.create("orders-1")
            await producer.send_and_wait("orders-1", b"first")
            records = Reading(cluster, Wish((topic,), follows=True), said.append).records()
            assert (await anext(records)).value == b"first"
            await about(node, admin, records)
            await records.aclose()
        await cluster.close()

    simulated_loop(simulation, network).run(main())
    return said


async def write(node: SimulatedNode, topic: str, value: bytes, partition: int = 0) -> None:
    async with Producer(node.bootstrap) as producer:
        await producer.send_and_wait(topic, value, partition=partition)


def test_partitions_and_topics_that_come_later_are_found() -> None:
    async def about(node: SimulatedNode, admin: Admin, records: Records) -> None:
        await admin.topics.add_partitions("orders-1", 2)
        await write(node, "orders-1", b"second", partition=1)
        assert (await anext(records)).value == b"second"
        await admin.topics.create("orders-2")
        await write(node, "orders-2", b"third")
        assert (await anext(records)).value == b"third"

    assert follow("^orders", about) == []


def test_a_topic_that_is_deleted_ends_it() -> None:
    async def about(node: SimulatedNode, admin: Admin, records: Records) -> None:
        await admin.topics.delete("orders-1")
        with pytest.raises(BrokerError) as caught:
            await anext(records)
        assert caught.value.error_code in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )

    assert follow("orders-1", about) == []


def test_it_goes_on_when_the_broker_comes_back() -> None:
    async def about(node: SimulatedNode, admin: Admin, records: Records) -> None:
        node.kill()
        awaited = asyncio.ensure_future(anext(records))
        await asyncio.sleep(60)
        node.start()
        await write(node, "orders-1", b"after")
        assert (await awaited).value == b"after"

    away, back = follow("orders-1", about)
    assert away.endswith("; waiting")
    assert back == "the connection is back"

"""Our clients before a broker to which connections break, are slow and overtake each other.

Everything acknowledged is there once and in order, transactions are whole, and a group reads everything. That
holds with Ottla and with Apache Kafka.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.support.bad_network import BadNetwork

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.client.producer.batch import SentRecord
from ottla.testing.node import ThreadNode

PARTITIONS = 3
SETTINGS: dict[str, Any] = {"request_timeout_ms": 5_000, "retry_backoff_ms": 20, "retry_backoff_max_ms": 200}
WITHIN_S = 800

pytestmark = pytest.mark.timeout(900)


class Site(NamedTuple):
    """A broker, the way to it that always works, and the bad one."""

    bootstrap: str
    network: BadNetwork
    scale: int
    """How much there is to do."""


@pytest.fixture(
    params=[
        pytest.param("ottla", id="ottla"),
        pytest.param("apache", id="apache", marks=pytest.mark.live_oracle),
    ]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A broker behind a bad network."""
    is_quick = request.param == "ottla"
    network = BadNetwork(seed=1, breaks_after=10 if is_quick else 50)
    if is_quick:
        node = ThreadNode(tmp_path)
        # Clients find the brokers by the addresses that they advertise: the one for tests is not.
        port = node.port
        settings = {"advertised.listeners": f"PLAINTEXT://{network.address}"}
        with ThreadNode(tmp_path, settings, port=port) as running:
            network.leads_to(running.bootstrap)
            yield Site(running.bootstrap, network, 1)
        return
    kafka = ApacheKafka(tmp_path)
    controller = f"CONTROLLER://127.0.0.1:{kafka.controller_port}"
    kafka.properties["advertised.listeners"] = f"PLAINTEXT://{network.address},{controller}"
    with kafka:
        network.leads_to(kafka.bootstrap)
        yield Site(kafka.bootstrap, network, 100)


async def create(site: Site, topic: str) -> None:
    async with Admin(site.network.address, default_api_timeout_ms=100_000) as admin:
        with suppress(ClientError):
            await admin.topics.create(topic, partitions=PARTITIONS, replication_factor=1)
        while len((await admin.topics.describe(topic)).partitions) != PARTITIONS:
            pass


async def everything(site: Site, topic: str) -> dict[int, list[bytes]]:
    """Return what is committed, partition by partition, once the network is good."""
    site.network.breaks_after = 0
    site.network.late = 0.0
    found: dict[int, list[bytes]] = {}
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    async with Consumer(site.network.address, **settings, **SETTINGS) as consumer:
        for where in sorted(await consumer.partitions_for(topic)):
            end = (await consumer.end_offsets([where], includes_open=True))[where]
            consumer.assign([where])
            while await consumer.position(where) < end:
                records = await consumer.poll(500)
                found.setdefault(where.partition, []).extend(record.value or b"" for record in records)
    return found


def test_records_are_written_once_and_a_group_reads_all_of_them(site: Site) -> None:
    count = 2_000 * site.scale
    values = [b"%08d" % number for number in range(count)]

    async def produce() -> None:
        async with Producer(site.network.address, linger_ms=1, **SETTINGS) as producer:
            sent: list[SentRecord] = []
            for number, value in enumerate(values):
                sent.append(await producer.send("t", value, partition=number % PARTITIONS))
                if number % (50 * min(site.scale, 10)) == 0:
                    await sent[-1]
            for record in sent:
                await record

    async def consume(read: set[bytes | None]) -> None:
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 200}
        async with Consumer(site.network.address, group_id="g", **settings, **SETTINGS) as consumer:
            consumer.subscribe(["t"])
            while len(read) < count:
                read |= {record.value for record in await consumer.poll(500)}

    async def story() -> None:
        read: set[bytes | None] = set()
        async with asyncio.timeout(WITHIN_S), site.network:
            await create(site, "t")
            await asyncio.gather(produce(), consume(read))
            assert site.network.met["a broken connection"] > 0
            found = await everything(site, "t")
        assert read == set(values)
        assert found == {number: values[number::PARTITIONS] for number in range(PARTITIONS)}

    asyncio.run(story())


def test_transactions_are_whole(site: Site) -> None:
    count = 10 * site.scale
    committed: list[bytes] = []
    aborted: list[bytes] = []

    async def transact(producer: Producer, number: int) -> None:
        value = b"%08d" % number
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            await producer.send("t", value, partition=partition)
        if number % 4 == 3:
            await end(producer.abort_transaction)
            aborted.append(value)
        else:
            await end(producer.commit_transaction)
            committed.append(value)

    async def end(call: Any) -> None:
        while True:
            try:
                await call()
            except ClientError as error:
                if not error.retriable:
                    raise
            else:
                return

    async def story() -> None:
        async with asyncio.timeout(WITHIN_S), site.network:
            await create(site, "t")
            producers = Producer(site.network.address, transactional_id="id", linger_ms=0, **SETTINGS)
            async with producers as producer:
                for number in range(count):
                    await transact(producer, number)
            found = await everything(site, "t")
        assert found == dict.fromkeys(range(PARTITIONS), committed)
        assert len(committed) + len(aborted) == count

    asyncio.run(story())

"""Topics that the broker serves when a test goes on: Apache Kafka answers before its broker knows of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.support.data_plane import create_topic
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led

from ottla.client.admin import Admin


def make_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    """Create a topic without our client, and wait until every partition of it is led."""
    with PlainClient(bootstrap) as client:
        create_topic(client, name, partitions)
        wait_until_led(client, name, partitions)


async def serve_topic(
    admin: Admin, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic by our client, and wait until every partition of it has a leader."""
    created = await admin.topics.create(name, partitions=partitions, configs=configs)
    await until(lambda: _partitions_led(admin, name), created.partitions)


async def until(ask: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Ask until the answer is the expected one: what a controller took comes to a broker a little later."""
    async with asyncio.timeout(30):
        while await ask() != expected:
            await asyncio.sleep(0.02)


async def _partitions_led(admin: Admin, name: str) -> int:
    described = (await admin.topics.describe_many([name])).succeeded.get(name)
    return 0 if described is None else sum(part.leader >= 0 for part in described.partitions)

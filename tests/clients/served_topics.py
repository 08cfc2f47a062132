"""Topics that the broker serves when a test goes on: Apache Kafka answers before its broker knows of them."""

import asyncio
from collections.abc import Mapping

from ottla.client.admin import Admin
from ottla.client.errors import BrokerError
from ottla.wire.error_code import ErrorCode


async def serve_topic(
    admin: Admin, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic and wait until every partition of it has a leader."""
    created = await admin.topics.create(name, partitions=partitions, configs=configs)
    async with asyncio.timeout(30):
        while await _partitions_led(admin, name) != created.partitions:
            await asyncio.sleep(0.02)


def make_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    """Create a topic and wait for it, where no event loop runs."""

    async def make() -> None:
        async with Admin(bootstrap) as admin:
            await serve_topic(admin, name, partitions)

    asyncio.run(make())


async def _partitions_led(admin: Admin, name: str) -> int:
    try:
        described = await admin.topics.describe(name)
    except BrokerError as error:
        if error.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return 0
        raise
    return sum(part.leader >= 0 for part in described.partitions)

"""A consumer may be closed at any time."""

import asyncio

from ottla.client.consumer.consumer import Consumer


def test_a_consumer_that_was_not_started_has_nothing_to_close() -> None:
    async def scene() -> None:
        consumer = Consumer("nowhere:1", properties={"group.id": "g"})
        await consumer.close()
        await consumer.close()

    asyncio.run(scene())

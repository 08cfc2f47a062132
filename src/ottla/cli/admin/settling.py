"""Waiting until brokers know what was done to topics, so that the next command finds it.

Apache Kafka answers when its controller has decided. Its brokers learn of it a moment later, and until then
they deny that a new topic exists, or list one that is gone. A broker that takes longer than some seconds is
not waited for: what was asked for is done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_PATIENCE_S: Final = 5.0
_PAUSE_S: Final = 0.02


async def until_served(admin: "Admin", name: str, partitions: int) -> None:
    """Wait until the topic has this many partitions, and all of them a leader."""

    async def is_served() -> bool:
        described = (await admin.topics.describe_many([name])).succeeded.get(name)
        led = [part for part in described.partitions if part.leader >= 0] if described else []
        # Old brokers do not say how many partitions a new topic has got.
        return len(led) >= max(partitions, 1)

    await _until(is_served)


async def until_gone(admin: "Admin", names: Collection[str]) -> None:
    """Wait until none of the topics is listed."""

    async def are_gone() -> bool:
        return not {topic.name for topic in await admin.topics.list()} & set(names)

    await _until(are_gone)


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            while not await holds():
                await asyncio.sleep(_PAUSE_S)

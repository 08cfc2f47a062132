"""A share group: each record is delivered until somebody has accepted it, whatever breaks.

Two consumers come and go, and sometimes nobody is there. Records that a lost member held are delivered again,
so a record may come twice. The group begins at the end of the topic, so what was written before a member has
accepted anything need not come. From then on none may be missing.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.cluster.rules.wrong import must

from ottla import Admin, Producer, ShareConsumer
from ottla.client.errors import BrokerError, ClientError
from ottla.wire.error_code import ErrorCode

TOPIC: Final = "shared"
GROUP: Final = "sharers"
QUIET_S_MAX: Final = 90
_CLIENT: Final[dict[str, Any]] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50}
SETTINGS: Final = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.record.lock.duration.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": "10",
    "group.share.max.delivery.count.limit": "10",
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.retention.check.interval.ms": "1000",
}
"""Of nodes whose clients have a share group."""


class Sharing:
    """A producer and the members of a share group."""

    def __init__(self, bootstrap: str, rng: Random, is_over: Callable[[], bool]) -> None:
        self._bootstrap = bootstrap
        self._rng = rng
        self._is_over = is_over
        self._acknowledged: set[int] = set()
        self._delivered: set[int] = set()
        # The first record that was accepted, by partition.
        self._first: dict[int, int] = {}

    async def create(self, admin: Admin) -> None:
        """Create the topic."""
        try:
            await admin.topics.create(TOPIC, partitions=2)
        except BrokerError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def work(self) -> None:
        """Write and read until the time is over."""
        await asyncio.gather(self._write(), self._consume(self._is_over), self._consume(self._is_over))

    async def finish(self) -> None:
        """Read what is left, when nothing breaks any more."""
        async with asyncio.timeout(QUIET_S_MAX + 30):
            loop = asyncio.get_running_loop()
            deadline = loop.time() + QUIET_S_MAX
            await self._consume(lambda: not self._left() or loop.time() > deadline)
        left = sorted(self._left())
        must(not left, f"group: the share group was never given {left[:5]}")

    def _left(self) -> set[int]:
        """Return what is still to come."""
        return {
            number
            for number in self._acknowledged - self._delivered
            if number > self._first.get(number % 2, number)
        }

    async def _write(self) -> None:
        number = 0
        while not self._is_over():
            try:
                async with Producer(
                    self._bootstrap, linger_ms=0, delivery_timeout_ms=6_000, max_block_ms=6_000, **_CLIENT
                ) as producer:
                    while not self._is_over():
                        number += 1
                        await producer.send_and_wait(TOPIC, b"%d" % number, partition=number % 2)
                        self._acknowledged.add(number)
                        await asyncio.sleep(self._rng.uniform(0.02, 0.2))
            except ClientError:
                await asyncio.sleep(0.1)

    async def _consume(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            try:
                async with (
                    asyncio.timeout(QUIET_S_MAX),
                    ShareConsumer(
                        self._bootstrap, group_id=GROUP, default_api_timeout_ms=8_000, **_CLIENT
                    ) as consumer,
                ):
                    consumer.subscribe([TOPIC])
                    for _ in range(self._rng.randint(5, 40)):
                        records = await consumer.poll(timeout_ms=200)
                        numbers = [int(record.value or b"") for record in records]
                        self._delivered.update(numbers)
                        if numbers:
                            await consumer.commit()
                            for number in numbers:
                                self._first.setdefault(number % 2, number)
                        if is_over():
                            break
                await asyncio.sleep(self._rng.choice((0, 1, 2.5)) * (not self._is_over()))
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.2)

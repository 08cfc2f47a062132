"""A compacted topic that is deleted and made again under the same name: nothing of the old one comes back."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Final

from tests.simulation.cluster.rules.wrong import must

from ottla import Admin, Consumer, Producer
from ottla.client.errors import BrokerError, ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

TOPIC: Final = "again"
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "300",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "200",
}
QUIET_S_MAX: Final = 60
_CLIENT: Final[dict[str, Any]] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50}


class Again:
    """Deletes a topic and makes it again."""

    def __init__(self, bootstrap: str, rng: Random, is_over: Callable[[], bool]) -> None:
        self._bootstrap = bootstrap
        self._rng = rng
        self._is_over = is_over
        self._life = 0
        # The last value of each key that was acknowledged in the present life; None for a tombstone.
        self._last: dict[bytes, tuple[int, bytes | None]] = {}

    async def work(self) -> None:
        """Make the topic, write to it, and delete it, until the time is over."""
        while not self._is_over():
            try:
                async with (
                    asyncio.timeout(20),
                    Admin(self._bootstrap, default_api_timeout_ms=10_000, **_CLIENT) as admin,
                ):
                    await self._make(admin)
                    await self._write()
                    if self._is_over():
                        return
                    # From here on it may be gone, also if nobody says so.
                    self._last.clear()
                    await admin.topics.delete(TOPIC)
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.1)

    async def _make(self, admin: Admin) -> None:
        try:
            await admin.topics.create(TOPIC, partitions=1, configs=CONFIGS)
        except BrokerError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            # The old one may still be there.
            self._last.clear()
            await admin.topics.delete(TOPIC)
            raise
        self._life += 1
        self._last.clear()

    async def _write(self) -> None:
        life = self._life
        async with Producer(
            self._bootstrap, linger_ms=0, delivery_timeout_ms=6_000, max_block_ms=6_000, **_CLIENT
        ) as producer:
            for number in range(self._rng.randint(5, 40)):
                key = b"%d" % self._rng.randrange(4)
                value = None if self._rng.random() < 0.3 else b"%d %d" % (life, number)
                # What was not acknowledged may be there all the same.
                self._last.pop(key, None)
                sent = await producer.send_and_wait(TOPIC, value, key=key, partition=0)
                self._last[key] = (sent.offset, value)
                await asyncio.sleep(self._rng.uniform(0, 0.06))

    async def check(self) -> None:
        """Nothing of an older life can be read, and what was written last of each key holds."""
        found: dict[bytes, tuple[int, bytes | None]] = {}
        with suppress(ClientError):
            async with Consumer(self._bootstrap, auto_offset_reset="earliest", **_CLIENT) as consumer:
                consumer.assign([TopicPartition(TOPIC, 0)])
                quiet = 0
                while quiet < 3:
                    records = await consumer.poll(timeout_ms=300)
                    quiet = 0 if records else quiet + 1
                    for record in records:
                        assert record.key is not None
                        found[record.key] = (record.offset, record.value)
        for key, (offset, value) in found.items():
            life = self._life if value is None else int(value.split()[0])
            must(life == self._life, f"compaction: {key!r} at {offset} is of life {life}, not {self._life}")
        for key, last in self._last.items():
            if last[1] is not None:
                must(
                    found.get(key, (-1, None))[0] >= last[0],
                    f"compaction: {key!r} was {last} in {TOPIC}, and is {found.get(key)}",
                )
            elif key in found and found[key][0] < last[0]:
                must(False, f"compaction: {key!r} was deleted at {last[0]}, and is {found[key]} again")

"""The share consumer for callers without an event loop. One thread at a time may use it, but for `wakeup`.

with ShareConsumer("127.0.0.1:9092", group_id="alerts") as consumer:
    consumer.subscribe(["alerts"])
    for record in consumer:
        handle(record)
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from ottla.client.errors import ClientError
from ottla.client.properties import Properties
from ottla.client.serializers import Deserializer, from_bytes
from ottla.client.share import share_consumer as asynchronous
from ottla.client.share.record import ShareRecord
from ottla.client.sync.loop_thread import LoopThread, blocking, blocking_call
from ottla.model.ids import TopicPartition

OnAcknowledged = Callable[[TopicPartition, tuple[int, ...], ClientError | None], None]
_twin = asynchronous.ShareConsumer


class ShareConsumer:
    """Works on records as a member of a share group."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        key_deserializer: Deserializer = from_bytes,
        value_deserializer: Deserializer = from_bytes,
        on_acknowledged: OnAcknowledged | None = None,
        **settings: Any,
    ) -> None:
        self._twin = _twin(
            bootstrap_servers,
            properties=properties,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            on_acknowledged=_beside_the_loop(on_acknowledged),
            **settings,
        )
        self._ahead: list[ShareRecord] = []
        self._thread = LoopThread("ottla-share-consumer")
        self._thread.run_first(self._twin.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ShareRecord:
        if not self._ahead:
            try:
                self._thread.run(self._read_next())
            except StopAsyncIteration:
                raise StopIteration from None
        return self._ahead.pop(0)

    def poll(self, timeout_ms: int = 1000, max_records: int | None = None) -> list[ShareRecord]:
        """Return records as soon as there are some, or none when the time is over.

        What was returned before counts as done, unless acknowledgement is explicit: then each record must
        have been acknowledged. Those acknowledged with RENEW are returned again, locked for longer.
        """
        if not self._ahead:
            self._thread.run(self._read(timeout_ms, max_records))
        records, self._ahead = self._ahead, []
        return records

    def commit(self) -> None:
        """Send the acknowledgements, and wait until they are taken. With implicit ones, all is done.

        Raises `AcknowledgeFailed` for records that the brokers did not take.
        """
        self._thread.run(self._without_unseen(self._twin.commit))

    def commit_async(self) -> None:
        """Send the acknowledgements without waiting. `on_acknowledged` is called in a later `poll`."""

        async def begin() -> None:
            self._twin.commit_async()

        self._thread.run(self._without_unseen(begin))

    def close(self) -> None:
        """Send the acknowledgements there are, give back what is held, leave the group, end the thread."""
        if self._thread.is_running:
            try:
                self._thread.run(self._twin.close())
            finally:
                self._thread.stop()

    subscribe = blocking_call(_twin.subscribe)
    unsubscribe = blocking(_twin.unsubscribe)
    subscription = blocking_call(_twin.subscription)
    assignment = blocking_call(_twin.assignment)
    acquisition_lock_timeout_ms = blocking_call(_twin.acquisition_lock_timeout_ms)
    wakeup = blocking_call(_twin.wakeup)
    acknowledge = blocking_call(_twin.acknowledge)

    async def _read(self, timeout_ms: int, max_records: int | None) -> None:
        # Kept on this side of the threads: if Ctrl-C comes now, nobody has seen them, and they are not done.
        self._ahead += await self._twin.poll(timeout_ms, max_records)

    async def _read_next(self) -> None:
        self._ahead.append(await self._twin.__anext__())

    async def _without_unseen(self, then: Callable[[], Awaitable[None]]) -> None:
        """Give back what nobody has seen, then go on."""
        unseen, self._ahead = self._ahead, []
        self._twin.give_back(unseen)
        await then()


def _beside_the_loop(callback: OnAcknowledged | None) -> Any:
    """Let a callback run on a thread of its own, so that it may use the consumer as any thread may."""
    if callback is None:
        return None

    async def call(where: TopicPartition, offsets: tuple[int, ...], error: ClientError | None) -> None:
        await asyncio.to_thread(callback, where, offsets, error)

    return call

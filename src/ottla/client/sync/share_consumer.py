"""The share consumer for callers without an event loop. One thread at a time may use it, but for `wakeup`.

with ShareConsumer("127.0.0.1:9092", group_id="alerts") as consumer:
    consumer.subscribe(["alerts"])
    for record in consumer:
        handle(record)
"""

import asyncio
from collections.abc import Callable
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
        self._thread = LoopThread("ottla-share-consumer")
        self._thread.run_first(self._twin.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ShareRecord:
        try:
            return self._thread.run(self._twin.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

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
    poll = blocking(_twin.poll)
    wakeup = blocking_call(_twin.wakeup)
    acknowledge = blocking_call(_twin.acknowledge)
    commit = blocking(_twin.commit)
    commit_async = blocking_call(_twin.commit_async)


def _beside_the_loop(callback: OnAcknowledged | None) -> Any:
    """Let a callback run on a thread of its own, so that it may use the consumer as any thread may."""
    if callback is None:
        return None

    async def call(where: TopicPartition, offsets: tuple[int, ...], error: ClientError | None) -> None:
        await asyncio.to_thread(callback, where, offsets, error)

    return call

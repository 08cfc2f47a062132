"""A sink task at work: records of topics to a target, and then their offsets to the group of the connector.

Offsets are committed after the target has made the records durable. A target that keeps its position itself
is read from there, so that nothing is written twice.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.client.admin.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.errors import BrokerError
from ottla.client.producer.producer import Producer
from ottla.connect.configs.common import (
    DLQ_REPLICATION,
    RETRY_DELAY_MAX,
    RETRY_TIMEOUT,
    TOPICS,
    TOPICS_REGEX,
)
from ottla.connect.configs.keys import Kind, parse
from ottla.connect.data.record import Record
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config
from ottla.connect.running.conversion import Conversion
from ottla.connect.running.task import RetryLater, SinkContext, SinkTask
from ottla.connect.running.tolerance import Stage, Tolerance
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_POLL_MS: Final = 200
_FIRST_RETRY_MS: Final = 300


class SinkRun:
    """One life of a sink task."""

    def __init__(
        self,
        connector: str,
        number: int,
        config: Config,
        task: SinkTask,
        conversion: Conversion,
        tolerance: Tolerance,
        consumer: Mapping[str, Any],
        producer: Mapping[str, Any],
        flush_interval_s: float,
        uses_topic: Callable[[str], None],
    ) -> None:
        self._connector = connector
        self._number = number
        self._config = config
        self._task = task
        self._conversion = conversion
        self._tolerance = tolerance
        self._consumer = Consumer(properties=consumer)
        self._producer_properties = producer
        self._producer: Producer | None = None
        self._flush_interval_s = flush_interval_s
        self._uses_topic = uses_topic
        self._topics: set[str] = set()
        self._put: dict[TopicPartition, int] = {}
        """What was put and is not committed yet: the offsets to go on from."""

    async def run(self, ready: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        """Read and write until the task is stopped. `ready` is called when the target is open, and again."""

        def report(record: Record, error: Exception) -> None:
            self._tolerance.report(Stage.TASK_PUT, type(self._task).__name__, record.origin, error)

        await self._task.start(SinkContext(self._connector, self._number, report))
        try:
            async with self._consumer:
                try:
                    self._subscribe()
                    ready()
                    await self._work(ready, is_stopping)
                    await self._commit()
                finally:
                    if self._producer is not None:
                        await self._producer.close()
        finally:
            await self._task.stop()

    def _subscribe(self) -> None:
        topics = parse(TOPICS, Kind.LIST, self._config.get(TOPICS, ""))
        pattern = None if topics else self._config[TOPICS_REGEX]
        self._consumer.subscribe(
            topics, pattern=pattern, on_assigned=self._assigned, on_revoked=self._revoked, on_lost=self._lost
        )

    async def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        for where, offset in (await self._task.opened(partitions)).items():
            self._consumer.seek(where, offset)

    async def _revoked(self, _partitions: frozenset[TopicPartition]) -> None:
        await self._commit()

    def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        for where in partitions:
            self._put.pop(where, None)

    async def _work(self, ready: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        committed_s = loop.time()
        while not is_stopping():
            records = await self._consumer.poll(timeout_ms=_POLL_MS)
            if records:
                await self._deliver(records, is_stopping)
            if records or self._consumer.assignment():
                # Nothing to read is well, too.
                ready()
            # A task that waits for more has time to commit, and nobody has to wait for the end of the
            # interval.
            if self._put and (not records or loop.time() - committed_s >= self._flush_interval_s):
                await self._commit()
                committed_s = loop.time()

    async def _deliver(self, records: list[ConsumerRecord], is_stopping: Callable[[], bool]) -> None:
        for topic in {record.topic for record in records} - self._topics:
            self._topics.add(topic)
            self._uses_topic(topic)
        converted = await self._conversion.for_each(records, self._convert)
        if converted:
            await self._put_or_retry(converted, is_stopping)
        for record in records:
            self._put[record.where] = record.offset + 1
        await self._bury()

    def _convert(self, record: ConsumerRecord) -> Record | None:
        return self._conversion.transform(self._conversion.deserialize(record))

    async def _put_or_retry(self, records: list[Record], is_stopping: Callable[[], bool]) -> None:
        """Put records. A target that says that it cannot be reached is tried again for as long as allowed."""
        loop = asyncio.get_running_loop()
        timeout_ms = int(self._config.get(RETRY_TIMEOUT, "0"))
        longest_ms = int(self._config.get(RETRY_DELAY_MAX, "60000"))
        give_up_s = loop.time() + timeout_ms / 1000
        wait_ms = _FIRST_RETRY_MS
        while True:
            try:
                await self._task.put(records)
            except RetryLater as error:
                if is_stopping() or (timeout_ms >= 0 and loop.time() >= give_up_s):
                    raise ConnectError(str(error)) from error
                await asyncio.sleep(min(wait_ms, longest_ms) / 1000)
                wait_ms *= 2
            else:
                return

    async def _commit(self) -> None:
        if self._put:
            await self._task.flush()
            offsets, self._put = self._put, {}
            await self._consumer.commit(offsets)

    async def _bury(self) -> None:
        """Write dead letters. They are durable before the offsets of their records are committed."""
        letters, self._tolerance.dead_letters = self._tolerance.dead_letters, []
        topic = self._tolerance.dead_letter_topic
        if not letters or topic is None:
            return
        if self._producer is None:
            await self._prepare_dead_letters(topic)
            self._producer = Producer(properties=self._producer_properties)
            await self._producer.start()
        sent = [
            await self._producer.send(
                topic, item.value, key=item.key, timestamp_ms=item.timestamp_ms, headers=item.headers
            )
            for item in letters
        ]
        for item in sent:
            await item

    async def _prepare_dead_letters(self, topic: str) -> None:
        replicas = int(self._config.get(DLQ_REPLICATION, "3"))
        async with Admin(properties=self._admin_properties()) as admin:
            try:
                await admin.topics.create(topic, partitions=1, replication_factor=replicas)
            except BrokerError as error:
                if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    def _admin_properties(self) -> dict[str, Any]:
        wanted = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.id")
        return {name: value for name, value in self._producer_properties.items() if name.startswith(wanted)}

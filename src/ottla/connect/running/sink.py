"""A sink task at work: records of topics to a target, and then their offsets to the group of the connector.

Offsets are committed after the target has made the records durable, and after the dead letters among them are
written. After a failure nothing is committed: the next life reads again what this one leaves. A target that
keeps its position itself is read from there, so that nothing is written twice.

A target that cannot be reached keeps its records. They are put again, later each time, while the task stays a
member of its group and reads nothing else.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.admin.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.offsets import CommitFailed, RebalanceInProgress
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer.producer import Producer
from ottla.connect.configs.keys import Kind, parse
from ottla.connect.configs.shared_keys import (
    DLQ_REPLICATION,
    RETRY_DELAY_MAX,
    TOPICS,
    TOPICS_REGEX,
)
from ottla.connect.data.record import Record
from ottla.connect.plugins import Config
from ottla.connect.running.conversion import Conversion
from ottla.connect.running.task import RetryLater, SinkContext, SinkTask
from ottla.connect.running.tolerance import Stage, Tolerance
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)
_POLL_MS: Final = 200
_FIRST_RETRY_MS: Final = 300
_LONGEST_WISH_S: Final = 3600.0
"""A target that wants to be left alone for longer is asked after this."""


@dataclass
class _Batch:
    """Records on their way into the target."""

    records: list[Record]
    """What is still to be put."""
    ends: dict[TopicPartition, int]
    """Where each partition goes on after the whole batch."""

    def positions(self) -> dict[TopicPartition, int]:
        """Return where each partition goes on after what was put."""
        waiting: dict[TopicPartition, int] = {}
        for record in self.records:
            assert record.origin is not None, "a sink's records come from topics"
            waiting.setdefault(record.origin.where, record.origin.offset)
        return {**self.ends, **waiting}

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions."""
        self.records = [item for item in self.records if item.origin and item.origin.where not in partitions]
        self.ends = {where: end for where, end in self.ends.items() if where not in partitions}


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
        self._batch: _Batch | None = None
        """What the target did not take yet."""
        self._retry_s = 0.0
        self._wait_ms = _FIRST_RETRY_MS
        self._has_failed = False

    async def run(self, ready: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        """Read and write until the task is stopped. `ready` is called when the target is open, and again."""

        def report(record: Record, error: Exception) -> None:
            self._tolerance.report(Stage.TASK_PUT, type(self._task).__name__, record.origin, error)

        try:
            # One that fails half way has perhaps opened something: it is stopped, too.
            await self._task.start(self._context(report))
            async with self._consumer:
                try:
                    self._subscribe()
                    ready()
                    await self._work(ready, is_stopping)
                    await self._commit()
                except BaseException:
                    # Leaving the group gives the partitions up, and must not commit what was not done.
                    self._has_failed = True
                    raise
                finally:
                    if self._producer is not None:
                        await self._producer.close()
        finally:
            await self._task.stop()

    def _context(self, report: Callable[[Record, Exception], None]) -> SinkContext:
        return SinkContext(self._connector, self._number, report, self._bury, self._topic_ids)

    async def _topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        async with Admin(properties=self._admin_properties()) as admin:
            found = (await admin.topics.describe_many(list(topics))).check()
        return {name: str(topic.topic_id) for name, topic in found.items() if topic.topic_id != ZERO_UUID}

    def _subscribe(self) -> None:
        topics = parse(TOPICS, Kind.LIST, self._config.get(TOPICS, ""))
        pattern = None if topics else self._config[TOPICS_REGEX]
        self._consumer.subscribe(
            topics, pattern=pattern, on_assigned=self._assigned, on_revoked=self._revoked, on_lost=self._lost
        )

    async def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        for where, offset in (await self._task.opened(partitions)).items():
            self._consumer.seek(where, offset)
        if self._batch is not None:
            self._consumer.pause(*partitions)

    async def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if not self._has_failed:
            await self._commit()
        await self._lost(partitions)

    async def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        for where in partitions:
            self._put.pop(where, None)
        if self._batch is not None:
            self._batch.drop(partitions)
        await self._task.closed(partitions)

    async def _work(self, ready: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        committed_s = loop.time()
        while not is_stopping():
            if self._batch is not None:
                # The task stays in its group meanwhile. What it is given now waits, too.
                self._consumer.pause(*self._consumer.assignment())
            records = await self._consumer.poll(timeout_ms=_POLL_MS)
            assert not records or self._batch is None, "nothing is read while records wait"
            if records:
                await self._take(records)
            elif self._batch is not None and loop.time() >= self._retry_s:
                await self._push(self._batch)
            if self._consumer.assignment():
                # Nothing to read is well, too.
                ready()
            # A task that waits for more has time to commit, and nobody has to wait for the end of the
            # interval.
            if self._put and self._is_time_to_commit(loop.time() - committed_s, has_time=not records):
                await self._commit()
                committed_s = loop.time()

    def _is_time_to_commit(self, since_s: float, *, has_time: bool) -> bool:
        wanted_s = self._task.commit_interval_s
        if wanted_s is not None:
            return since_s >= wanted_s
        return has_time or since_s >= self._flush_interval_s

    async def _take(self, records: list[ConsumerRecord]) -> None:
        for topic in {record.topic for record in records} - self._topics:
            self._topics.add(topic)
            self._uses_topic(topic)
        converted = await self._conversion.for_each(records, self._convert)
        await self._push(_Batch(converted, {record.where: record.offset + 1 for record in records}))

    def _convert(self, record: ConsumerRecord) -> Record | None:
        return self._conversion.transform(self._conversion.deserialize(record))

    async def _push(self, batch: _Batch) -> None:
        """Put records. What the target cannot take now is kept for later."""
        self._batch = batch
        waits: RetryLater | None = None
        # Before the target is asked: one that keeps its position would go on behind what cannot be read.
        await self._bury()
        try:
            if batch.records:
                await self._task.put(batch.records)
        except RetryLater as error:
            waits = error
            del batch.records[: error.done]
        # Only what is written there counts as done: also what the target has reported.
        await self._bury()
        if waits is not None:
            self._put |= batch.positions()
            self._put_off(waits)
            return
        self._put |= batch.ends
        self._batch = None
        self._wait_ms = _FIRST_RETRY_MS
        self._consumer.resume(*self._consumer.paused())

    def _put_off(self, error: RetryLater) -> None:
        if error.done:
            self._wait_ms = _FIRST_RETRY_MS
        longest_ms = int(self._config.get(RETRY_DELAY_MAX, "60000"))
        wait_s = min(self._wait_ms, longest_ms) / 1000
        self._wait_ms = min(self._wait_ms * 2, longest_ms)
        if error.after_s is not None:
            wait_s = max(wait_s, min(error.after_s, _LONGEST_WISH_S))
        self._retry_s = asyncio.get_running_loop().time() + wait_s
        _logger.warning(
            "task %s-%d waits %.1f s, and tries again what was not taken: %s",
            self._connector,
            self._number,
            wait_s,
            error,
        )

    async def _commit(self) -> None:
        if not self._put:
            return
        try:
            await self._task.flush()
        except BaseException:
            self._has_failed = True
            raise
        offsets, self._put = self._put, {}
        try:
            await self._consumer.commit(offsets)
        except ClientError as error:
            if not (error.retriable or isinstance(error, CommitFailed | RebalanceInProgress)):
                self._has_failed = True
                raise
            # A task that takes the partitions on reads again from the last commit. If that is this one, it
            # commits these offsets with the next ones.
            self._put = {**offsets, **self._put}
            _logger.warning("task %s-%d could not commit: %s", self._connector, self._number, error)

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
        wanted = int(self._config.get(DLQ_REPLICATION, "3"))
        async with Admin(properties=self._admin_properties()) as admin:
            replicas = min(wanted, len((await admin.cluster.describe()).brokers))
            try:
                await admin.topics.create(topic, partitions=1, replication_factor=replicas)
            except BrokerError as error:
                if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
                return
        if replicas < wanted:
            _logger.warning(
                "the topic of dead letters %r has %d of %d replicas: the cluster has no more brokers. "
                "Set %s, or add replicas when it has",
                topic,
                replicas,
                wanted,
                DLQ_REPLICATION,
            )

    def _admin_properties(self) -> dict[str, Any]:
        wanted = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.id")
        return {name: value for name, value in self._producer_properties.items() if name.startswith(wanted)}

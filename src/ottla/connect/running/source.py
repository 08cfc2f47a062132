"""A source task at work: each batch of records and the positions behind them are one transaction.

The producer has a transactional id of its own for each task. Starting it fences the task's earlier life and
ends what that left open. Tasks of an earlier division of the work are fenced before that. Only then are the
positions read that the task goes on from. So a record is in the topic exactly once if the task reads the same
again from the same position.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from ottla.client.admin.admin import Admin
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer.batch import SentRecord
from ottla.client.producer.producer import Producer
from ottla.connect.configs.shared_keys import TOPIC_PARTITIONS, TOPIC_REPLICATION
from ottla.connect.data.record import Record
from ottla.connect.plugins import Config
from ottla.connect.running.conversion import Conversion, SerializedRecord
from ottla.connect.running.task import SourceContext, SourceTask
from ottla.connect.store.records import encode_json, offset_record
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

_LONGEST: Final = "transaction.max.timeout.ms"
_KAFKAS_LONGEST_MS: Final = 900_000


class Positions(Protocol):
    """Where sources go on."""

    async def catch_up(self) -> None:
        """Read everything that is committed now."""

    def find(self, connector: str, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a position."""


class Barrier(Protocol):
    """What keeps apart the tasks of a source before and after a change."""

    async def wait_until_fenced(self, is_stopping: Callable[[], bool]) -> None:
        """See that no task from before the change can write any more. Raises Superseded."""

    async def check(self) -> None:
        """See that there was no change since. Raises Superseded."""


class SourceRun:
    """One life of a source task."""

    def __init__(
        self,
        connector: str,
        number: int,
        config: Config,
        task: SourceTask,
        conversion: Conversion,
        positions: Positions,
        barrier: Barrier,
        offset_topic: str,
        properties: Mapping[str, str],
        transactional_id: str,
        uses_topic: Callable[[str], None],
    ) -> None:
        self._connector = connector
        self._number = number
        self._config = config
        self._task = task
        self._conversion = conversion
        self._positions = positions
        self._barrier = barrier
        self._offset_topic = offset_topic
        self._properties = properties
        self._transactional_id = transactional_id
        self._uses_topic = uses_topic
        self._created: set[str] = set()
        self._sent: list[SentRecord] = []
        self._last: dict[bytes, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        """The last position in each partition of the source, of the open transaction."""

    async def run(self, ready: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        """Read and write until the task is stopped. `ready` is called when the source is open, and again."""
        timeout_ms = await self._timeout_ms()
        await self._barrier.wait_until_fenced(is_stopping)
        # Who is from before the change must not fence who is from after it.
        await self._barrier.check()
        async with Producer(
            properties=self._properties,
            transactional_id=self._transactional_id,
            transaction_timeout_ms=timeout_ms,
        ) as producer:
            # The producer was made after the fencing if there was no change until now.
            await self._barrier.check()
            await self._positions.catch_up()
            context = SourceContext(
                self._connector, self._number, lambda part: self._positions.find(self._connector, part)
            )
            try:
                await self._task.start(context)
                ready()
                await self._work(producer, ready, is_stopping)
            finally:
                await self._task.stop()

    async def _timeout_ms(self) -> int:
        wanted = self._task.transaction_timeout_ms
        if wanted is not None:
            return wanted
        async with Admin(properties=self._admin_properties()) as admin:
            return await longest_transaction_ms(admin)

    async def _work(
        self, producer: Producer, ready: Callable[[], None], is_stopping: Callable[[], bool]
    ) -> None:
        begun = False
        try:
            while not is_stopping():
                records = await self._task.poll()
                if records and not begun:
                    producer.begin_transaction()
                    begun = True
                await self._send(producer, records)
                if begun and self._task.may_commit:
                    begun = False
                    await self._commit(producer)
                ready()
        finally:
            if begun:
                await producer.abort_transaction()

    async def _commit(self, producer: Producer) -> None:
        """Write the positions, and end the transaction."""
        try:
            await self._settle()
            for partition, offset in self._last.values():
                stored = offset_record(self._connector, partition, offset)
                self._sent.append(await producer.send(self._offset_topic, stored.value, key=stored.key))
            await self._settle()
        except BaseException:
            await producer.abort_transaction()
            raise
        await producer.commit_transaction()
        self._last.clear()
        await self._task.committed()

    async def _settle(self) -> None:
        """Wait until all that was sent is acknowledged."""
        sent, self._sent = self._sent, []
        for outcome in sent:
            await outcome

    async def _send(self, producer: Producer, records: Sequence[Record]) -> None:
        converted = await self._conversion.for_each(records, self._convert)
        for topic in {item.topic for item in converted} - self._created:
            await self._prepare_topic(topic)
        for item in converted:
            self._sent.append(
                await producer.send(
                    item.topic,
                    item.value,
                    key=item.key,
                    partition=item.partition,
                    timestamp_ms=item.timestamp_ms,
                    headers=item.headers,
                )
            )
        if not self._task.may_commit:
            await self._settle()
        for record in records:
            # Records that were left out count as well.
            if record.source_partition is not None and record.source_offset is not None:
                key = encode_json(record.source_partition)
                self._last[key] = (record.source_partition, record.source_offset)

    def _convert(self, record: Record) -> SerializedRecord | None:
        changed = self._conversion.transform(record)
        return None if changed is None else self._conversion.serialize(changed)

    async def _prepare_topic(self, topic: str) -> None:
        """Create a topic if the configuration says how. Otherwise the broker does, if it may."""
        partitions = int(self._config.get(TOPIC_PARTITIONS, "-1"))
        replicas = int(self._config.get(TOPIC_REPLICATION, "-1"))
        if TOPIC_PARTITIONS in self._config or TOPIC_REPLICATION in self._config:
            async with Admin(properties=self._admin_properties()) as admin:
                try:
                    await admin.topics.create(topic, partitions=partitions, replication_factor=replicas)
                except BrokerError as error:
                    if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise
        self._created.add(topic)
        self._uses_topic(topic)

    def _admin_properties(self) -> dict[str, str]:
        wanted = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.id")
        return {name: value for name, value in self._properties.items() if name.startswith(wanted)}


async def longest_transaction_ms(admin: Admin) -> int:
    """Return how long all brokers allow a transaction to take. Who may not ask gets Kafka's default."""
    brokers = [str(broker.node_id) for broker in (await admin.cluster.describe()).brokers]
    found = [_KAFKAS_LONGEST_MS] if not brokers else []
    for name in brokers:
        try:
            configs = await admin.configs.describe(ResourceType.BROKER, name, keys=[_LONGEST])
            found.append(int(configs[_LONGEST].value or _KAFKAS_LONGEST_MS))
        except (ClientError, KeyError):
            found.append(_KAFKAS_LONGEST_MS)
    return min(found)

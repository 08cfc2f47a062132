"""A process of the workload with our own producer and consumer, on an event loop of their own."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from ottla.client.consumer import Consumer
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, NoBrokerReached
from ottla.client.group import GroupMetadata
from ottla.client.producer import Producer, RecordMetadata
from ottla.client.producer.batch import SentRecord
from ottla.client.producer.transactions import Fenced, WrongTransactionState
from ottla.client.sync.loop_thread import LoopThread
from ottla.model.ids import TopicPartition
from ottla.testing.guarantees.generator import key_of_partition, partition_of
from ottla.testing.guarantees.process import (
    GROUP,
    POLL_S,
    RECORDS_PER_POLL,
    SEND_S,
    START_S,
    TRANSACTION_TIMEOUT_MS,
    ClientFailed,
    Process,
)

CLOSE_S: Final = 2.0

R = TypeVar("R")


class OttlaProcess(Process):
    """One producer and one consumer."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        super().__init__()
        self._thread = LoopThread(transactional_id)
        self._sent: list[tuple[SentRecord, Callable[[int], None]]] = []
        try:
            self._producer, self._consumer = self._run(_start(bootstrap, transactional_id), START_S)
        except ClientFailed:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Let go of it. What was not sent by then is not; an open transaction stays open."""
        for closing in (self._consumer.close, self._producer.close):
            with contextlib.suppress(ClientFailed):
                self._run(closing(), CLOSE_S)
        self._thread.stop()

    def begin(self) -> None:
        """Open a transaction."""
        self._sent.clear()
        self._run(_async(self._producer.begin_transaction), SEND_S)

    def send(self, key: int, value: int, acknowledge: Callable[[int], None]) -> None:
        """Send a value."""
        topic, partition = partition_of(key)
        sent = self._run(self._producer.send(topic, b"%d" % value, partition=partition), SEND_S)
        self._sent.append((sent, acknowledge))

    def flush(self) -> None:
        """Wait for acknowledgements, and tell of all that came."""
        failure: ClientFailed | None = None
        for sent, acknowledge in self._sent:
            try:
                acknowledge(self._run(_wait(sent), SEND_S).offset)
            except ClientFailed as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def poll_records(self) -> Iterable[tuple[int, int, int]]:
        """Read for a moment."""
        polled = self._run(self._consumer.poll(int(POLL_S * 1000), RECORDS_PER_POLL), SEND_S)
        return [(key_of_partition(*one.where), one.offset, int(one.value)) for one in polled]

    def send_offsets(self, positions: Mapping[int, int]) -> None:
        """Make offsets part of the transaction."""
        offsets = {_where(key): at for key, at in positions.items()}
        self._run(self._producer.send_offsets_to_transaction(offsets, GroupMetadata(GROUP)), SEND_S)

    def commit(self) -> None:
        """Commit."""
        self._run(self._producer.commit_transaction(), SEND_S)

    def abort(self) -> None:
        """Abort."""
        self._run(self._producer.abort_transaction(), SEND_S)

    def read_from(self, positions: Mapping[int, int]) -> None:
        """Read from these offsets on."""

        def seek() -> None:
            self._consumer.assign([_where(key) for key in positions])
            for key, at in positions.items():
                self._consumer.seek(_where(key), at)

        self._run(_async(seek), SEND_S)

    def committed_offsets(self, keys: Iterable[int]) -> dict[int, int]:
        """Ask for the group's offsets."""
        found = self._run(self._consumer.committed([_where(key) for key in keys]), SEND_S)
        return {key_of_partition(*where): 0 if one is None else one.offset for where, one in found.items()}

    def _run(self, coroutine: Coroutine[Any, Any, R], seconds_max: float) -> R:
        """Run something on the loop, and give its errors the names by which they are judged."""
        try:
            return self._thread.run(asyncio.wait_for(coroutine, seconds_max))
        except (ClientError, TimeoutError) as error:
            raise ClientFailed(_name_of(error)) from error


async def _start(bootstrap: str, transactional_id: str) -> tuple[Producer, Consumer]:
    producer = Producer(
        bootstrap,
        transactional_id=transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        linger_ms=0,
    )
    consumer = Consumer(
        bootstrap,
        group_id=GROUP,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    await producer.start()
    await consumer.start()
    return producer, consumer


async def _async(call: Callable[[], None]) -> None:
    call()


async def _wait(sent: SentRecord) -> RecordMetadata:
    metadata: RecordMetadata = await sent
    return metadata


def _where(key: int) -> TopicPartition:
    return TopicPartition(*partition_of(key))


def _name_of(error: ClientError | TimeoutError) -> str:
    if isinstance(error, BrokerError):
        return error.error_code.name
    if isinstance(error, Fenced):
        return "PRODUCER_FENCED"
    if isinstance(error, WrongTransactionState):
        return "_STATE"
    if isinstance(error, ConnectionLost | NoBrokerReached):
        return "_TRANSPORT"
    return "_TIMED_OUT"

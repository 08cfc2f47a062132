"""A process of the workload with our own producer and consumer, on the event loop that runs."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from ottla.client.consumer import Consumer
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, NoBrokerReached
from ottla.client.group import GroupMetadata
from ottla.client.producer import Producer, RecordMetadata
from ottla.client.producer.batch import SentRecord
from ottla.client.producer.transactions import Fenced, WrongTransactionState
from ottla.model.ids import TopicPartition
from ottla.testing.guarantees.generator import key_of_partition, partition_of
from ottla.testing.guarantees.process import (
    GROUP,
    POLL_S,
    RECORDS_PER_POLL,
    START_S,
    TRANSACTION_TIMEOUT_MS,
    ClientFailed,
    Process,
)

CLOSE_S: Final = 2.0

R = TypeVar("R")


class OttlaProcess(Process):
    """One producer and one consumer."""

    def __init__(
        self,
        bootstrap: str,
        transactional_id: str | None,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        **settings: Any,
    ) -> None:
        """`settings` hold for the producer and for the consumer.

        Without a transactional id, the producer is idempotent.
        """
        super().__init__()
        self._sent: list[tuple[SentRecord, Callable[[int], None]]] = []
        self._producer = Producer(
            bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            linger_ms=0,
            **settings,
        )
        self._consumer = Consumer(
            bootstrap,
            group_id=GROUP,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
            **settings,
        )

    async def start(self) -> None:
        """Connect."""
        await _within(START_S, self._producer.start())
        await _within(START_S, self._consumer.start())

    async def close(self) -> None:
        """Let go of it. What was not sent by then is not; an open transaction stays open."""
        for closing in (self._consumer.close, self._producer.close):
            with contextlib.suppress(ClientFailed):
                await _within(CLOSE_S, closing())

    async def begin(self) -> None:
        """Open a transaction."""
        self._sent.clear()
        with _named_errors():
            self._producer.begin_transaction()

    async def send(self, key: int, value: int, acknowledge: Callable[[int], None]) -> None:
        """Send a value."""
        topic, partition = partition_of(key)
        sent = await _within(self.answer_s, self._producer.send(topic, b"%d" % value, partition=partition))
        self._sent.append((sent, acknowledge))

    async def flush(self) -> None:
        """Wait for acknowledgements, and report all that came."""
        failure: ClientFailed | None = None
        for sent, acknowledge in self._sent:
            try:
                acknowledge(await _within(self.answer_s, _offset_of(sent)))
            except ClientFailed as error:
                failure = failure or error
        self._sent.clear()
        if failure is not None:
            raise failure

    async def poll_records(self) -> Iterable[tuple[int, int, int]]:
        """Read for a moment."""
        polled = await _within(self.answer_s, self._consumer.poll(int(POLL_S * 1000), RECORDS_PER_POLL))
        return [(key_of_partition(*one.where), one.offset, int(one.value)) for one in polled]

    async def send_offsets(self, positions: Mapping[int, int]) -> None:
        """Make offsets part of the transaction."""
        offsets = {_where(key): at for key, at in positions.items()}
        await _within(
            self.answer_s, self._producer.send_offsets_to_transaction(offsets, GroupMetadata(GROUP))
        )

    async def commit(self) -> None:
        """Commit."""
        await _within(self.answer_s, self._producer.commit_transaction())

    async def abort(self) -> None:
        """Abort."""
        await _within(self.answer_s, self._producer.abort_transaction())

    async def read_from(self, positions: Mapping[int, int]) -> None:
        """Read from these offsets on."""
        with _named_errors():
            self._consumer.assign([_where(key) for key in positions])
            for key, at in positions.items():
                self._consumer.seek(_where(key), at)

    async def committed_offsets(self, keys: Iterable[int]) -> dict[int, int]:
        """Ask for the group's offsets."""
        found = await _within(self.answer_s, self._consumer.committed([_where(key) for key in keys]))
        return {key_of_partition(*where): 0 if one is None else one.offset for where, one in found.items()}


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    """Give errors the names by which they are judged."""
    try:
        yield
    except (ClientError, TimeoutError) as error:
        raise ClientFailed(name_of(error)) from error


async def _within(seconds_max: float, coroutine: Coroutine[Any, Any, R]) -> R:
    with _named_errors():
        return await asyncio.wait_for(coroutine, seconds_max)


async def _offset_of(sent: SentRecord) -> int:
    metadata: RecordMetadata = await sent
    return metadata.offset


def _where(key: int) -> TopicPartition:
    return TopicPartition(*partition_of(key))


def name_of(error: ClientError | TimeoutError) -> str:
    """Return the name by which an error of our client is judged."""
    if isinstance(error, BrokerError):
        return error.error_code.name
    if isinstance(error, Fenced):
        return "PRODUCER_FENCED"
    if isinstance(error, WrongTransactionState):
        return "_STATE"
    if isinstance(error, ConnectionLost | NoBrokerReached):
        return "_TRANSPORT"
    return "_TIMED_OUT"

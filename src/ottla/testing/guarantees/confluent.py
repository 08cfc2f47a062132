"""A process of the workload with librdkafka's producer and consumer."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from ottla.testing.guarantees.generator import key_of_partition, partition_of
from ottla.testing.guarantees.process import (
    ANSWER_S,
    GROUP,
    POLL_S,
    RECORDS_PER_POLL,
    START_S,
    TRANSACTION_TIMEOUT_MS,
    ClientFailed,
    Process,
)

# With "rebootstrap" a producer that lost its only broker may wait for minutes before it sends offsets
# (librdkafka 2.16): its coordinator is known by a connection that was thrown away. Consumers forget topics.
RECONNECTING: Final[Mapping[str, Any]] = {
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,
}

HANG_S: Final = ANSWER_S + 5.0
"""A call that has not returned by now never will."""


def consumer_settings(bootstrap: str, **others: Any) -> dict[str, Any]:
    """Return the settings of readers that see what is committed and nothing else."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
        **RECONNECTING,
        **others,
    }


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        cause: KafkaError = error.args[0]
        raise ClientFailed(cause.name()) from error


def _return_within(seconds_max: float, call: Callable[[], object]) -> None:
    """Carry out a call that may never return. Then its client has to be replaced.

    librdkafka 2.16 forgets the timeout of offsets for a transaction when it has lost their coordinator (its
    issue 5456).
    """
    outcome: SimpleQueue[KafkaException | None] = SimpleQueue()

    def carry_out() -> None:
        try:
            call()
        except KafkaException as error:
            outcome.put(error)
        else:
            outcome.put(None)

    Thread(target=carry_out, daemon=True).start()
    try:
        error = outcome.get(timeout=seconds_max)
    except Empty:
        raise ClientFailed("_TIMED_OUT") from None
    if error is not None:
        raise error


class ConfluentProcess(Process):
    """One producer and one consumer."""

    def __init__(self, bootstrap: str, transactional_id: str | None) -> None:
        """Without a transactional id, the producer is idempotent."""
        super().__init__()
        self._errors: list[KafkaError] = []
        self._is_transactional = transactional_id is not None
        identity = (
            {"enable.idempotence": True}
            if transactional_id is None
            else {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        )
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 0, **identity, **RECONNECTING}
        )
        self._consumer = Consumer(consumer_settings(bootstrap))

    async def start(self) -> None:
        """Connect."""
        if self._is_transactional:
            with _named_errors():
                self._producer.init_transactions(START_S)

    async def close(self) -> None:
        """Throw away what was not sent; an open transaction stays open."""
        with contextlib.suppress(KafkaException):
            self._producer.purge()
        self._consumer.close()

    async def begin(self) -> None:
        """Open a transaction."""
        self._errors.clear()
        with _named_errors():
            self._producer.begin_transaction()

    async def send(self, key: int, value: int, acknowledge: Callable[[int], None]) -> None:
        """Send a value."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                assert offset is not None
                acknowledge(offset)
            else:
                self._errors.append(error)

        topic, partition = partition_of(key)
        with _named_errors():
            self._producer.produce(topic, b"%d" % value, partition=partition, on_delivery=delivered)
            self._producer.poll(0)

    async def flush(self) -> None:
        """Wait for acknowledgements."""
        with _named_errors():
            left = self._producer.flush(self.answer_s)
        if left:
            raise ClientFailed("_TIMED_OUT")
        if self._errors:
            first, *_ = self._errors
            self._errors.clear()
            raise ClientFailed(first.name())

    async def poll_records(self) -> Iterable[tuple[int, int, int]]:
        """Read for a moment."""
        polled = self._consumer.consume(RECORDS_PER_POLL, POLL_S)
        return [record_of(message) for message in polled if message.error() is None]

    async def send_offsets(self, positions: Mapping[int, int]) -> None:
        """Make offsets part of the transaction."""
        offsets = [TopicPartition(*partition_of(key), at) for key, at in positions.items()]
        with _named_errors():
            group = self._consumer.consumer_group_metadata()
            _return_within(
                HANG_S,
                lambda: self._producer.send_offsets_to_transaction(offsets, group, self.answer_s),
            )

    async def commit(self) -> None:
        """Commit."""
        with _named_errors():
            self._producer.commit_transaction(self.answer_s)

    async def abort(self) -> None:
        """Abort."""
        with _named_errors():
            self._producer.abort_transaction(self.answer_s)

    async def read_from(self, positions: Mapping[int, int]) -> None:
        """Read from these offsets on."""
        with _named_errors():
            self._consumer.assign([TopicPartition(*partition_of(key), at) for key, at in positions.items()])

    async def committed_offsets(self, keys: Iterable[int]) -> dict[int, int]:
        """Ask for the group's offsets."""
        with _named_errors():
            return committed_offsets(self._consumer, keys)


def committed_offsets(consumer: Consumer, keys: Iterable[int]) -> dict[int, int]:
    """Return where a consumer's group goes on, 0 where it has not begun."""
    asked = [TopicPartition(*partition_of(key)) for key in keys]
    found = {}
    for part in consumer.committed(asked, ANSWER_S):
        if part.error is not None:
            raise KafkaException(part.error)
        found[key_of_partition(part.topic, part.partition)] = max(part.offset, 0)
    return found


def record_of(message: Message) -> tuple[int, int, int]:
    """Return key, offset and value of a message."""
    offset, value = message.offset(), message.value()
    assert offset is not None
    assert value is not None
    return key_of(message), offset, int(value)


def key_of(message: Message) -> int:
    """Return the key that a message's partition stands for."""
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return key_of_partition(topic, partition)

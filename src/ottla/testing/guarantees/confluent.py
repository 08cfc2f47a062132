"""A process of the workload: a transactional producer and a consumer, both librdkafka's."""

import contextlib
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from ottla.testing.guarantees.errors import FAILED_FOR_GOOD, Stage, Verdict, judge_transaction
from ottla.testing.guarantees.generator import PARTITIONS_PER_TOPIC, Plan, partition_of

POLL_S: Final = 0.1
SEND_S: Final = 10.0
RECORDS_PER_POLL: Final = 50
TRANSACTION_TIMEOUT_MS: Final = 10_000


def consumer_settings(bootstrap: str) -> dict[str, Any]:
    """Return the settings of readers that see what is committed and nothing else."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "guarantees",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }


class TransactionFailed(Exception):
    """A transaction did not come to its end; the verdict says what is known of it."""

    def __init__(self, verdict: Verdict, error: str) -> None:
        super().__init__(error)
        self.verdict = verdict


class ConfluentProcess:
    """One producer and one consumer. When an outcome is unknown it is thrown away."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer = Consumer(consumer_settings(bootstrap))
        self._positions: dict[int, int] = {}
        self._producer.init_transactions(30)

    def close(self) -> None:
        """Let go of it, whatever it is in the middle of."""
        with contextlib.suppress(KafkaException):
            self._producer.purge()
        self._consumer.close()

    def assign(self, keys: tuple[int, ...]) -> None:
        """Read these keys, where it left off or from their beginning."""
        self._positions = {key: self._positions.get(key, 0) for key in keys}
        self._assign()

    def _assign(self) -> None:
        self._consumer.assign([TopicPartition(*partition_of(key), at) for key, at in self._positions.items()])

    def transact(self, plan: Plan, done: list[Any]) -> None:
        """Do the steps of a plan in one transaction, and note in `done` what came of each.

        Raises `TransactionFailed` unless it was committed.
        """
        before = dict(self._positions)
        try:
            self._transact(plan, done)
        except TransactionFailed:
            if before != self._positions:
                # What it has read it has to read again.
                self._positions = before
                self._assign()
            raise

    def _transact(self, plan: Plan, done: list[Any]) -> None:
        try:
            self._producer.begin_transaction()
            self._do_steps(plan, done)
        except KafkaException as error:
            raise self._failed(Stage.BEFORE_COMMIT, error) from error
        if plan.crashes:
            # Nobody ends it: its successor has to.
            raise TransactionFailed(FAILED_FOR_GOOD, "crashed on purpose")
        if plan.aborts:
            abort_error = self._abort()
            raise TransactionFailed(
                judge_transaction(Stage.BEFORE_COMMIT, "deliberate", abort_error), "aborted on purpose"
            )
        try:
            self._producer.commit_transaction(SEND_S)
        except KafkaException as error:
            raise self._failed(Stage.COMMIT, error) from error

    def _do_steps(self, plan: Plan, done: list[Any]) -> None:
        errors: list[KafkaError] = []
        for step in plan.steps:
            if step is None:
                done.append(["poll", self._poll()])
                continue
            key, value = step
            result: list[Any] = [None, value]
            done.append(["send", key, result])

            def delivered(error: KafkaError | None, message: Message, result: list[Any] = result) -> None:
                if error is None:
                    result[0] = message.offset()
                else:
                    errors.append(error)

            topic, partition = partition_of(key)
            self._producer.produce(topic, b"%d" % value, partition=partition, on_delivery=delivered)
            self._producer.poll(0)
        if self._producer.flush(SEND_S):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if errors:
            raise KafkaException(errors[0])

    def _poll(self) -> dict[str, list[list[int]]]:
        records: dict[str, list[list[int]]] = {}
        for message in self._consumer.consume(RECORDS_PER_POLL, POLL_S):
            if message.error() is None:
                key = key_of(message)
                offset, value = message.offset(), message.value()
                assert offset is not None
                assert value is not None
                records.setdefault(str(key), []).append([offset, int(value)])
                self._positions[key] = offset + 1
        return records

    def _failed(self, stage: Stage, error: KafkaException) -> TransactionFailed:
        cause: KafkaError = error.args[0]
        return TransactionFailed(judge_transaction(stage, cause.name(), self._abort()), cause.name())

    def _abort(self) -> str | None:
        """Abort; return None, or the error."""
        try:
            self._producer.abort_transaction(SEND_S)
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            return cause.name()
        return None


def key_of(message: Message) -> int:
    """Return the key that a message's partition stands for."""
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return int(topic[1:]) * PARTITIONS_PER_TOPIC + partition

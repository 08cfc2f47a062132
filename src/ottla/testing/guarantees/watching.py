"""Those who only watch: one looks at the bounds of partitions, others read everything at the end."""

from collections.abc import Iterable
from contextlib import suppress
from threading import Event
from time import monotonic, sleep
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ottla.testing.guarantees.confluent import (
    committed_offsets,
    consumer_settings,
    key_of,
    record_of,
)
from ottla.testing.guarantees.generator import Generator, partition_of
from ottla.testing.guarantees.process import Records
from ottla.testing.guarantees.recorder import Recorder
from ottla.testing.guarantees.watermarks import (
    COMMITTED_OFFSET,
    HIGH_WATERMARK,
    LAST_STABLE_OFFSET,
    LOG_START_OFFSET,
)

LOOK_INTERVAL_S: Final = 0.5
LOOK_S_MAX: Final = 5.0
RETRY_S: Final = 0.2
FINAL_S_MAX: Final = 200.0


def look_all_the_time(bootstrap: str, generator: Generator, recorder: Recorder, over: Event) -> None:
    """Look at the keys that are in use, again and again."""
    of_committed = Consumer(consumer_settings(bootstrap))
    of_all = Consumer(consumer_settings(bootstrap, **{"isolation.level": "read_uncommitted"}))
    name = recorder.new_process()
    while not over.wait(LOOK_INTERVAL_S):
        keys = generator.first_assignment().keys
        recorder.write(name, "invoke", "look", [["look"]])
        try:
            bounds = _look(of_committed, of_all, keys)
        except KafkaException as error:
            recorder.write(name, "fail", "look", [["look"]], str(error))
        else:
            recorder.write(name, "ok", "look", [["look", bounds]])
    of_committed.close()
    of_all.close()


def _look(of_committed: Consumer, of_all: Consumer, keys: Iterable[int]) -> dict[str, dict[str, int]]:
    bounds: dict[str, dict[str, int]] = {
        LOG_START_OFFSET: {}, LAST_STABLE_OFFSET: {}, HIGH_WATERMARK: {}, COMMITTED_OFFSET: {},
    }  # fmt: skip
    for key in keys:
        bounds[LOG_START_OFFSET][str(key)], bounds[LAST_STABLE_OFFSET][str(key)] = _ends(of_committed, key)
        _, bounds[HIGH_WATERMARK][str(key)] = _ends(of_all, key)
    for key, offset in committed_offsets(of_committed, keys).items():
        bounds[COMMITTED_OFFSET][str(key)] = offset
    return bounds


def _ends(consumer: Consumer, key: int, within_s: float = LOOK_S_MAX) -> tuple[int, int]:
    """Return the first offset, and the one after the last that the consumer may see.

    While a leader is elected nobody knows. And librdkafka has to be asked for the topic again, or it goes on
    with what it knew.
    """
    where = TopicPartition(*partition_of(key))
    deadline = monotonic() + within_s
    while True:
        try:
            return _ask_for_ends(consumer, where)
        except KafkaException:
            if monotonic() > deadline:
                raise
            sleep(RETRY_S)
            with suppress(KafkaException):
                consumer.list_topics(where.topic, LOOK_S_MAX)


def _ask_for_ends(consumer: Consumer, where: TopicPartition) -> tuple[int, int]:
    found = consumer.get_watermark_offsets(where, LOOK_S_MAX, cached=False)
    if found is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    low, high = found
    return low, high


def read_all(bootstrap: str, keys: Iterable[int], recorder: Recorder) -> None:
    """Read everything that is committed, to the very end: no transaction may be left open."""
    name = recorder.new_process()
    recorder.write(name, "invoke", "final", [["poll"]])
    of_all = Consumer(consumer_settings(bootstrap, **{"isolation.level": "read_uncommitted"}))
    ends = {key: _ends(of_all, key, FINAL_S_MAX)[1] for key in keys}
    of_all.close()
    missing = {key: end for key, end in ends.items() if end}
    consumer = Consumer(consumer_settings(bootstrap, **{"enable.partition.eof": True}))
    consumer.assign([TopicPartition(*partition_of(key), 0) for key in missing])
    records: Records = {}
    deadline = monotonic() + FINAL_S_MAX
    while missing and monotonic() < deadline:
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                key, offset, value = record_of(message)
                records.setdefault(str(key), []).append([offset, value])
            elif _is_at_the_end(message, missing):
                del missing[key_of(message)]
    consumer.close()
    error = f"did not reach {missing}" if missing else None
    recorder.write(name, "fail" if missing else "ok", "final", [["poll", records]], error)


def _is_at_the_end(message: Any, ends: dict[int, int]) -> bool:
    if message.error().code() != KafkaError._PARTITION_EOF:
        return False
    end = ends.get(key_of(message))
    return end is not None and message.offset() >= end

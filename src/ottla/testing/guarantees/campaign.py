"""A campaign: clients in threads work while somebody breaks things; then everything is read and judged."""

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.testing.guarantees.anomalies import find_anomalies
from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.confluent import (
    ConfluentProcess,
    TransactionFailed,
    consumer_settings,
    key_of,
)
from ottla.testing.guarantees.generator import (
    PARTITIONS_PER_TOPIC,
    Generator,
    Plan,
    keys_needed,
    partition_of,
)
from ottla.testing.guarantees.history import operations_of, read_events
from ottla.testing.guarantees.recorder import Recorder

THREADS: Final = 5
FINAL_READERS: Final = 2
FINAL_S_MAX: Final = 200.0


class Result(NamedTuple):
    """What came of a campaign."""

    anomalies: list[Anomaly]
    counts: dict[str, int]
    """How many operations ended how."""
    keys: int
    seconds: float


def run_campaign(
    bootstrap: str,
    seed: int,
    operations: int,
    history: Path,
    faults: Callable[[Event], None],
    clients: int = THREADS,
) -> Result:
    """Run so many operations while `faults` breaks things until it is told to stop, and judge the history.

    `faults` is called in a thread of its own. When it returns, everything must work again.
    """
    began = monotonic()
    _create_topics(bootstrap, keys_needed(operations))
    generator = Generator(seed, operations)
    recorder = Recorder(history)
    over = Event()
    breaker = Thread(target=faults, args=(over,), name="faults")
    workers = [
        Thread(target=_work, args=(bootstrap, number, generator, recorder), name=f"client-{number}")
        for number in range(clients)
    ]
    for thread in (*workers, breaker):
        thread.start()
    for thread in workers:
        thread.join()
    over.set()
    breaker.join()
    readers = [Thread(target=_read_all, args=(bootstrap, recorder)) for _ in range(FINAL_READERS)]
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()
    recorder.close()
    with history.open() as lines:
        anomalies = find_anomalies(operations_of(read_events(lines)))
    return Result(anomalies, recorder.counts, len(recorder.highest), monotonic() - began)


def _create_topics(bootstrap: str, keys: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = sorted({partition_of(key)[0] for key in range(keys)})
    futures = admin.create_topics([NewTopic(topic, PARTITIONS_PER_TOPIC, 1) for topic in topics])
    for future in futures.values():
        future.result(30)


def _work(bootstrap: str, number: int, generator: Generator, recorder: Recorder) -> None:
    """Be one client after the other, until there is nothing left to do."""
    while _work_as_one_process(bootstrap, number, generator, recorder):
        pass


def _work_as_one_process(bootstrap: str, number: int, generator: Generator, recorder: Recorder) -> bool:
    """Return whether there is more to do, for another process."""
    try:
        process = ConfluentProcess(bootstrap, f"guarantees-{number}")
    except KafkaException:
        return True
    name = recorder.new_process()
    try:
        _assign(process, name, generator.first_assignment(), recorder)
        while (plan := generator.next()) is not None:
            if plan.function == "assign":
                _assign(process, name, plan, recorder)
            elif not _transact(process, name, plan, recorder):
                return True
        return False
    finally:
        process.close()


def _assign(process: ConfluentProcess, name: int, plan: Plan, recorder: Recorder) -> None:
    recorder.write(name, "invoke", "assign", list(plan.keys))
    process.assign(plan.keys)
    recorder.write(name, "ok", "assign", list(plan.keys))


def _transact(process: ConfluentProcess, name: int, plan: Plan, recorder: Recorder) -> bool:
    """Return whether the process can go on."""
    asked: list[Any] = [["poll"] if step is None else ["send", *step] for step in plan.steps]
    recorder.write(name, "invoke", "txn", asked)
    done: list[Any] = []
    try:
        process.transact(plan, done)
    except TransactionFailed as failed:
        # Steps that were not come to count as tried: somebody may read what they wrote.
        recorder.write(name, failed.verdict.type, "txn", done + asked[len(done) :], str(failed))
        return not failed.verdict.needs_new_client
    recorder.write(name, "ok", "txn", done)
    return True


def _read_all(bootstrap: str, recorder: Recorder) -> None:
    """Read everything from the beginning, as far as anybody ever got."""
    name = recorder.new_process()
    targets = dict(recorder.highest)
    recorder.write(name, "invoke", "final", [["poll"]])
    consumer = Consumer(consumer_settings(bootstrap))
    consumer.assign([TopicPartition(*partition_of(key), 0) for key in targets])
    records: dict[str, list[list[int]]] = {}
    deadline = monotonic() + FINAL_S_MAX
    while targets and monotonic() < deadline:
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                key, offset, value = key_of(message), message.offset(), message.value()
                assert offset is not None
                assert value is not None
                records.setdefault(str(key), []).append([offset, int(value)])
                if key in targets and offset >= targets[key]:
                    del targets[key]
    consumer.close()
    error = f"did not reach {targets}" if targets else None
    recorder.write(name, "fail" if targets else "ok", "final", [["poll", records]], error)

"""A campaign: clients in threads work while somebody breaks things; then everything is read and judged."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.testing.guarantees.anomalies import find_anomalies
from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.confluent import ConfluentProcess
from ottla.testing.guarantees.generator import (
    PARTITIONS_PER_TOPIC,
    Generator,
    Plan,
    all_keys,
    partition_of,
)
from ottla.testing.guarantees.history import Operation, operations_of, read_events
from ottla.testing.guarantees.indexes import Indexes
from ottla.testing.guarantees.lag import worst_lag_ms
from ottla.testing.guarantees.process import ClientFailed, Process, TransactionFailed
from ottla.testing.guarantees.recorder import Recorder
from ottla.testing.guarantees.watching import look_all_the_time, read_all

THREADS: Final = 5
FINAL_READERS: Final = 2

Connect = Callable[[str, str], Process]
"""Makes a process, given where to find the cluster and its transactional id."""


class Result(NamedTuple):
    """What came of a campaign."""

    anomalies: list[Anomaly]
    """What must not have happened."""
    legal: Counter[str]
    """What was allowed to, by name."""
    counts: Counter[str]
    """How many operations ended how, by function and end."""
    errors: Counter[str]
    """Why operations did not end well."""
    worst_lag_ms: int
    """The longest time from an acknowledgement to the first reading."""
    seconds: float

    @property
    def committed(self) -> int:
        """How many transactions were acknowledged."""
        return self.counts["txn ok"] + self.counts["copy ok"]


def run_campaign(
    bootstrap: str,
    seed: int,
    operations: int,
    history: Path,
    faults: Callable[[Event], None],
    clients: int = THREADS,
    connect: Connect = ConfluentProcess,
) -> Result:
    """Run so many operations while `faults` breaks things until it is told to stop, and judge the history.

    `faults` is called in a thread of its own. When it returns, everything must work again.
    """
    began = monotonic()
    keys = all_keys(operations)
    _create_topics(bootstrap, keys)
    generator = Generator(seed, operations)
    recorder = Recorder(history)
    over = Event()
    workers = [
        Thread(target=_work, args=(connect, bootstrap, number, generator, recorder), name=f"client-{number}")
        for number in range(clients - 1)
    ]
    # One copier is enough: its successors are where things go wrong.
    workers.append(Thread(target=_copy, args=(connect, bootstrap, generator, recorder), name="copier"))
    others = [
        Thread(target=faults, args=(over,), name="faults"),
        Thread(target=look_all_the_time, args=(bootstrap, generator, recorder, over), name="looker"),
    ]
    for thread in (*workers, *others):
        thread.start()
    for thread in workers:
        thread.join()
    over.set()
    for thread in others:
        thread.join()
    readers = [Thread(target=read_all, args=(bootstrap, keys, recorder)) for _ in range(FINAL_READERS)]
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()
    recorder.close()
    with history.open() as lines:
        done = operations_of(read_events(lines))
    return _judge(done, monotonic() - began)


def _judge(operations: Sequence[Operation], seconds: float) -> Result:
    indexes = Indexes(operations)
    found = find_anomalies(indexes)
    return Result(
        [one for one in found if not one.is_legal],
        Counter(one.name for one in found if one.is_legal),
        Counter(f"{one.function} {one.type.value}" for one in operations),
        Counter(one.error for one in operations if one.error is not None and not one.looks),
        worst_lag_ms(indexes),
        seconds,
    )


def _create_topics(bootstrap: str, keys: Sequence[int]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = sorted({partition_of(key)[0] for key in keys})
    futures = admin.create_topics([NewTopic(topic, PARTITIONS_PER_TOPIC, 1) for topic in topics])
    for future in futures.values():
        future.result(30)


def _work(connect: Connect, bootstrap: str, number: int, generator: Generator, recorder: Recorder) -> None:
    """Be one client after the other, until there is nothing left to do."""

    def work(process: Process, name: int) -> None:
        _assign(process.assign, name, generator.first_assignment(), recorder)
        while (plan := generator.next()) is not None:
            if plan.function == "assign":
                _assign(process.assign, name, plan, recorder)
            elif not _transact(process, name, plan, recorder):
                return

    while generator.left > 0:
        _be_one_process(connect, bootstrap, f"guarantees-{number}", recorder, work)


def _copy(connect: Connect, bootstrap: str, generator: Generator, recorder: Recorder) -> None:
    """Be one copier after the other, until there is nothing left to do."""

    def copy(process: Process, name: int) -> None:
        _assign(process.assign_for_group, name, generator.first_group_assignment(), recorder)
        while (plan := generator.next_copy()) is not None:
            if plan.function == "assign":
                _assign(process.assign_for_group, name, plan, recorder)
            elif not _transact(process, name, plan, recorder, generator):
                return

    while generator.left > 0:
        _be_one_process(connect, bootstrap, "guarantees-copier", recorder, copy)


def _be_one_process(
    connect: Connect,
    bootstrap: str,
    transactional_id: str,
    recorder: Recorder,
    work: Callable[[Process, int], None],
) -> None:
    try:
        process = connect(bootstrap, transactional_id)
    except ClientFailed:
        return
    try:
        work(process, recorder.new_process())
    except ClientFailed:
        # An assignment failed, or going back to where it was: the next process begins anew.
        pass
    finally:
        process.close()


def _assign(assign: Callable[[tuple[int, ...]], None], name: int, plan: Plan, recorder: Recorder) -> None:
    recorder.write(name, "invoke", "assign", list(plan.keys))
    assign(plan.keys)
    recorder.write(name, "ok", "assign", list(plan.keys))


def _transact(
    process: Process, name: int, plan: Plan, recorder: Recorder, generator: Generator | None = None
) -> bool:
    """Return whether the process can go on. With a generator for its values it copies."""
    asked: list[Any] = [["poll"] if step is None else ["send", *step] for step in plan.steps]
    recorder.write(name, "invoke", plan.function, asked)
    done: list[Any] = []
    try:
        if generator is None:
            process.transact(plan, done)
        else:
            process.copy(plan, done, generator.new_value)
    except TransactionFailed as failed:
        # Steps that were not come to count as tried: somebody may read what they wrote.
        left = asked[len(done) :]
        recorder.write(name, failed.verdict.type, plan.function, done + left, str(failed))
        return not failed.verdict.needs_new_client
    recorder.write(name, "ok", plan.function, done)
    return True

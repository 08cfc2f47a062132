"""A campaign: clients in threads work while somebody breaks things; then everything is read and judged."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.testing.guarantees.anomalies import find_anomalies
from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.confluent import ConfluentProcess
from ottla.testing.guarantees.generator import (
    PARTITIONS_PER_TOPIC,
    Generator,
    all_keys,
    partition_of,
)
from ottla.testing.guarantees.history import Operation, operations_of, read_events
from ottla.testing.guarantees.indexes import Indexes
from ottla.testing.guarantees.lag import worst_lag_ms
from ottla.testing.guarantees.process import Process
from ottla.testing.guarantees.recorder import HistoryFile, Recorder
from ottla.testing.guarantees.watching import look_all_the_time, read_all
from ottla.testing.guarantees.working import copy, work

THREADS: Final = 5
FINAL_READERS: Final = 2

ProcessClass = Callable[[str, str], Process]
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
    process_class: ProcessClass = ConfluentProcess,
) -> Result:
    """Run operations while `faults` breaks things until it has to stop, and judge the history.

    `faults` is called in a thread of its own. When it returns, everything must work again.
    """
    began = monotonic()
    keys = all_keys(operations)
    _create_topics(bootstrap, keys)
    generator = Generator(seed, operations)
    history_file = HistoryFile(history)
    recorder = Recorder(history_file.keep)
    connect = partial(process_class, bootstrap)
    over = Event()
    workers = [
        Thread(
            target=asyncio.run, args=(work(connect, number, generator, recorder),), name=f"client-{number}"
        )
        for number in range(clients - 1)
    ]
    # One copier is enough: its successors are where things go wrong.
    workers.append(Thread(target=asyncio.run, args=(copy(connect, generator, recorder),), name="copier"))
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
    history_file.close()
    with history.open() as lines:
        done = operations_of(read_events(lines))
    return judge(done, monotonic() - began)


def judge(operations: Sequence[Operation], seconds: float) -> Result:
    """Find out what is wrong in a history."""
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
    # As many replicas as the cluster gives by default.
    futures = admin.create_topics([NewTopic(topic, PARTITIONS_PER_TOPIC, -1) for topic in topics])
    for future in futures.values():
        future.result(30)

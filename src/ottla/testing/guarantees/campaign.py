"""A campaign: clients in threads work while somebody breaks things; then everything is read and judged."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic, sleep
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
from ottla.testing.guarantees.process import ANSWER_S, Process
from ottla.testing.guarantees.recorder import HistoryFile, Recorder
from ottla.testing.guarantees.watching import look_all_the_time, read_all
from ottla.testing.guarantees.working import copy, work, work_plainly

THREADS: Final = 5
FINAL_READERS: Final = 2
STALL_S_MAX: Final = 240.0
"""When nothing has succeeded for so long, a campaign is over: something is stuck."""
PROCESSES_MAX: Final = 450
"""With more, a campaign is over. Clients that crash on purpose are never closed, and each handle of
librdkafka keeps a key for thread-local storage. A process has 1,024 of these."""
LAST_S_MAX: Final = 90.0
"""When all operations are given out, a client whose call does not return is not waited for any longer."""
LOOK_S: Final = 0.2

ProcessClass = Callable[[str, str | None], Process]
"""Makes a process, given where to find the cluster and its transactional id, if it has one."""


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
    """How long all of it took."""
    worked_s: float = 0.0
    """How long the clients worked: without the start, the last reading and the verdict."""

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
    plain_clients: int = 0,
    plain: float = 0.0,
    patience_s: Sequence[float] = (ANSWER_S,),
) -> Result:
    """Run operations while `faults` breaks things until it has to stop, and judge the history.

    `faults` is called in a thread of its own. When it returns, everything must work again. Of the clients,
    `plain_clients` have no transactions, and do the share `plain` of the operations. Each process waits for
    answers for one of the times `patience_s`.
    """
    began = monotonic()
    keys = all_keys(operations)
    _create_topics(bootstrap, keys)
    generator = Generator(seed, operations, plain=plain if plain_clients else 0.0)
    history_file = HistoryFile(history)
    recorder = Recorder(history_file.keep)
    rng = Random(seed)

    def connect(transactional_id: str | None) -> Process:
        process = process_class(bootstrap, transactional_id)
        process.answer_s = rng.choice(patience_s)
        return process

    work_begins = monotonic()
    works = [
        *(work(connect, number, generator, recorder) for number in range(clients - plain_clients - 1)),
        # One copier is enough: its successors are where things go wrong.
        copy(connect, generator, recorder),
        *(work_plainly(connect, generator, recorder) for _ in range(plain_clients)),
    ]
    workers = [Thread(target=asyncio.run, args=(one,), daemon=True) for one in works]
    over = Event()
    breaking = _Breaking(faults, over)
    looker = Thread(target=look_all_the_time, args=(bootstrap, generator, recorder, over), daemon=True)
    for thread in (*workers, breaking, looker):
        thread.start()
    try:
        failed = _wait_for(workers, generator, recorder, breaking)
    finally:
        over.set()
        breaking.join()
    looker.join()
    worked_s = monotonic() - work_begins
    if breaking.error is None:
        _read_everything(bootstrap, keys, recorder)
    else:
        failed.append(Anomaly("cluster-failed", None, str(breaking.error)))
    history_file.close()
    with history.open() as lines:
        done = operations_of(read_events(lines))
    result = judge(done, monotonic() - began)
    return result._replace(anomalies=[*failed, *result.anomalies], worked_s=worked_s)


class _Breaking(Thread):
    """Breaks things, and keeps the error if that fails."""

    def __init__(self, faults: Callable[[Event], None], over: Event) -> None:
        super().__init__(name="faults", daemon=True)
        self._faults = faults
        self._over = over
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._faults(self._over)
        except BaseException as error:
            self.error = error


def _wait_for(
    workers: Sequence[Thread], generator: Generator, recorder: Recorder, breaking: _Breaking
) -> list[Anomaly]:
    """Wait for all work to be done, or for nothing to be done any more."""
    failed: list[Anomaly] = []
    last_given = monotonic()
    while any(thread.is_alive() for thread in workers):
        sleep(LOOK_S)
        if generator.left > 0 or generator.plain_left > 0:
            last_given = monotonic()
            if breaking.error is not None or recorder.processes > PROCESSES_MAX:
                generator.stop()
            elif recorder.seconds_since_success() > STALL_S_MAX:
                generator.stop()
                failed.append(Anomaly("stuck", None, f"no operation succeeded in {STALL_S_MAX:.0f} s"))
        elif monotonic() - last_given > LAST_S_MAX:
            break
    return failed


def _read_everything(bootstrap: str, keys: Sequence[int], recorder: Recorder) -> None:
    readers = [Thread(target=read_all, args=(bootstrap, keys, recorder)) for _ in range(FINAL_READERS)]
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()


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

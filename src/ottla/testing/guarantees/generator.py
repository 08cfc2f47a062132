"""What clients are to do, from one seed: sends, polls and transfers in transactions, aborts, crashes, copies.

A few keys are in use at a time. A key that has had its writes is replaced by a fresh one, so that every log
is read to its end again and again, and a history of any length can be judged.
"""

import random
from threading import Lock
from typing import Final, NamedTuple

from ottla.testing.guarantees.ledger import ACCOUNTS, AMOUNT_MAX, entry

WRITES_PER_KEY: Final = 1024
ACTIVE_KEYS: Final = 4
STEPS_MAX: Final = 4
ABORTS: Final = 0.1
ASSIGNMENTS: Final = 1 / 64
CRASHES: Final = 1 / 250
TRANSFERS: Final = 1 / 8
PARTITIONS_PER_TOPIC: Final = 2
COPIES: Final = 1 << 21
"""Where the keys begin that copiers write to."""


class Plan(NamedTuple):
    """One operation to be done."""

    function: str
    steps: tuple[tuple[int, int] | None, ...] = ()
    """A key and a value to send, or None to poll."""
    keys: tuple[int, ...] = ()
    aborts: bool = False
    crashes: bool = False


def partition_of(key: int) -> tuple[str, int]:
    """Return the topic and partition that a key stands for."""
    return f"t{key // PARTITIONS_PER_TOPIC}", key % PARTITIONS_PER_TOPIC


def key_of_partition(topic: str, partition: int) -> int:
    """Return the key that a partition stands for."""
    return int(topic[1:]) * PARTITIONS_PER_TOPIC + partition


def copy_of(key: int) -> int:
    """Return the key to which a key is copied."""
    return COPIES + key


def all_keys(operations: int) -> list[int]:
    """Return the keys that this many operations use at most."""
    plain = range(ACTIVE_KEYS + operations * STEPS_MAX // WRITES_PER_KEY + 1)
    return [*plain, *map(copy_of, plain), *ACCOUNTS]


class Generator:
    """Gives operations to many threads, until there are no more."""

    def __init__(
        self,
        seed: int,
        operations: int,
        assignments: float = ASSIGNMENTS,
        crashes: float = CRASHES,
        plain: float = 0.0,
    ) -> None:
        """`assignments` and `crashes` are how often a client reads other keys, and is abandoned.

        `plain` is the share of the operations that are without transactions.
        """
        self._rng = random.Random(seed)
        self._plain_left = round(operations * plain)
        self._left = operations - self._plain_left
        self._assignments = assignments
        self._crashes = crashes
        self._lock = Lock()
        self._active = list(range(ACTIVE_KEYS))
        self._written = dict.fromkeys(self._active, 0)
        self._transfers = 0
        self._next_key = ACTIVE_KEYS

    @property
    def left(self) -> int:
        """How many operations there are still to come."""
        return self._left

    @property
    def plain_left(self) -> int:
        """How many operations without transactions there are still to come."""
        return self._plain_left

    def stop(self) -> None:
        """Let there be no more operations."""
        with self._lock:
            self._left = self._plain_left = 0

    def first_assignment(self) -> Plan:
        """Return what a new client reads."""
        with self._lock:
            return Plan("assign", keys=tuple(self._active))

    def first_group_assignment(self) -> Plan:
        """Return what a new copier reads: all that was ever written to, for nothing may be left out."""
        with self._lock:
            return Plan("assign", keys=tuple(range(self._next_key)))

    def next(self) -> Plan | None:
        """Return what to do next; None when it is enough."""
        with self._lock:
            if self._left <= 0:
                return None
            self._left -= 1
            rng = self._rng
            if rng.random() < self._assignments:
                return Plan("assign", keys=tuple(self._active))
            if rng.random() < TRANSFERS:
                return self._ending("txn", self._transfer())
            steps = tuple(
                self._send() if rng.random() < 0.5 else None for _ in range(rng.randint(1, STEPS_MAX))
            )
            return self._ending("txn", steps)

    def next_plain(self) -> Plan | None:
        """Return what a client without transactions does next, a send or a poll; None when it is enough."""
        with self._lock:
            if self._plain_left <= 0:
                return None
            self._plain_left -= 1
            rng = self._rng
            if rng.random() < self._assignments:
                return Plan("assign", keys=tuple(self._active))
            crashes = rng.random() < self._crashes
            if rng.random() < 0.5:
                return Plan("send", (self._send(),), crashes=crashes)
            return Plan("poll", (None,), crashes=crashes)

    def next_copy(self) -> Plan | None:
        """Return what a copier does next; None when it is enough."""
        with self._lock:
            if self._left <= 0:
                return None
            self._left -= 1
            if self._rng.random() < self._assignments:
                return Plan("assign", keys=tuple(range(self._next_key)))
            return self._ending("copy", ())

    def new_value(self, key: int) -> int:
        """Return a value that a key has not had."""
        with self._lock:
            value = self._written.get(key, 0)
            self._written[key] = value + 1
            return value

    def _ending(self, function: str, steps: tuple[tuple[int, int] | None, ...]) -> Plan:
        rng = self._rng
        return Plan(function, steps, aborts=rng.random() < ABORTS, crashes=rng.random() < self._crashes)

    def _send(self) -> tuple[int, int]:
        key = self._rng.choice(self._active)
        value = self._written[key]
        self._written[key] += 1
        if self._written[key] == WRITES_PER_KEY:
            self._active.remove(key)
            self._active.append(self._next_key)
            self._written[self._next_key] = 0
            self._next_key += 1
        return key, value

    def _transfer(self) -> tuple[tuple[int, int], ...]:
        source, target = self._rng.sample(ACCOUNTS, 2)
        amount, number = self._rng.randint(1, AMOUNT_MAX), self._transfers
        self._transfers += 1
        return (source, entry(number, -amount)), (target, entry(number, amount))

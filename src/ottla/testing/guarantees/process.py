"""A process of the workload, whatever client it is made of: what it does, and what is known when that fails.

A client gives the means: begin, send, poll, commit. The order of things, and the verdict on errors, is the
same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.testing.guarantees.errors import FAILED_FOR_GOOD, Stage, Verdict, judge_transaction
from ottla.testing.guarantees.generator import Plan, copy_of

GROUP: Final = "guarantees"
"""The group of the copiers."""
POLL_S: Final = 0.1
SEND_S: Final = 10.0
START_S: Final = 30.0
RECORDS_PER_POLL: Final = 50
TRANSACTION_TIMEOUT_MS: Final = 10_000

Records = dict[str, list[list[int]]]
"""What was polled: by key, offsets and values."""


class ClientFailed(Exception):
    """A call of the client failed, with an error of this name."""


class TransactionFailed(Exception):
    """A transaction did not come to its end; the verdict says what is known of it."""

    def __init__(self, verdict: Verdict, error: str) -> None:
        super().__init__(error)
        self.verdict = verdict


class Process(ABC):
    """One producer and one consumer. When an outcome is unknown it is thrown away."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}

    # What a client gives. Everything but `close` raises `ClientFailed`.

    @abstractmethod
    def close(self) -> None:
        """Let go of it, whatever it is in the middle of."""

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction."""

    @abstractmethod
    def send(self, key: int, value: int, acknowledge: Callable[[int], None]) -> None:
        """Send a value; tell its offset when that is known."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until all that was sent is acknowledged."""

    @abstractmethod
    def poll_records(self) -> Iterable[tuple[int, int, int]]:
        """Read for a moment: keys, offsets and values."""

    @abstractmethod
    def send_offsets(self, positions: Mapping[int, int]) -> None:
        """Make the group's offsets part of the transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def abort(self) -> None:
        """Abort the transaction."""

    @abstractmethod
    def read_from(self, positions: Mapping[int, int]) -> None:
        """Read these keys from these offsets on, and no others."""

    @abstractmethod
    def committed_offsets(self, keys: Iterable[int]) -> dict[int, int]:
        """Return where the group goes on, 0 for keys that it has not begun with."""

    # What the workload does with it

    def assign(self, keys: tuple[int, ...]) -> None:
        """Read these keys, where it left off or from their beginning."""
        self._positions = {key: self._positions.get(key, 0) for key in keys}
        self.read_from(self._positions)

    def assign_for_group(self, keys: tuple[int, ...]) -> None:
        """Read these keys where the group goes on."""
        self._positions = self.committed_offsets(keys)
        self.read_from(self._positions)

    def transact(self, plan: Plan, done: list[Any]) -> None:
        """Do the steps of a plan in one transaction, and note in `done` what came of each.

        Raises `TransactionFailed` unless it was committed.
        """
        self._in_transaction(plan, lambda: self._do_steps(plan, done))

    def copy(self, plan: Plan, done: list[Any], new_value: Callable[[int], int]) -> None:
        """Poll, send one value for each, and commit the group's offsets, all in one transaction."""
        self._in_transaction(plan, lambda: self._copy(done, new_value))

    def _in_transaction(self, plan: Plan, work: Callable[[], None]) -> None:
        before = dict(self._positions)
        try:
            self._try_transaction(plan, work)
        except TransactionFailed as failed:
            if before != self._positions and not failed.verdict.needs_new_client:
                # What it has read it has to read again.
                self._positions = before
                self.read_from(before)
            raise

    def _try_transaction(self, plan: Plan, work: Callable[[], None]) -> None:
        try:
            self.begin()
            work()
        except ClientFailed as error:
            raise self._failed(Stage.BEFORE_COMMIT, str(error), str(error)) from error
        if plan.crashes:
            # Nobody ends it: its successor has to.
            raise TransactionFailed(FAILED_FOR_GOOD, "crashed on purpose")
        if plan.aborts:
            raise self._failed(Stage.BEFORE_COMMIT, "deliberate", "aborted on purpose")
        try:
            self.commit()
        except ClientFailed as error:
            raise self._failed(Stage.COMMIT, str(error), str(error)) from error

    def _do_steps(self, plan: Plan, done: list[Any]) -> None:
        for step in plan.steps:
            if step is None:
                done.append(["poll", self._poll()])
            else:
                self._send(*step, done)
        self.flush()

    def _copy(self, done: list[Any], new_value: Callable[[int], int]) -> None:
        polled = self._poll()
        done.append(["poll", polled])
        for key, records in polled.items():
            target = copy_of(int(key))
            for _ in records:
                self._send(target, new_value(target), done)
        if polled:
            self.send_offsets({int(key): self._positions[int(key)] for key in polled})
        self.flush()

    def _send(self, key: int, value: int, done: list[Any]) -> None:
        result: list[Any] = [None, value]
        done.append(["send", key, result])

        def acknowledge(offset: int) -> None:
            result[0] = offset

        self.send(key, value, acknowledge)

    def _poll(self) -> Records:
        records: Records = {}
        for key, offset, value in self.poll_records():
            records.setdefault(str(key), []).append([offset, value])
            self._positions[key] = offset + 1
        return records

    def _failed(self, stage: Stage, cause: str, why: str) -> TransactionFailed:
        try:
            self.abort()
        except ClientFailed as error:
            return TransactionFailed(judge_transaction(stage, cause, str(error)), why)
        return TransactionFailed(judge_transaction(stage, cause, None), why)

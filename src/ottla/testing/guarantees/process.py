"""A process of the workload, whatever client it is made of: what it does, and what is known when that fails.

A client gives the means: begin, send, poll, commit. The order of things, and the verdict on errors, is the
same for all of them. A client that blocks has an event loop of its own, in a thread of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from ottla.testing.guarantees.errors import (
    FAILED_FOR_GOOD,
    UNKNOWN,
    Stage,
    Verdict,
    judge_plain,
    judge_transaction,
)
from ottla.testing.guarantees.generator import Plan, copy_of

GROUP: Final = "guarantees"
"""The group of the copiers."""
POLL_S: Final = 0.03
ANSWER_S: Final = 10.0
START_S: Final = 30.0
RECORDS_PER_POLL: Final = 50
TRANSACTION_TIMEOUT_MS: Final = 10_000

Records = dict[str, list[list[int]]]
"""What was polled: by key, offsets and values."""


class ClientFailed(Exception):
    """A call of the client failed, with an error of this name."""


class TransactionFailed(Exception):
    """A transaction, or a plain operation, did not come to its end; the verdict says what is known of it."""

    def __init__(self, verdict: Verdict, error: str) -> None:
        super().__init__(error)
        self.verdict = verdict


class Process(ABC):
    """One producer and one consumer. When an outcome is unknown it is thrown away."""

    def __init__(self) -> None:
        self.answer_s = ANSWER_S
        """How long it waits for an answer. If it is short, more outcomes are unknown."""
        self._positions: dict[int, int] = {}

    # What a client gives. Everything but `close` raises `ClientFailed`.

    @abstractmethod
    async def start(self) -> None:
        """Connect. What an earlier process with the same transactional id left open is ended by this."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it, whatever it is in the middle of."""

    @abstractmethod
    async def begin(self) -> None:
        """Open a transaction."""

    @abstractmethod
    async def send(self, key: int, value: int, acknowledge: Callable[[int], None]) -> None:
        """Send a value; tell its offset when that is known."""

    @abstractmethod
    async def flush(self) -> None:
        """Wait until all that was sent is acknowledged."""

    @abstractmethod
    async def poll_records(self) -> Iterable[tuple[int, int, int]]:
        """Read for a moment: keys, offsets and values."""

    @abstractmethod
    async def send_offsets(self, positions: Mapping[int, int]) -> None:
        """Make the group's offsets part of the transaction."""

    @abstractmethod
    async def commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    async def abort(self) -> None:
        """Abort the transaction."""

    @abstractmethod
    async def read_from(self, positions: Mapping[int, int]) -> None:
        """Read these keys from these offsets on, and no others."""

    @abstractmethod
    async def committed_offsets(self, keys: Iterable[int]) -> dict[int, int]:
        """Return where the group goes on, 0 for keys that it has not begun with."""

    # What the workload does with it

    async def assign(self, keys: tuple[int, ...]) -> None:
        """Read these keys, where it left off or from their beginning."""
        self._positions = {key: self._positions.get(key, 0) for key in keys}
        await self.read_from(self._positions)

    async def assign_for_group(self, keys: tuple[int, ...]) -> None:
        """Read these keys where the group goes on."""
        self._positions = await self.committed_offsets(keys)
        await self.read_from(self._positions)

    async def transact(self, plan: Plan, done: list[Any]) -> None:
        """Do the steps of a plan in one transaction, and note in `done` what came of each.

        Raises `TransactionFailed` unless it was committed.
        """
        await self._in_transaction(plan, lambda: self._do_steps(plan, done))

    async def do_plainly(self, plan: Plan, done: list[Any]) -> None:
        """Do the one step of a plan without a transaction. Raises `TransactionFailed` unless it is done."""
        try:
            (step,) = plan.steps
            if step is None:
                done.append(["poll", await self._poll()])
            else:
                await self._send(*step, done)
                if plan.crashes:
                    # It may arrive, or may not.
                    raise TransactionFailed(UNKNOWN, "crashed on purpose")
                await self.flush()
        except ClientFailed as error:
            raise TransactionFailed(judge_plain(str(error)), str(error)) from error
        if plan.crashes:
            raise TransactionFailed(FAILED_FOR_GOOD, "crashed on purpose")

    async def copy(self, plan: Plan, done: list[Any], new_value: Callable[[int], int]) -> None:
        """Poll, send one value for each, and commit the group's offsets, all in one transaction."""
        await self._in_transaction(plan, lambda: self._copy(done, new_value))

    async def _in_transaction(self, plan: Plan, work: Callable[[], Awaitable[None]]) -> None:
        before = dict(self._positions)
        try:
            await self._try_transaction(plan, work)
        except TransactionFailed as failed:
            if before != self._positions and not failed.verdict.needs_new_client:
                # What it has read it has to read again.
                self._positions = before
                await self.read_from(before)
            raise

    async def _try_transaction(self, plan: Plan, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await self.begin()
            await work()
        except ClientFailed as error:
            raise await self._failed(Stage.BEFORE_COMMIT, str(error), str(error)) from error
        if plan.crashes:
            # Nobody ends it: its successor has to.
            raise TransactionFailed(FAILED_FOR_GOOD, "crashed on purpose")
        if plan.aborts:
            raise await self._failed(Stage.BEFORE_COMMIT, "deliberate", "aborted on purpose")
        try:
            await self.commit()
        except ClientFailed as error:
            raise await self._failed(Stage.COMMIT, str(error), str(error)) from error

    async def _do_steps(self, plan: Plan, done: list[Any]) -> None:
        for step in plan.steps:
            if step is None:
                done.append(["poll", await self._poll()])
            else:
                await self._send(*step, done)
        await self.flush()

    async def _copy(self, done: list[Any], new_value: Callable[[int], int]) -> None:
        polled = await self._poll()
        done.append(["poll", polled])
        for key, records in polled.items():
            target = copy_of(int(key))
            for _ in records:
                await self._send(target, new_value(target), done)
        if polled:
            await self.send_offsets({int(key): self._positions[int(key)] for key in polled})
        await self.flush()

    async def _send(self, key: int, value: int, done: list[Any]) -> None:
        result: list[Any] = [None, value]
        done.append(["send", key, result])

        def acknowledge(offset: int) -> None:
            result[0] = offset

        await self.send(key, value, acknowledge)

    async def _poll(self) -> Records:
        records: Records = {}
        for key, offset, value in await self.poll_records():
            records.setdefault(str(key), []).append([offset, value])
            self._positions[key] = offset + 1
        return records

    async def _failed(self, stage: Stage, cause: str, why: str) -> TransactionFailed:
        try:
            await self.abort()
        except ClientFailed as error:
            return TransactionFailed(judge_transaction(stage, cause, str(error)), why)
        return TransactionFailed(judge_transaction(stage, cause, None), why)

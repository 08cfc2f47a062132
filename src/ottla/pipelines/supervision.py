"""Keeps queries going: starts them, tells how they do, and starts again what failed, later each time.

Spark is behind a protocol, and so is time: nothing here sleeps or reads a clock.
"""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ottla.pipelines.status import DONE, FAILED, RUNNING, STOPPED, WAITING, QueryStatus

FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 60.0
# For a query that is to end by itself: so many failures in a row, with no batch done between them, are no
# accident. The waits between them add up to a quarter of a minute.
ATTEMPTS_MAX: Final = 5
# This is what Spark says when a process of Python took more than ten seconds to start. Mostly the machine is
# busy, and the next attempt is better; sometimes there is no such Python, and none is.
_TOO_SLOW: Final = "Python worker failed to connect back"
ATTEMPTS_MAX_WHEN_TOO_SLOW: Final = 12
# What Spark says of a query while it may be starting a process of Python for each source.
_STARTING_MESSAGES: Final = ("Initializing", "Getting offsets")
_STARTING_S_MAX: Final = 20.0
# A pipeline that has run so long was well: what comes next is a new trouble.
_WELL_AFTER_S: Final = 60.0
# An error of Spark's may be a hundred lines of Java. The first says what, and a later one in Python says why.
_REASON_LENGTH_MAX: Final = 500
_IN_PYTHON: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*: \S")
_SPARK_CLASS: Final = re.compile(r"^(pyspark|org\.apache\.spark)\.[\w.]*: ")


class RunningQuery(Protocol):
    """What supervision must know of a query of Spark's."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it still runs."""

    @property
    def status(self) -> Mapping[str, Any]:
        """What it does now: the message is for people."""

    def exception(self) -> Exception | None:
        """Return what ended it."""

    def stop(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a batch has done."""

    batch_id: int
    rows: int
    rows_per_second: float
    lag: int | None
    batch_ms: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    dropped_rows: int = 0


class SupervisedQuery:
    """One query, through all its lives.

    One that is to end by itself is given up after some failures in a row. A batch that is done counts as a
    success. One that is to run for ever is never given up.
    """

    def __init__(
        self, status: QueryStatus, start: Callable[[], RunningQuery], *, is_finite: bool = False
    ) -> None:
        self.status = status
        # One thread starts and stops queries, another takes note of what they do.
        self._changing = threading.RLock()
        self._start = start
        self._is_finite = is_finite
        self._failures_in_a_row = 0
        self._query: RunningQuery | None = None
        self._started_at_s = 0.0
        self._has_begun = False
        self._start_at_s = 0.0
        self._wait_s = FIRST_WAIT_S

    def may_start(self, now_s: float) -> bool:
        """Say whether the next look would start the query."""
        return not self.status.is_over and self._query is None and now_s >= self._start_at_s

    def is_starting(self, now_s: float) -> bool:
        """Say whether Spark may still be starting processes for the query, as it does before the first batch.

        It is believed for so long only: a query may have to wait for a broker at that point.
        """
        if self._query is None or self._has_begun or now_s - self._started_at_s > _STARTING_S_MAX:
            return False
        if self._query.isActive and str(self._query.status["message"]).startswith(_STARTING_MESSAGES):
            return True
        self._has_begun = True
        return False

    def look(self, now_s: float) -> None:
        """Start the query if it is time, and take note of how it ended if it did."""
        if self.status.is_over:
            return
        if self._query is None:
            if self.may_start(now_s):
                self._try_to_start(now_s)
            return
        if self._query.isActive:
            return
        error = self._query.exception()
        self._query = None
        if error is None:
            self._change(state=DONE)
        else:
            self._failed(error, now_s)

    def took_note(self, progress: Progress) -> None:
        """Take note of a batch. Its rows count once, however often it is reported."""
        with self._changing:
            self._took_note(progress)

    def _took_note(self, progress: Progress) -> None:
        is_new = self.status.batch_id is None or progress.batch_id > self.status.batch_id
        if is_new:
            self._failures_in_a_row = 0
        self._change(
            batch_id=progress.batch_id,
            rows=self.status.rows + (progress.rows if is_new else 0),
            rows_per_second=progress.rows_per_second,
            lag=progress.lag,
            batch_ms=progress.batch_ms,
            state_rows=progress.state_rows,
            state_bytes=progress.state_bytes,
            dropped_rows=self.status.dropped_rows + (progress.dropped_rows if is_new else 0),
        )

    def is_behind_by(self, lag: int | None) -> None:
        """Take note of a lag that was measured."""
        self._change(lag=lag)

    def stop(self) -> None:
        """End the query for good."""
        query, self._query = self._query, None
        try:
            if query is not None:
                query.stop()
        finally:
            if not self.status.is_over:
                self._change(state=STOPPED)

    def _change(self, **facts: Any) -> None:
        with self._changing:
            self.status = replace(self.status, **facts)

    def _try_to_start(self, now_s: float) -> None:
        try:
            self._query = self._start()
        # Whatever Spark may raise, the other queries go on, and this one is tried again.
        except Exception as error:
            self._failed(error, now_s)
            return
        self._started_at_s = now_s
        self._has_begun = False
        self._change(state=RUNNING)

    def _failed(self, error: Exception, now_s: float) -> None:
        if now_s - self._started_at_s > _WELL_AFTER_S:
            self._wait_s = FIRST_WAIT_S
        self._start_at_s = now_s + self._wait_s
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)
        self._failures_in_a_row += 1
        reason = reason_of(error)
        attempts_max = ATTEMPTS_MAX_WHEN_TOO_SLOW if _TOO_SLOW in reason else ATTEMPTS_MAX
        if self._is_finite and self._failures_in_a_row >= attempts_max:
            self._change(state=FAILED, last_error=reason)
        else:
            restarts = self.status.restarts + 1
            self._change(state=WAITING, restarts=restarts, last_error=reason)


def reason_of(error: Exception) -> str:
    """Return an error in one line. The last line of a Python traceback inside says more than Java's first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("ottla.") and ": " in line]
    chosen = (ours or _raised_in_python(error) or lines[:1] or [type(error).__name__])[-1]
    return _SPARK_CLASS.sub("", chosen)[:_REASON_LENGTH_MAX]


def _raised_in_python(error: Exception) -> list[str]:
    """Return the line that says what Python has raised, in a function for each batch or in a worker.

    It is wrapped in Java, with its traceback as the message. Lines of a traceback are indented but for that.
    What follows, Spark has to say.
    """
    _, header, traceback = str(error).partition(_IN_PYTHON)
    if not header:
        return []
    return [line for line in traceback.splitlines() if _RAISED.match(line)][:1]


def progress_line(status: QueryStatus) -> str:
    """Return how a query does, in one line for people."""
    batch = "no batch yet" if status.batch_id is None else f"batch {status.batch_id}"
    if status.batch_ms is not None:
        batch += f" in {status.batch_ms / 1000:.1f} s"
    lag = "not known" if status.lag is None else f"{status.lag:,}"
    line = (
        f"{status.name}: {status.state}, {batch}, {status.rows:,} rows, "
        f"{status.rows_per_second:,.0f} rows/s, lag {lag}"
    )
    return line if status.last_error is None else f"{line}, {status.restarts} restarts: {status.last_error}"

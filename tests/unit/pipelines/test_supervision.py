"""Queries are started, watched, and started again later each time; files tell of them."""

import json
import os
from pathlib import Path

import pytest

from ottla.pipelines.status import (
    InvalidDirectory,
    QueryStatus,
    ask_to_stop,
    forget_wishes,
    prepare_directory,
    read_statuses,
    wants_to_stop,
    write_status,
)
from ottla.pipelines.supervision import Progress, SupervisedQuery, progress_line, reason_of


class FakeQuery:
    def __init__(self) -> None:
        self.isActive = True
        self.error: Exception | None = None
        self.status = {"message": "Initializing sources"}

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False

    def fail(self, why: str) -> None:
        self.isActive = False
        self.error = RuntimeError(why)


class Lives:
    """Starts queries, and remembers them."""

    def __init__(self) -> None:
        self.queries: list[FakeQuery] = []

    def start(self) -> FakeQuery:
        self.queries.append(FakeQuery())
        return self.queries[-1]


def supervised(*, is_finite: bool = False) -> tuple[SupervisedQuery, Lives]:
    lives = Lives()
    return SupervisedQuery(QueryStatus("q", os.getpid()), lives.start, is_finite=is_finite), lives


def test_failed_query_is_started_again_later_each_time() -> None:
    query, lives = supervised()
    now_s, waits = 0.0, []
    query.look(now_s)
    for attempt in range(1, 9):
        lives.queries[-1].fail("no luck")
        query.look(now_s)
        assert query.status.state == "waiting to restart"
        failed_at_s = now_s
        while len(lives.queries) == attempt:
            now_s += 0.5
            query.look(now_s)
        waits.append(now_s - failed_at_s)

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert query.status.restarts == 8
    assert query.status.last_error == "no luck"


def test_query_that_was_well_for_long_is_started_again_soon() -> None:
    query, lives = supervised()
    query.look(0)
    lives.queries[-1].fail("first")
    query.look(0)
    query.look(1)
    lives.queries[-1].fail("much later")
    query.look(1000)
    query.look(1001)

    assert len(lives.queries) == 3


def test_query_that_cannot_even_start_is_tried_again() -> None:
    def refuse() -> FakeQuery:
        raise RuntimeError("no broker")

    query = SupervisedQuery(QueryStatus("q", 1), refuse)
    query.look(0)

    assert query.status.state == "waiting to restart"
    assert query.status.last_error == "no broker"


def test_query_is_starting_until_spark_says_otherwise() -> None:
    query, lives = supervised()
    assert not query.is_starting(0)
    query.look(0)
    assert query.is_starting(1)
    lives.queries[-1].status["message"] = "Getting offsets from ottla"
    assert query.is_starting(2)
    lives.queries[-1].status["message"] = "Processing new data"
    assert not query.is_starting(3)
    lives.queries[-1].status["message"] = "Getting offsets from ottla"
    assert not query.is_starting(4), "it asks for offsets before each batch, not only before the first"


def test_query_that_failed_or_takes_too_long_is_not_waited_for() -> None:
    query, lives = supervised()
    query.look(0)
    assert not query.is_starting(60)

    query, lives = supervised()
    query.look(0)
    lives.queries[-1].fail("no luck")
    assert not query.is_starting(1)


def fail(query: SupervisedQuery, lives: Lives, times: int, why: str = "no luck") -> None:
    """Let a query start and fail so many times, or until it is given up."""
    for _ in range(times):
        now_s = len(lives.queries) * 1000.0
        query.look(now_s)
        if not query.status.is_over:
            lives.queries[-1].fail(why)
            query.look(now_s)


def test_query_that_is_to_end_is_given_up_after_failures_in_a_row() -> None:
    query, lives = supervised(is_finite=True)
    fail(query, lives, times=8)

    assert query.status.state == "failed"
    assert query.status.last_error == "no luck"
    assert query.status.restarts == 4
    assert len(lives.queries) == 5


def test_busy_machine_gets_more_patience() -> None:
    query, lives = supervised(is_finite=True)
    fail(query, lives, times=11, why="Python worker failed to connect back.")
    assert query.status.state == "waiting to restart"

    fail(query, lives, times=3, why="Python worker failed to connect back.")
    assert query.status.state == "failed"
    assert len(lives.queries) == 12


def test_batch_that_is_done_begins_the_count_of_failures_anew() -> None:
    query, lives = supervised(is_finite=True)
    fail(query, lives, times=4)
    query.took_note(Progress(0, 10, 1.0, 0))
    fail(query, lives, times=4)
    assert query.status.state == "waiting to restart"

    query.took_note(Progress(0, 10, 1.0, 0))
    fail(query, lives, times=1)
    assert query.status.state == "failed", "a batch that is told again is no progress"


def test_query_that_ends_without_error_is_done_and_a_stopped_one_stays_stopped() -> None:
    query, lives = supervised()
    query.look(0)
    lives.queries[-1].stop()
    query.look(1)
    assert query.status.state == "done"

    query, lives = supervised()
    query.look(0)
    query.stop()
    query.look(100)
    assert query.status.state == "stopped"
    assert len(lives.queries) == 1


def test_progress_adds_up_and_is_told_in_a_line() -> None:
    query, _ = supervised()
    query.look(0)
    query.took_note(Progress(0, 1000, 250.0, 7))
    query.took_note(Progress(1, 500, 125.4, 3))

    assert progress_line(query.status) == "q: running, batch 1, 1,500 rows, 125 rows/s, lag 3"
    assert (query.status.state_rows, query.status.state_bytes, query.status.dropped_rows) == (0, 0, 0)


def test_query_without_a_batch_says_so_and_a_lag_nobody_knows_is_not_zero() -> None:
    query, _ = supervised()
    assert progress_line(query.status) == "q: starting, no batch yet, 0 rows, 0 rows/s, lag not known"
    query.took_note(Progress(0, 1000, 250.0, 7, batch_ms=1300))
    assert progress_line(query.status) == "q: starting, batch 0 in 1.3 s, 1,000 rows, 250 rows/s, lag 7"
    query.is_behind_by(12)
    assert query.status.lag == 12


def test_rows_that_came_too_late_add_up_and_state_does_not() -> None:
    query, _ = supervised()
    query.took_note(Progress(0, 10, 1.0, 0, 100, state_rows=5, state_bytes=500, dropped_rows=2))
    query.took_note(Progress(0, 10, 1.0, 0, 100, state_rows=5, state_bytes=500, dropped_rows=2))
    query.took_note(Progress(1, 10, 1.0, 0, 100, state_rows=7, state_bytes=700, dropped_rows=3))
    assert (query.status.state_rows, query.status.state_bytes) == (7, 700)
    assert query.status.dropped_rows == 5


def test_status_of_another_version_can_be_read(tmp_path: Path) -> None:
    directory = prepare_directory(tmp_path)
    old = {"name": "q", "pid": os.getpid(), "state": "running", "batch_id": -1, "lag": 0, "unheard_of": 1}
    (directory / ".status" / "q.json").write_text(json.dumps(old))
    (status,) = read_statuses(directory)
    assert (status.name, status.batch_id) == ("q", None)


def test_reason_is_the_python_error_inside_a_java_one() -> None:
    inside = "ottla.pipelines.sink.ledger.LedgerConflict: batch 3 was begun"
    assert reason_of(RuntimeError(f"Job aborted\n  at org.apache.spark\n{inside}\n at x")) == inside
    assert reason_of(RuntimeError("\nJob aborted\n  at x")) == "Job aborted"
    assert reason_of(RuntimeError("")) == "RuntimeError"


def test_reason_is_what_a_function_for_each_batch_has_raised() -> None:
    raised = "\n".join(
        (
            "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):",
            "  File 'x.py', line 3, in call",
            "    where: what",
            "ValueError: no such account",
            "",
            "\tat py4j.Protocol.getReturnValue(Protocol.java:476)",
            "=== Streaming Query ===",
            "Identifier: strict [id = 1, runId = 2]",
        )
    )
    assert reason_of(RuntimeError(raised)) == "ValueError: no such account"
    by_spark = raised.replace("ValueError", "pyspark.errors.exceptions.captured.SparkRuntimeException")
    assert reason_of(RuntimeError(by_spark)) == "no such account"


def test_reason_is_what_a_function_in_a_worker_has_raised() -> None:
    raised = "\n".join(
        (
            "Job aborted: org.apache.spark.PythonException: Traceback (most recent call last):",
            "  File 'x.py', line 3, in rows",
            "ValueError: no amount in row 7",
            "",
            "\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)",
            "Caused by: java.lang.Exception: other",
        )
    )
    assert reason_of(RuntimeError(raised)) == "ValueError: no amount in row 7"


def test_query_that_cannot_be_stopped_is_over_all_the_same() -> None:
    class Gone(FakeQuery):
        def stop(self) -> None:
            raise ConnectionRefusedError

    query = SupervisedQuery(QueryStatus("q", 1), Gone)
    query.look(0.0)
    with pytest.raises(ConnectionRefusedError):
        query.stop()
    assert query.status.state == "stopped"
    query.stop()


def test_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    directory = prepare_directory(tmp_path / "pipelines")
    status = QueryStatus("q", os.getpid(), "running", 3, 10, 2.5, 1, 2, "why")
    write_status(directory, status)

    assert read_statuses(directory) == [status]


def test_query_whose_process_is_gone_is_told_so(tmp_path: Path) -> None:
    directory = prepare_directory(tmp_path)
    write_status(directory, QueryStatus("q", 2**22 + 1, "running"))

    assert [status.state for status in read_statuses(directory)] == ["gone"]


def test_wish_to_stop_is_seen_until_it_is_forgotten(tmp_path: Path) -> None:
    directory = prepare_directory(tmp_path)
    ask_to_stop(directory, ["q"])
    assert wants_to_stop(directory, "q")
    assert not wants_to_stop(directory, "other")
    forget_wishes(directory, "q")
    assert not wants_to_stop(directory, "q")


def test_directory_of_a_node_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1")
    with pytest.raises(InvalidDirectory, match="the log directory of a node"):
        prepare_directory(tmp_path / "below")

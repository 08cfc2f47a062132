"""Pipelines run side by side until all are over, and files tell how they do, without Spark."""

import logging
import socket
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from ottla.pipelines import pipeline, topic
from ottla.pipelines.definition import InvalidPipeline, PipelineDefinition, TopicInput
from ottla.pipelines.spark import runner as module
from ottla.pipelines.spark.checkpoints import make_note
from ottla.pipelines.spark.java_log import SparkEnded, libraries_speak_in, log_lost_accumulators
from ottla.pipelines.spark.progress import BatchProgress
from ottla.pipelines.spark.queries import PlannedQuery
from ottla.pipelines.spark.runner import RunSettings, run_pipelines
from ottla.pipelines.status import (
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    QueryStatus,
    ask_to_stop,
    prepare_directory,
    read_statuses,
    write_status,
)

OVER: Any = object()
PROPERTIES = {"bootstrap.servers": "b:1"}


class Query:
    """A query of Spark's."""

    def __init__(self) -> None:
        self.isActive = True
        self.status = {"message": "Processing new data"}
        self.error: Exception | None = None

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False


class Watch:
    """Instead of the thread that asks for progress."""

    def __init__(self, groups: Any, started: Any, inputs: Any, tell_lag: Any) -> None:
        self.groups, self.started, self.inputs, self.tell_lag = groups, started, inputs, tell_lag
        self.did: list[str] = []
        self.tells_at_the_end: list[BatchProgress] = []

    def start(self) -> None:
        self.did.append("started")

    def stop(self) -> None:
        self.did.append("stopped")
        for batch in self.tells_at_the_end:
            self.groups(batch)


class Stage:
    """All that a run meets: what it starts, and what happens while it waits."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.queries: dict[str, list[Query]] = {}
        self.triggers: list[tuple[str, str]] = []
        self.options: list[Any] = []
        self.waits: Iterator[None] = iter(())
        self.more_waits = 0
        self.watch: Watch | None = None
        self.closed: list[str] = []
        self.planning_fails: Exception | None = None

    def plan(self, _spark: Any, definition: PipelineDefinition, options: Any) -> list[PlannedQuery]:
        if self.planning_fails is not None:
            raise self.planning_fails
        self.options.append(options)
        link: Any = SimpleNamespace(close=lambda: self.closed.append(definition.name))
        rows: Any = None
        inputs = (TopicInput("in", "string", starting="latest"),)
        return [
            PlannedQuery(name, definition.name, rows, "out", "append", inputs, None, links=[link])
            for name in definition.queries
        ]

    def start(self, _spark: Any, query: PlannedQuery, options: Any, directory: Path, trigger: str) -> Query:
        assert options == self.options[-1]
        assert directory.is_dir()
        self.triggers.append((query.name, trigger))
        started = Query()
        self.queries.setdefault(query.name, []).append(started)
        return started

    def sleep(self, seconds: float) -> None:
        assert seconds == 0.2
        self.now_s += seconds
        if next(self.waits, OVER) is OVER:
            # A run looks once more before it sees that all is over.
            self.more_waits += 1
            assert self.more_waits <= 2, "the run goes on although all is over"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()

    def watch(*told: Any) -> Watch:
        stage.watch = Watch(*told)
        return stage.watch

    monkeypatch.setattr(module, "plan_queries", stage.plan)
    monkeypatch.setattr(module, "start_query", stage.start)
    monkeypatch.setattr(
        module, "check_queries", lambda queries, *_: {query.name: make_note([], None) for query in queries}
    )
    monkeypatch.setattr(module, "ship_by_value", lambda _definition: None)
    monkeypatch.setattr(module, "page_of", lambda _spark: "http://page")
    monkeypatch.setattr(module, "ProgressGroups", lambda _properties, tell: tell)
    monkeypatch.setattr(module, "ProgressWatch", watch)
    clock = SimpleNamespace(monotonic=lambda: stage.now_s, sleep=stage.sleep)
    monkeypatch.setattr(module, "time", clock)
    return stage


def defined(name: str, to: Any = "out", trigger: str = "1 second") -> PipelineDefinition:
    @pipeline(name, to=to, trigger=trigger)
    def function(rows: Any = topic("in")) -> Any:
        return rows

    return function


def run(stage: Stage, tmp_path: Path, *definitions: PipelineDefinition, **more: Any) -> list[QueryStatus]:
    session: Any = object()
    keywords = {name: more.pop(name) for name in ("should_stop", "tell") if name in more}
    settings = RunSettings(PROPERTIES, tmp_path, **more)
    return run_pipelines(definitions, settings, session=session, **keywords)


def test_properties_are_options_of_sources_and_sinks() -> None:
    assert RunSettings(PROPERTIES).options == {"kafka.bootstrap.servers": "b:1"}
    with_registry = RunSettings(PROPERTIES, registry="http://r").options
    assert with_registry == {"kafka.bootstrap.servers": "b:1", "ottla.registry": "http://r"}
    assert RunSettings(PROPERTIES).directory == Path("ottla-pipelines")
    assert (RunSettings(PROPERTIES).master, RunSettings(PROPERTIES).ends_process) == ("local[*]", False)


def test_a_run_ends_when_all_queries_are_over_and_closes_what_they_opened(
    stage: Stage, tmp_path: Path
) -> None:
    def story() -> Iterator[None]:
        stage.queries["p.a"][0].isActive = False
        yield
        assert {each.name: each.state for each in read_statuses(tmp_path)} == {"p.a": DONE, "p.b": RUNNING}
        stage.queries["p.b"][0].isActive = False
        yield

    stage.waits = story()
    found = run(stage, tmp_path, defined("p", ("a", "b")), ends_process=True)
    assert [(status.name, status.state, status.pipeline) for status in found] == [
        ("p.a", DONE, "p"),
        ("p.b", DONE, "p"),
    ]
    for status in found:
        assert (status.bootstrap, status.inputs) == ("b:1", {"in": "latest"})
        assert (status.ends_process, status.spark_page) == (True, "http://page")
    assert stage.watch is not None
    assert stage.watch.did == ["started", "stopped"]
    assert stage.watch.inputs == {"p.a": {"in": "latest"}, "p.b": {"in": "latest"}}
    assert stage.closed == ["p", "p"]


def test_what_the_watch_hears_last_is_written_too(stage: Stage, tmp_path: Path) -> None:
    def story() -> Iterator[None]:
        assert stage.watch is not None
        assert stage.watch.started == {"p": stage.queries["p"][0]}
        stage.watch.tell_lag("p", 44)
        yield
        assert read_statuses(tmp_path)[0].lag == 44
        stage.watch.tells_at_the_end = [
            BatchProgress("p", 7, 10, 2.5, 300, {}, {}, state_rows=3, state_bytes=4, dropped_rows=5)
        ]
        stage.queries["p"][0].isActive = False
        yield

    stage.waits = story()
    run(stage, tmp_path, defined("p"))
    (status,) = read_statuses(tmp_path)
    assert (status.batch_id, status.rows, status.lag, status.batch_ms) == (7, 10, 0, 300)
    assert (status.state_rows, status.state_bytes, status.dropped_rows) == (3, 4, 5)


def test_somebody_may_stop_one_query_or_all(stage: Stage, tmp_path: Path) -> None:
    stopping: list[bool] = []

    def story() -> Iterator[None]:
        ask_to_stop(tmp_path, ["p"])
        yield
        assert not stage.queries["p"][0].isActive
        assert stage.queries["q"][0].isActive
        stopping.append(True)
        yield

    # What was asked of an earlier run is forgotten.
    write_status(prepare_directory(tmp_path), QueryStatus("q", 1))
    ask_to_stop(tmp_path, ["q"])
    stage.waits = story()
    found = run(stage, tmp_path, defined("p"), defined("q"), should_stop=lambda: bool(stopping))
    assert [status.state for status in found] == [STOPPED, STOPPED]


def test_a_run_that_is_interrupted_stops_its_queries(stage: Stage, tmp_path: Path) -> None:
    def story() -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    stage.waits = story()
    with pytest.raises(KeyboardInterrupt):
        run(stage, tmp_path, defined("p"))
    assert not stage.queries["p"][0].isActive
    assert read_statuses(tmp_path)[0].state == STOPPED
    assert stage.watch is not None
    assert stage.watch.did == ["started", "stopped"]


def test_a_query_starts_when_the_one_before_has_reached_its_first_batch(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def story() -> Iterator[None]:
        assert list(stage.queries) == ["p.a"]
        yield
        # The second waits, and keeps waiting.
        assert list(stage.queries) == ["p.a"]
        stage.queries["p.a"][0].status["message"] = "Processing new data"
        yield
        assert list(stage.queries) == ["p.a", "p.b"]
        for (query,) in stage.queries.values():
            query.isActive = False
        yield

    def starting(*told: Any) -> Query:
        query = stage.start(*told)
        query.status["message"] = "Initializing sources"
        return query

    stage.waits = story()
    monkeypatch.setattr(module, "start_query", starting)
    run(stage, tmp_path, defined("p", ("a", "b")))


def test_a_query_that_is_to_end_is_given_up_and_one_for_ever_is_not(stage: Stage, tmp_path: Path) -> None:
    def story() -> Iterator[None]:
        while len(stage.queries["p"]) < 5 or stage.queries["p"][-1].isActive:
            query = stage.queries["p"][-1]
            if query.isActive:
                query.error, query.isActive = RuntimeError("no luck"), False
            yield

    stage.waits = story()
    (status,) = run(stage, tmp_path, defined("p", trigger="5 seconds"), trigger="available-now")
    assert (status.state, status.last_error, status.restarts) == (FAILED, "no luck", 4)
    assert stage.triggers == [("p", "available-now")] * 5


def test_the_trigger_is_that_of_the_run_else_that_of_the_pipeline(stage: Stage, tmp_path: Path) -> None:
    for trigger, used in ((None, "5 seconds"), ("2 seconds", "2 seconds")):
        stage.waits, stage.more_waits = iter([None]), 0
        run(stage, tmp_path, defined("p", trigger="5 seconds"), trigger=trigger, should_stop=_second_time())
        assert stage.triggers.pop() == ("p", used)


def _second_time() -> Any:
    asked = iter([False, True])
    return lambda: next(asked)


def test_how_queries_do_is_told_every_five_seconds(stage: Stage, tmp_path: Path) -> None:
    def story() -> Iterator[None]:
        for _ in range(55):
            yield
        stage.queries["p"][0].isActive = False
        yield

    lines: list[str] = []
    stage.waits = story()
    run(stage, tmp_path, defined("p"), tell=lines.append)
    assert lines == ["p: running, no batch yet, 0 rows, 0 rows/s, lag not known"] * 2


def test_a_status_is_written_when_it_has_changed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(module, "write_status", lambda _directory, status: written.append(status.state))

    def story() -> Iterator[None]:
        for _ in range(5):
            yield
        stage.queries["p"][0].isActive = False
        yield

    stage.waits = story()
    run(stage, tmp_path, defined("p"))
    assert written == [RUNNING, DONE, DONE]


def test_what_spark_does_not_understand_ends_the_run_at_once(stage: Stage, tmp_path: Path) -> None:
    stage.planning_fails = AnalysisException("cannot resolve `x`")
    with pytest.raises(InvalidPipeline, match="pipeline 'p': cannot resolve `x`"):
        run(stage, tmp_path, defined("p"))


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_that_the_run_opened_is_stopped(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    opened: list[Any] = []
    stopped: list[bool] = []

    def open_session(*told: Any) -> Any:
        opened.append(told)
        return SimpleNamespace(stop=lambda: stopped.append(True))

    monkeypatch.setattr(module, "open_session", open_session)
    settings = RunSettings(PROPERTIES, tmp_path, master="local[2]", spark={"a": "b"})
    stage.waits = iter([None])
    if fails:
        stage.planning_fails = RuntimeError("unlucky")
        with pytest.raises(RuntimeError):
            run_pipelines([defined("p"), defined("q")], settings)
    else:
        run_pipelines([defined("p"), defined("q")], settings, should_stop=lambda: True)
    assert opened == [("ottla p q", "local[2]", {"spark.ui.enabled": "true", "a": "b"})]
    assert stopped == [True]


def test_functions_of_a_pipelines_file_and_of_its_neighbours_are_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.pipelines.spark.session import ship_by_value

    def imported(name: str, path: Path) -> ModuleType:
        made = ModuleType(name)
        made.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    own = imported("ottla_pipelines_mine", tmp_path / "mine.py")
    beside = imported("helpers_of_mine", tmp_path / "helpers_of_mine.py")
    imported("elsewhere_of_mine", tmp_path / "other" / "elsewhere_of_mine.py")
    imported("package_of_mine.part", tmp_path / "part.py")
    shipped: list[ModuleType] = []
    monkeypatch.setattr("pyspark.cloudpickle.register_pickle_by_value", shipped.append)
    definition = defined("p")
    monkeypatch.setattr(definition.function, "__module__", own.__name__)
    ship_by_value(definition)
    assert shipped == [own, beside]


def java_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call of Java fail from now on."""

    def refuse(*_: Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    for queries in stage.queries.values():
        queries[-1].stop = refuse  # type: ignore[method-assign]
        del queries[-1].isActive
    monkeypatch.setattr(Query, "isActive", property(refuse), raising=False)
    assert stage.watch is not None
    monkeypatch.setattr(stage.watch, "stop", refuse)
    monkeypatch.setattr(module, "has_java_ended", lambda: True)


@pytest.mark.parametrize("is_asked", [True, False])
def test_java_may_end_with_a_stop_and_not_by_itself(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    stopping: list[bool] = []

    def story() -> Iterator[None]:
        java_ends(stage, monkeypatch)
        stopping.extend([True] * is_asked)
        yield

    stage.waits = story()
    definitions = defined("p"), defined("q")
    if is_asked:
        found = run(stage, tmp_path, *definitions, should_stop=lambda: bool(stopping))
        assert [status.state for status in found] == [STOPPED, STOPPED]
    else:
        with pytest.raises(SparkEnded, match=r"has ended by itself: .*spark\.log may say why"):
            run(stage, tmp_path, *definitions, should_stop=lambda: bool(stopping))
    assert [status.state for status in read_statuses(tmp_path)] == [STOPPED, STOPPED]
    assert stage.closed == ["p", "q"]


def test_a_failure_is_told_at_once(stage: Stage, tmp_path: Path) -> None:
    def story() -> Iterator[None]:
        query = stage.queries["p"][0]
        query.error, query.isActive = RuntimeError("no luck"), False
        yield
        assert lines == [
            "p: waiting to restart, no batch yet, 0 rows, 0 rows/s, lag not known, 1 restarts: no luck"
        ]

    lines: list[str] = []
    stage.waits = story()
    asked = iter([False, False, True])
    run(stage, tmp_path, defined("p"), tell=lines.append, should_stop=lambda: next(asked, True))
    assert len(lines) == 1


@pytest.mark.parametrize("is_asked", [True, False])
def test_spark_that_does_not_start_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_asked: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    def open_session(*_: Any) -> Any:
        subprocess.run(["/bin/sh", "-c", "echo a trace; echo another >&2"], check=True)
        logging.getLogger("py4j").warning("no answer")
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(module, "open_session", open_session)
    settings = RunSettings(PROPERTIES, tmp_path, ends_process=True)
    for _ in range(2):
        if is_asked:
            assert run_pipelines([defined("p")], settings, should_stop=lambda: True) == []
        else:
            with pytest.raises(SparkEnded, match=r"Spark did not start: refused; .*spark\.log"):
                run_pipelines([defined("p")], settings)
    for name in ("spark.log", "spark.log.1"):
        lines = (tmp_path / name).read_text().splitlines()
        assert lines[:2] == ["a trace", "another"]
        assert lines[2].endswith("WARNING py4j: no answer")
    assert capfd.readouterr() == ("", "")


def test_end_of_java_leaves_no_traceback_of_accumulators(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Lost(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            raise EOFError

    with socketserver.TCPServer(("127.0.0.1", 0), Lost) as server, libraries_speak_in(tmp_path / "log"):
        log_lost_accumulators(server)
        with socket.create_connection(("127.0.0.1", server.server_address[1])):
            server.handle_request()
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "log").read_text().splitlines()[-1] == "EOFError"

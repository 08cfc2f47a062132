"""`ottla pipeline` without Spark: what it lists, tells and refuses. The guide's pipeline can be loaded."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ottla.cli.main import main
from ottla.pipelines.loading import load_pipelines
from ottla.pipelines.status import QueryStatus, prepare_directory, wants_to_stop, write_status

ROOT = Path(__file__).parents[3]
ONE_PIPELINE = """
from ottla.pipelines import pipeline, topic

@pipeline("a", to="b")
def a(x=topic("x")):
    return x
"""


def invoke(directory: Path, *arguments: str) -> Result:
    # Not `pipeline` alone: a command keeps the name of its help option from wherever it is first called.
    return CliRunner().invoke(main, ["pipeline", *arguments, "--directory", str(directory)])


# Nobody listens at this port: it is that of a service that no machine runs any more.
FRAUD = QueryStatus(
    "fraud", os.getpid(), "running", 7, 1200, 300.0, 42,
    batch_ms=1500, state_rows=12, state_bytes=3456, dropped_rows=5, pipeline="fraud",
    spark_page="http://127.0.0.1:4040/StreamingQuery/", inputs={"payments": "earliest"},
    bootstrap="127.0.0.1:9",
)  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = prepare_directory(tmp_path / "pipelines")
    write_status(directory, FRAUD)
    write_status(directory, QueryStatus("old", os.getpid(), "done", last_error="why"))
    return directory


def test_pipelines_are_listed_with_their_state(directory: Path) -> None:
    rows = json.loads(invoke(directory, "list", "--json").stdout)
    assert {(row["name"], row["state"]) for row in rows} == {("fraud", "running"), ("old", "done")}


def test_status_tells_rate_batch_state_and_error(directory: Path) -> None:
    found = json.loads(invoke(directory, "status", "fraud", "--json").stdout)
    assert (found["batch"], found["batch_ms"], found["rows_per_second"]) == (7, 1500, 300.0)
    assert (found["state_rows"], found["state_bytes"], found["dropped_rows"]) == (12, 3456, 5)
    assert found["spark_page"] == "http://127.0.0.1:4040/StreamingQuery/"
    assert "why" in invoke(directory, "status").stdout


def test_status_knows_no_batch_before_the_first_and_serves_no_page_after_the_end(directory: Path) -> None:
    write_status(directory, QueryStatus("old", os.getpid(), "done", spark_page="http://127.0.0.1:4040/x"))
    found = json.loads(invoke(directory, "status", "old", "--json").stdout)
    assert found["batch"] is None
    assert found["spark_page"] is None
    assert "-1" not in invoke(directory, "status").stdout


def test_lag_is_asked_from_the_cluster_that_the_pipeline_reads_from(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class FakeLink:
        def __init__(self, properties: dict[str, str], **_: Any) -> None:
            self.server = properties["bootstrap.servers"]

        def close(self) -> None:
            pass

    def measure(link: FakeLink, query: str, inputs: Any) -> int:
        asked.append((link.server, query, tuple(inputs)))
        return 7

    monkeypatch.setattr("ottla.pipelines.link.Link", FakeLink)
    monkeypatch.setattr("ottla.pipelines.lag.measure_lag", measure)
    for state in ("running", "stopped"):
        write_status(directory, dataclasses.replace(FRAUD, state=state))
        assert json.loads(invoke(directory, "status", "fraud", "--json").stdout)["lag"] == 7
    assert json.loads(invoke(directory, "status", "fraud", "-b", "127.0.0.1:8", "--json").stdout)["lag"] == 7
    assert asked == [(f"127.0.0.1:{port}", "fraud", ("payments",)) for port in (9, 9, 8)]


def test_lag_that_nobody_knows_is_not_zero(directory: Path) -> None:
    done = invoke(directory, "status", "fraud", "--json")
    assert json.loads(done.stdout)["lag"] is None
    assert "the lag is unknown: no broker answers at 127.0.0.1:9" in done.stderr


def test_stop_stops_all_queries_of_a_pipeline(directory: Path) -> None:
    letters = QueryStatus("fraud.dead_letters", os.getpid(), "running", pipeline="fraud")
    write_status(directory, letters)
    write_status(directory, QueryStatus("other", os.getpid(), "running", pipeline="other"))
    assert invoke(directory, "stop", "fraud", "--timeout", "1").exit_code == 1
    assert wants_to_stop(directory, "fraud")
    assert wants_to_stop(directory, "fraud.dead_letters")
    assert not wants_to_stop(directory, "other")

    write_status(directory, dataclasses.replace(FRAUD, state="stopped"))
    done = invoke(directory, "stop", "fraud", "--timeout", "1")
    assert done.exit_code == 1
    assert "fraud.dead_letters did not stop within 1 s" in done.stderr


def test_stop_waits_for_the_process_unless_something_else_runs_there(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status changes while the command looks, as it does when the runner hears of the wish."""
    runner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        mine = dataclasses.replace(FRAUD, pid=runner.pid, ends_process=True)
        write_status(directory, mine)

        def ask(place: Path, names: Any) -> None:
            assert set(names) == {"fraud"}
            write_status(place, dataclasses.replace(mine, state="stopped"))

        monkeypatch.setattr("ottla.pipelines.status.ask_to_stop", ask)
        done = invoke(directory, "stop", "fraud", "--timeout", "1")
        assert done.exit_code == 1
        assert f"process {runner.pid} did not stop within 1 s" in done.stderr

        write_status(directory, mine)
        write_status(directory, QueryStatus("beside", runner.pid, "running", ends_process=True))
        assert invoke(directory, "stop", "fraud", "--timeout", "5").exit_code == 0
    finally:
        runner.communicate(b"\n")


def test_run_says_at_once_that_no_broker_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark must not be started")

    monkeypatch.setattr("ottla.pipelines.spark.runner.run_pipelines", never)
    file = tmp_path / "one.py"
    file.write_text(ONE_PIPELINE)
    done = invoke(tmp_path, "run", str(file), "--bootstrap", "127.0.0.1:9")

    assert done.exit_code == 1
    assert done.stderr.startswith("Error: no broker answers at 127.0.0.1:9")
    assert len(done.stderr.splitlines()) == 1


def test_pipeline_that_never_ran_is_told_so(directory: Path) -> None:
    done = invoke(directory, "status", "nobody")
    assert done.exit_code == 1
    assert "no pipeline 'nobody' has run" in done.stderr


def test_stop_waits_for_the_pipeline_and_gives_up_in_time(directory: Path) -> None:
    done = invoke(directory, "stop", "fraud", "--timeout", "1")
    assert done.exit_code == 1
    assert "did not stop within 1 s" in done.stderr
    assert wants_to_stop(directory, "fraud")

    write_status(directory, QueryStatus("fraud", os.getpid(), "stopped"))
    assert invoke(directory, "stop", "fraud").exit_code == 0


def test_run_refuses_a_file_without_pipelines_and_a_name_that_is_not_there(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("")
    assert "declares no pipeline" in invoke(tmp_path, "run", str(empty)).stderr
    one = tmp_path / "one.py"
    one.write_text(ONE_PIPELINE)
    assert "has no pipeline 'other'" in invoke(tmp_path, "run", str(one), "--only", "other").stderr


def test_run_fails_with_the_reason_when_a_pipeline_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = [QueryStatus("well", 1, "done"), QueryStatus("ill", 1, "failed", last_error="no such topic")]
    monkeypatch.setattr("ottla.pipelines.spark.runner.run_pipelines", lambda *_, **__: ended)
    monkeypatch.setattr("ottla.cli.pipeline.with_admin", lambda *_: None)
    # Java and the signals of this process are those of other tests, too.
    monkeypatch.setattr("ottla.pipelines.spark.session.end_java", lambda: None)
    monkeypatch.setattr("ottla.cli.pipeline.signal.signal", lambda *_: None)
    file = tmp_path / "one.py"
    file.write_text(ONE_PIPELINE)
    done = invoke(tmp_path, "run", str(file), "--available-now")

    assert done.exit_code == 1
    assert "given up after several attempts: ill: no such topic" in done.stderr


def test_pipeline_of_the_guide_can_be_loaded(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guide" / "pipelines.md").read_text()
    code, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "spend.py").write_text(code)
    (definition,) = load_pipelines(tmp_path / "spend.py")

    assert definition.name == "spend_per_minute"
    assert [item.topic for item in definition.inputs.values()] == ["payments"]


def test_examples_can_be_loaded() -> None:
    assert len(load_pipelines(ROOT / "examples" / "operators.py")) == 9
    names = [item.name for item in load_pipelines(ROOT / "examples" / "payments" / "pipelines.py")]
    assert names == ["clean", "fraud", "revenue"]

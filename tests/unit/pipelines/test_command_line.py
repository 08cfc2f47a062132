"""`ottla pipeline` without Spark: what it lists, tells and refuses. The guide's pipeline can be loaded."""

import json
import os
import re
from pathlib import Path

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


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = prepare_directory(tmp_path / "pipelines")
    write_status(directory, QueryStatus("fraud", os.getpid(), "running", 7, 1200, 300.0, 42))
    write_status(directory, QueryStatus("old", os.getpid(), "done", last_error="why"))
    return directory


def test_pipelines_are_listed_with_their_state(directory: Path) -> None:
    rows = json.loads(invoke(directory, "list", "--json").stdout)
    assert {(row["name"], row["state"]) for row in rows} == {("fraud", "running"), ("old", "done")}


def test_status_tells_rate_lag_batch_and_error(directory: Path) -> None:
    found = json.loads(invoke(directory, "status", "fraud", "--json").stdout)
    assert (found["batch"], found["lag"], found["rows_per_second"]) == (7, 42, 300.0)
    assert "why" in invoke(directory, "status").stdout


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
    file = tmp_path / "one.py"
    file.write_text(ONE_PIPELINE)
    done = invoke(tmp_path, "run", str(file), "--available-now")

    assert done.exit_code == 1
    assert "given up after several attempts: ill: no such topic" in done.stderr


def test_pipeline_of_the_guide_can_be_loaded(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guide" / "pipelines.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "spend.py").write_text(code)
    (definition,) = load_pipelines(tmp_path / "spend.py")

    assert definition.name == "spend_per_minute"
    assert [item.topic for item in definition.inputs.values()] == ["payments"]


def test_examples_can_be_loaded() -> None:
    assert len(load_pipelines(ROOT / "examples" / "operators.py")) == 9
    names = [item.name for item in load_pipelines(ROOT / "examples" / "payments" / "pipelines.py")]
    assert names == ["clean", "fraud", "revenue"]

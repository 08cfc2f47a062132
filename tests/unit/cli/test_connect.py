"""Which of a worker's settings count: those of the command line, then those of the file."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ottla.cli.main import main
from ottla.connect import process


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options that a worker was started with."""
    found: list[Any] = []
    monkeypatch.setattr(process, "run_worker", lambda options, _ready: found.append(options))
    return found


def _run(started: list[Any], *arguments: str) -> dict[str, str]:
    done = CliRunner().invoke(main, ["connect", *arguments])
    assert done.exit_code == 0, done.output
    (options,) = started
    properties: dict[str, str] = dict(options.properties)
    return properties


def test_without_a_file_the_broker_is_the_one_on_this_machine(started: list[Any]) -> None:
    assert _run(started)["bootstrap.servers"] == "127.0.0.1:9092"


def test_the_file_names_the_broker_unless_the_command_does(tmp_path: Path, started: list[Any]) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("bootstrap.servers = far:1\ngroup.id= mine \n")
    found = _run(started, "--config", str(path), "--set", "tasks=3")
    assert (found["bootstrap.servers"], found["group.id"], found["tasks"]) == ("far:1", "mine", "3")
    started.clear()
    assert _run(started, "--config", str(path), "--bootstrap", "near:1")["bootstrap.servers"] == "near:1"
    started.clear()
    assert _run(started, "--config", str(path), "--set", "group.id=x")["group.id"] == "x"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, started: list[Any]) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("a=\\u12")
    done = CliRunner().invoke(main, ["connect", "--config", str(path)])
    assert done.exit_code == 1
    assert f"cannot read {path}" in done.output
    assert started == []

"""The verbs of the Makefile do what their help says, tried with stand-ins for the programs that they run."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose environment is set up, with programs that only say how they were called."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt", ".venv/.runs", ".venv/.ready"):
        (tmp_path / name).touch()
    stand_in(tmp_path, "python")
    stand_in(tmp_path, "ottla")
    return tmp_path


def stand_in(checkout: Path, name: str, then: str = "") -> None:
    program = checkout / ".venv" / "bin" / name
    program.write_text(f'#!/bin/bash\necho "called {name} $*"\n{then}\n')
    program.chmod(0o755)


def make(checkout: Path, *arguments: str) -> "tuple[int, list[str]]":
    done = subprocess.run(
        ["make", *arguments], cwd=checkout, capture_output=True, text=True, timeout=60, check=False
    )
    called = [line.removeprefix("called ") for line in done.stdout.splitlines() if line.startswith("called ")]
    return done.returncode, called


def test_tests_of_one_room_are_run_in_the_order_of_a_seed(checkout: Path) -> None:
    assert make(checkout, "test") == (0, ["python -m tests.suite.run --what  --order 1"])
    assert make(checkout, "test", "WHAT=storage", "ORDER=7") == (
        0,
        ["python -m tests.suite.run --what storage --order 7"],
    )


def test_tests_that_fail_make_the_verb_fail(checkout: Path) -> None:
    stand_in(checkout, "python", "exit 3")
    assert make(checkout, "test")[0] != 0
    assert make(checkout, "test-costs")[0] != 0


def test_a_node_listens_on_the_port_that_make_is_given(checkout: Path) -> None:
    assert make(checkout, "up") == (0, ["ottla up --hints --port 9092"])
    assert make(checkout, "up", "PORT=19092") == (0, ["ottla up --hints --port 19092"])


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        ([], "cluster"),
        (["WHAT=cluster", "SEEDS=20", "FIRST=7"], "cluster --seeds 20 --first 7"),
        (["WHAT=quorum", "BUGS=1", "BUG_SEEDS=5"], "quorum --bugs --bug-seeds 5"),
    ],
)
def test_one_verb_runs_all_simulations(checkout: Path, arguments: list[str], called: str) -> None:
    stand_in(checkout, "python")
    assert make(checkout, "sim", *arguments) == (0, [f"python -m tests.simulation.sim {called}"])

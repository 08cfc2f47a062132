"""The verbs of the Makefile do what their help says, tried with stand-ins for the programs that they run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.suite.verbs import BENCHES, CRASHES
from tests.suite.verbs import main as verbs_main

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


def environment() -> dict[str, str]:
    """Return an environment without the variables that `make test` was called with."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def make(checkout: Path, *arguments: str) -> "tuple[int, list[str]]":
    done = subprocess.run(
        ["make", *arguments],
        cwd=checkout,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    called = [line.removeprefix("called ") for line in done.stdout.splitlines() if line.startswith("called ")]
    return done.returncode, called


def test_tests_of_one_room_are_run_in_the_order_of_a_seed(checkout: Path) -> None:
    assert make(checkout, "test") == (0, ["python -m tests.suite.run --what  --order 1"])
    assert make(checkout, "test", "WHAT=storage", "SEED=7") == (
        0,
        ["python -m tests.suite.run --what storage --order 7"],
    )


def test_tests_that_fail_make_the_verb_fail(checkout: Path) -> None:
    stand_in(checkout, "python", "exit 3")
    assert make(checkout, "test")[0] != 0
    assert make(checkout, "test", "COSTS=1")[0] != 0


def test_a_node_listens_on_the_port_that_make_is_given(checkout: Path) -> None:
    assert make(checkout, "up") == (0, ["ottla up --hints --port 9092"])
    assert make(checkout, "up", "PORT=19092") == (0, ["ottla up --hints --port 19092"])


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        ([], "cluster"),
        (["WHAT=cluster", "TIMES=20", "SEED=7"], "cluster --seeds 20 --first 7"),
        (["WHAT=quorum", "BUGS=1", "BUG_SEEDS=5"], "quorum --bugs --bug-seeds 5"),
    ],
)
def test_one_verb_runs_all_simulations(checkout: Path, arguments: list[str], called: str) -> None:
    stand_in(checkout, "python")
    assert make(checkout, "sim", *arguments) == (0, [f"python -m tests.simulation.sim {called}"])


def verbs() -> list[str]:
    return re.findall(r"^\.PHONY: (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_each_verb_says_what_it_does() -> None:
    listed = subprocess.run(
        ["make", "help"], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[0] for line in listed.splitlines()} == set(verbs())


def test_pages_and_modules_name_verbs_that_are_there() -> None:
    texts = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("[sbte]*/**/*.py"),
    ]
    named = {
        verb: path.relative_to(ROOT).as_posix()
        for path in texts
        for verb in re.findall(r"`(?:[A-Z]+=\S+ )*make ([a-z][a-z-]*)", path.read_text())
    }
    assert {verb: path for verb, path in named.items() if verb not in verbs()} == {}


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        (["crash"], "crash node --times  --seed  --"),
        (["crash", "WHAT=damage", "TIMES=9", "SEED=3"], "crash damage --times 9 --seed 3 --"),
        (["bench", "WHAT=before", "WITH=HEAD~3"], "bench before --times  -- HEAD~3"),
    ],
)
def test_long_runs_are_words_of_two_verbs(checkout: Path, arguments: list[str], called: str) -> None:
    assert make(checkout, *arguments) == (0, [f"python -m tests.suite.verbs {called}"])


def test_what_can_be_run_is_there_and_takes_its_options() -> None:
    for what in (*BENCHES.values(), *CRASHES.values()):
        if what.target.endswith(".py"):
            assert what.times in (ROOT / what.target).read_text()
            continue
        module = ROOT / what.target.replace(".", "/")
        file = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
        source = file.read_text()
        for option in (what.times, what.seed, *what.options[::2]):
            assert not option or f'"{option}"' in source, f"{what.target} does not take {option}"


def test_a_run_that_is_not_there_is_refused_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs_main(["crash", "nod"]) == 2
    assert "make crash WHAT=... takes one of these:\n  node " in capsys.readouterr().err
    assert verbs_main(["bench", "codec", "--times", "5"]) == 2
    assert "benchmarks.codec cannot be told how often" in capsys.readouterr().err


def test_what_follows_two_dashes_is_for_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: 0)
    assert verbs_main(["crash", "campaign", "--times", "5", "--seed", "", "--", "--wide"]) == 0
    assert capsys.readouterr().out.endswith(" --wide\n")
    assert verbs_main(["crash", "campaign", "--times", "", "--seed", "", "--"]) == 0
    assert "--wide" not in capsys.readouterr().out

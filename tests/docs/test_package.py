"""The package installs into an empty environment, and a node runs from it."""

import re
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but pip."""
    directory = tmp_path_factory.mktemp("package") / "venv"
    venv.create(directory, with_pip=True)
    return directory / "bin"


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_the_wheel_installs_and_runs_a_node(empty_environment: Path, tmp_path: Path) -> None:
    quietly = ("--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", *quietly, "--no-deps", "--wheel-dir", str(tmp_path), ".")
    (wheel,) = tmp_path.glob("ottla-*.whl")
    run(str(empty_environment / "pip"), "install", *quietly, "--constraint", "constraints.txt", str(wheel))
    ottla = str(empty_environment / "ottla")
    assert re.search(r"^ottla:\s+\d", run(ottla, "version"), re.MULTILINE)
    command = [ottla, "up", "--port", "0", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        ready, address = process.stdout.readline().split()
        run(ottla, "topic", "create", "t", "--bootstrap", address)
        run(ottla, "produce", "t", "--value", "x", "--bootstrap", address)
        assert run(ottla, "consume", "t", "--bootstrap", address) == "x\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert ready == "ready"

"""The package installs into an empty environment, and a node runs from it."""

import re
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


QUIETLY = ("--quiet", "--disable-pip-version-check")
SCRIPT = """
from ottla import Admin, Consumer, ConsumerRecord, Producer, RecordMetadata, __version__, sync


async def main() -> RecordMetadata:
    async with Producer("a:1") as producer, Consumer("a:1") as consumer, Admin("a:1") as admin:
        records: list[ConsumerRecord] = await consumer.poll()
        reveal_type(await admin.topics.list())
        return await producer.send_and_wait("t", records[0].value)


with sync.Producer("a:1") as producer:
    offset: int = producer.send_and_wait("t").offset
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the package and what it needs, installed from its wheel."""
    directory = tmp_path_factory.mktemp("package")
    venv.create(directory / "venv")
    pip = (sys.executable, "-m", "pip")
    # What builds it is there already. Otherwise pip would set up an environment just for that.
    run(*pip, "wheel", *QUIETLY, "--no-build-isolation", "--no-deps", "--wheel-dir", str(directory), ".")
    (wheel,) = directory.glob("ottla-*.whl")
    python = str(directory / "venv/bin/python")
    run(*pip, "--python", python, "install", *QUIETLY, "--constraint", "constraints.txt", str(wheel))
    return directory / "venv/bin"


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_a_type_checker_knows_the_installed_package(environment: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(environment / "python")]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert 'Revealed type is "tuple[ottla.client.admin.topics.TopicListing, ...]"' in done.stdout
    script.write_text("from ottla import Produser\n")
    done = subprocess.run([*command, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'Module "ottla" has no attribute "Produser"' in done.stdout


def test_the_wheel_installs_and_runs_a_node(environment: Path, tmp_path: Path) -> None:
    ottla = str(environment / "ottla")
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

"""Every block of the README works as it is written: those of the first minutes in order, against one node."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks.node_table import FIVE
from tests.support.ottla_node import OttlaNode

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


class Block(NamedTuple):
    """A block of code, and the heading it stands under."""

    heading: str
    language: str
    text: str


def blocks() -> list[Block]:
    """Return all blocks in order."""
    found = []
    for part in re.split(r"^## ", README, flags=re.MULTILINE)[1:]:
        heading = part.splitlines()[0]
        found += [Block(heading, *pair) for pair in re.findall(r"```(\w+)\n(.*?)```", part, re.DOTALL)]
    return found


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    settings = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
    with OttlaNode(tmp_path_factory.mktemp("readme"), settings) as node:
        yield node


def run(command: list[str], node: OttlaNode, *, quietly: bool = False) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "OTTLA_BOOTSTRAP": node.bootstrap,
        "OTTLA_CONFIG": "/dev/null",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (quietly and done.stderr), done.stderr
    return done.stdout


def test_the_first_five_minutes_work_in_order(node: OttlaNode, tmp_path: Path) -> None:
    first, *rest = [block for block in blocks() if block.heading == "Five minutes"]
    assert first == Block("Five minutes", "sh", "make up\n")
    said = []
    for block in rest:
        if block.language == "sh":
            # The environment that runs the tests stands for the one that `make up` has made.
            shell = block.text.replace(". .venv/bin/activate\n", "")
            said.append(run(["bash", "-e", "-o", "pipefail", "-c", shell], node))
        elif "def test_" in block.text:
            (tmp_path / "test_block.py").write_text(block.text)
            said.append(
                run([sys.executable, "-m", "pytest", "-q", str(tmp_path), "--rootdir", str(tmp_path)], node)
            )
        else:
            script = block.text.replace("127.0.0.1:9092", node.bootstrap)
            said.append(run([sys.executable, "-W", "error", "-c", script], node, quietly=True))
    written, client, group, tested = said
    assert "world\thello\n" in written
    assert "b'world' b'hello again'" in client
    assert "group:       readers" in group
    assert "1 passed" in tested


def test_make_up_says_what_to_type_next(tmp_path: Path) -> None:
    """`make up` runs this command; making the environment is tried where the package is built."""
    command = [str(Path(sys.executable).with_name("ottla")), "up", "--hints", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert re.fullmatch(r"ready 127\.0\.0\.1:\d+\n", ready)
    assert out == ""
    address = ready.split()[1]
    assert f"consume greetings --bootstrap {address}" in err


@pytest.mark.thorough(guard="tests/docs/test_package.py::test_the_wheel_installs_and_runs_a_node")
def test_an_installed_ottla_runs_a_node(tmp_path: Path) -> None:
    """Nothing is fetched: what the package needs is taken from the environment that runs the tests."""
    (block,) = (block for block in blocks() if block.heading == "Install it")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "OTTLA_CONFIG": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        # As a variable this means the opposite of what it says: no isolation, please.
        "PIP_NO_BUILD_ISOLATION": "0",
    }

    def shell(text: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = shell(block.text)
    assert f"ottla {version('ottla')}" in said
    where = shell("ottla-venv/bin/python -c 'import ottla; print(ottla.__file__)'")
    assert Path(where.strip()).is_relative_to(tmp_path / "ottla-venv")
    command = ["ottla-venv/bin/ottla", "up", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            environment["OTTLA_BOOTSTRAP"] = process.stdout.readline().split()[1]
            shell("ottla-venv/bin/ottla topic create greetings")
            assert "greetings" in shell("ottla-venv/bin/ottla topic list")
        finally:
            process.terminate()


def test_other_blocks_name_verbs_that_exist() -> None:
    rest = [block for block in blocks() if block.heading != "Five minutes"]
    assert [block.heading for block in rest] == ["Install it", "Build it"]
    for verb in re.findall(r"^make ([a-z-]+)", "".join(block.text for block in rest), re.MULTILINE):
        assert verb in VERBS, f"make {verb} does not exist"


def test_the_five_figures_are_those_of_the_long_table() -> None:
    measured = (ROOT / "docs/measured.md").read_text()
    rows = re.findall(r"^\| (\w+): (.*) \|$", README, re.MULTILINE)
    assert [asked for asked, _ in rows] == list(FIVE)
    for asked, row in rows:
        assert row.startswith(f"{FIVE[asked]} | ")
        assert f"\n| {row} |" in measured, f"docs/measured.md has other figures than {row}"


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"

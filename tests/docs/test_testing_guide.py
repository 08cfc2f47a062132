"""What the guide to testing shows passes, and so does the example project."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ottla.testing.node import LocalNode

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/testing.md").read_text(), re.DOTALL)


def run_pytest(directory: Path, *arguments: str) -> str:
    """Run the tests of another project, as its author does."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_the_blocks_of_the_guide_pass(tmp_path: Path) -> None:
    assert len(BLOCKS) == 4, "pytest, waiting, faults and unittest"
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"test_block_{number}.py").write_text(block)
    assert "6 passed" in run_pytest(tmp_path)


def test_the_example_project_passes() -> None:
    assert "5 passed" in run_pytest(ROOT / "examples" / "testing-with-ottla", "-p", "no:cacheprovider")


@pytest.mark.parametrize("fault", ["refuse", "delay", "drop", "disconnect", "lose_answer", "pretend"])
def test_each_fault_is_explained(fault: str) -> None:
    assert f"| `{fault}(" in (ROOT / "docs/guide/testing.md").read_text()


def test_the_extra_that_the_guide_names_brings_pytest() -> None:
    assert "pip install '.[testing]'" in (ROOT / "docs/guide/testing.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [requirement for requirement in extras["testing"] if requirement.startswith("pytest")]


def test_the_guide_shows_what_every_node_can_do() -> None:
    page = (ROOT / "docs/guide/testing.md").read_text()
    for name in vars(LocalNode):
        if not name.startswith("_") and name not in ("is_running", "start", "stop", "conversation"):
            assert f"`{name}" in page, f"the guide does not mention {name}"

"""The blocks of docs/guide/first-steps.md do what the page says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.ottla_node import OttlaNode

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "first-steps.md"


def blocks(language: str, node: OttlaNode) -> list[str]:
    """Return the blocks of a language, for a node that listens on another port."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block.replace("127.0.0.1:9092", node.bootstrap) for block in found]


def run(*command: str) -> str:
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_blocks_write_and_read(ottla_node: OttlaNode) -> None:
    write, read = blocks("python", ottla_node)
    assert run(sys.executable, "-c", write) == "0 records are not acknowledged\n"
    assert run(sys.executable, "-c", read).splitlines() == [f"alice purchase {number}" for number in range(3)]


def test_the_shell_block_writes_and_reads(ottla_node: OttlaNode) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    (block,) = blocks("sh", ottla_node)
    assert sorted(run("bash", "-c", block).splitlines()) == ["alice wants coffee", "bob wants tea"]

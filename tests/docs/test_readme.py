"""What the README shows works as it is written."""

import re
import subprocess
import sys
from pathlib import Path

from tests.ottla_node import OttlaNode

ROOT = Path(__file__).parents[2]


def _blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_python_blocks_run_against_a_node(tmp_path: Path) -> None:
    blocks = _blocks("python")
    assert blocks, "the README shows how to use a node"
    with OttlaNode(tmp_path, {"offsets.topic.num.partitions": "3"}) as node:
        for block in blocks:
            script = block.replace("127.0.0.1:9092", node.bootstrap)
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", script],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    assert "b'world' b'hello'" in done.stdout


def test_shell_blocks_name_verbs_and_options_that_exist() -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(_blocks("sh"))
    for verb in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE):
        assert verb in verbs, f"make {verb} does not exist"
    help_text = subprocess.run(
        [str(Path(sys.executable).with_name("ottla")), "up", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for option in re.findall(r"ottla up ([^\n]*)", text):
        for name in re.findall(r"--[a-z-]+", option):
            assert name in help_text, f"ottla up has no {name}"


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"

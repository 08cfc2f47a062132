"""The page about the command line names every file there is, and no other."""

import re
from pathlib import Path

from ottla import cli, testing
from ottla.testing import disk_nodes, power_cut, simulated_disk

PAGE = Path(__file__).parents[3] / "docs/internals/command-line.md"
SIMULATED = {Path(module.__file__ or "").name for module in (disk_nodes, power_cut, simulated_disk)}


def test_the_file_map_is_the_tree() -> None:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    named = re.findall(r"^\| `(\w+\.py)`", file_map, re.MULTILINE)
    assert len(named) == len(set(named))
    there = {path.name for package in (cli, testing) for path in Path(package.__path__[0]).glob("*.py")}
    assert set(named) == there - SIMULATED - {"__init__.py"}

"""The page about the quorum names every file, every state, and every way from one to another."""

import re
from pathlib import Path

from ottla.quorum.raft.transitions import TRANSITIONS

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/internals/quorum.md").read_text()


def test_every_file_is_in_the_map() -> None:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE, re.DOTALL)
    named = set(re.findall(r"^\| `(\w+\.py)`", file_map, re.MULTILINE))
    there = {path.name for path in (ROOT / "src/ottla/quorum/raft").glob("*.py")} - {"__init__.py"}
    assert named == there


def test_every_transition_is_in_the_table() -> None:
    (table,) = re.findall(r"## States\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = set(re.findall(r"^\| (\w+) \| (\w+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE))
    rows -= {row for row in rows if row[0] == "from"}
    expected = {
        (old.value, new.value, step.value, why)
        for (old, new), steps in TRANSITIONS.items()
        for step, why in steps.items()
    }
    assert rows == expected

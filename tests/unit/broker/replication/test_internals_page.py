"""The page about replication names every file there is, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_file_map_is_the_tree() -> None:
    page = (ROOT / "docs/internals/replication.md").read_text()
    (table,) = re.findall(r"## File map\n\n(.*?)\n\n", page, re.DOTALL)
    there = {path.name for path in (ROOT / "src/ottla/broker/replication").glob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", table)) == there - {"__init__.py"}

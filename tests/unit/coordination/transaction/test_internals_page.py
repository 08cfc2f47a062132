"""The page about transactions names every file that there is."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_file_map_is_the_tree() -> None:
    page = (ROOT / "docs/internals/transactions.md").read_text()
    listed = set(re.findall(r"^\| `(\w+\.py)`", page, re.MULTILINE))
    there = {path.name for path in (ROOT / "src/ottla/coordination/transaction").glob("*.py")}
    assert listed == there - {"__init__.py"}


def test_proofs_exist() -> None:
    page = (ROOT / "docs/internals/transactions.md").read_text()
    for path in re.findall(r"`(tests/[\w/.]+)`", page):
        assert (ROOT / path).exists(), path

"""The page about the checker names every file and every anomaly that there is."""

import re
from pathlib import Path

from tests.unit.testing.guarantees.planted import PLANTED

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/internals/guarantees.md").read_text()


def test_the_file_map_is_the_tree() -> None:
    listed = set(re.findall(r"^\| `(\w+\.py)`", PAGE, re.MULTILINE))
    there = {path.name for path in (ROOT / "src/ottla/testing/guarantees").glob("*.py")}
    assert listed == there - {"__init__.py"}


def test_every_anomaly_on_the_page_is_planted_by_a_test() -> None:
    assert set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE)) == set(PLANTED)

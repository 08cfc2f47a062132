"""The page about groups names the files there are, with what they are for."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/internals/groups.md"


def test_the_file_map_is_that_of_the_packages() -> None:
    sections = re.findall(r"^### `([\w/]+)`\n(.*?)(?=^##)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(sections) == 8
    for package, text in sections:
        named = set(re.findall(r"^\| `(\w+\.py)` \|", text, re.MULTILINE))
        there = {path.name for path in (ROOT / "src/ottla" / package).glob("*.py")} - {"__init__.py"}
        assert named == there, package

"""The page about this package names the files it has."""

import re
from pathlib import Path

import ottla.records

ROOT = Path(__file__).parents[3]


def test_the_file_map_is_that_of_the_package() -> None:
    page = (ROOT / "docs" / "internals" / "records.md").read_text()
    named = set(re.findall(r"^\| `(\w+\.py)` \|", page, re.MULTILINE))
    (package,) = ottla.records.__path__
    assert named == {path.name for path in Path(package).glob("*.py")} - {"__init__.py"}

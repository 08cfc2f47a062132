"""The file map of the client names every file there is, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_names_every_file_and_nothing_else() -> None:
    page = (ROOT / "docs" / "internals" / "client.md").read_text()
    rows = page.partition("## Files")[2].partition("## Non-obvious")[0]
    named = re.findall(r"`([\w/]+\.py)`", rows)
    package = ROOT / "src" / "ottla" / "client"
    there = {str(path.relative_to(package)) for path in package.rglob("*.py") if path.name != "__init__.py"}
    assert sorted(named) == sorted(there)

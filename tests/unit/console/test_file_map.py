"""The file map of the console names every file there is, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_names_every_file_and_nothing_else() -> None:
    page = (ROOT / "docs" / "internals" / "console.md").read_text()
    rows = page.partition("## Files")[2].partition("## Non-obvious")[0]
    source = ROOT / "src" / "ottla" / "console"
    there = [str(path.relative_to(source)) for path in source.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(re.findall(r"`([\w/]+\.py)`", rows)) == sorted(there)

"""The file map of the registry names every file there is, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("schemas", "registry", "satellite")


def test_the_page_names_every_file_and_nothing_else() -> None:
    page = (ROOT / "docs" / "internals" / "registry.md").read_text()
    rows = page.partition("## Files")[2].partition("## Non-obvious")[0]
    source = ROOT / "src" / "ottla"
    there = [
        str(path.relative_to(source))
        for package in PACKAGES
        for path in (source / package).rglob("*.py")
        if path.name != "__init__.py"
    ]
    assert sorted(re.findall(r"`([\w/]+\.py)`", rows)) == sorted(there)

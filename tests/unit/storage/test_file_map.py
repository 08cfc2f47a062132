"""The page about this package names every file of it, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/internals/storage.md"


def test_the_file_map_is_the_tree() -> None:
    table = PAGE.read_text().split("## File map")[1].split("## What is measured")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([a-z_/]+(?:\.py|/))`", row.split("|")[1])]
    package = ROOT / "src/ottla/storage"
    files = [str(path.relative_to(package)) for path in package.rglob("*.py") if path.name != "__init__.py"]
    # Compaction is named as a whole.
    files = [name for name in files if not name.startswith("compaction/")]
    assert sorted(named) == sorted([*files, "compaction/"])


def test_the_neighbours_that_are_named_exist() -> None:
    neighbours = re.findall(r"`((?:world|runtime|testing)/[a-z_]+\.py)`", PAGE.read_text())
    assert neighbours
    for name in neighbours:
        assert (ROOT / "src/ottla" / name).exists(), name

"""The page about this package names every file of it, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/internals/storage.md"


def test_the_file_map_is_the_tree() -> None:
    table = PAGE.read_text().split("## File map")[1].split("## What is measured")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([a-z_]+(?:\.py|/))`", row.split("|")[1])]
    package = ROOT / "src/ottla/storage"
    files = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    directories = [f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()]
    assert sorted(named) == sorted(files + directories)


def test_the_neighbours_that_are_named_exist() -> None:
    neighbours = re.findall(r"`((?:world|runtime|testing)/[a-z_]+\.py)`", PAGE.read_text())
    assert neighbours
    for name in neighbours:
        assert (ROOT / "src/ottla" / name).exists(), name

"""The page about the broker names every file there is, and no other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/internals/broker.md"
# Folders that are named as a whole: a file in them is found by its name.
WHOLE = {
    "broker": {"apis", "authorization", "coordinators", "login", "replication", "share"},
    "runtime": set(),
}


@pytest.mark.parametrize("package", ["broker", "runtime"])
def test_the_file_map_is_the_tree(package: str) -> None:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    (table,) = re.findall(rf"`{package}/`:\n\n(.*?)(?:\n\n|$)", file_map, re.DOTALL)
    named = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    assert len(named) == len(set(named))
    root = ROOT / "src/ottla" / package
    there = {
        f"{path.parts[0]}/" if path.parts[0] in WHOLE[package] else str(path)
        for path in (path.relative_to(root) for path in root.rglob("*.py"))
        if path.name != "__init__.py"
    }
    assert set(named) == there


def test_every_test_it_names_exists() -> None:
    (proof,) = re.findall(r"## Proof\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    tests = ROOT / "tests"
    for name in re.findall(r"`(?:tests/(?:\w+/)?)?(test_\w+\.py)`", proof):
        assert list(tests.rglob(name)), name

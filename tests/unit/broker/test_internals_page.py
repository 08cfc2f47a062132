"""The page about the broker names every file there is, and no other."""

import re
from pathlib import Path

from ottla import broker, runtime

PAGE = Path(__file__).parents[3] / "docs/internals/broker.md"


def test_the_file_map_is_the_tree() -> None:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    named = re.findall(r"`(\w+\.py)`", file_map)
    assert len(named) == len(set(named))
    there = {
        path.name for package in (broker, runtime) for path in Path(package.__path__[0]).glob("*.py")
    } - {"__init__.py"}
    assert set(named) == there


def test_every_test_it_names_exists() -> None:
    (proof,) = re.findall(r"## Proof\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    tests = PAGE.parents[2] / "tests"
    for name in re.findall(r"`(?:tests/(?:\w+/)?)?(test_\w+\.py)`", proof):
        assert list(tests.rglob(name)), name

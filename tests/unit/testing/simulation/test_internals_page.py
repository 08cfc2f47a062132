"""The page about the world names every file there is, and no other."""

import re
from pathlib import Path

from ottla import world
from ottla.testing import simulation

PAGE = Path(__file__).parents[4] / "docs/internals/world.md"


def test_the_file_maps_are_the_trees() -> None:
    text = PAGE.read_text()
    (of_world, of_simulation) = re.findall(
        r"## File map\n\n`world`:\n(.*?)\n`testing/simulation`:\n(.*?)\n## ", text, re.DOTALL
    )[0]
    for file_map, package in ((of_world, world), (of_simulation, simulation)):
        named = re.findall(r"`(\w+\.py)`", file_map)
        there = {path.name for path in Path(package.__path__[0]).glob("*.py")} - {"__init__.py"}
        assert len(named) == len(set(named))
        assert set(named) == there


def test_everything_it_names_exists() -> None:
    root = PAGE.parents[2]
    for name in re.findall(r"`((?:runtime|testing|tests|world)/[\w/]+\.py)`", PAGE.read_text()):
        assert (root / name).exists() or (root / "src/ottla" / name).exists(), name

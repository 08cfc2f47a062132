"""The page about configs names every file there is, and no other."""

import re
from pathlib import Path

from ottla.metadata import configs

PAGE = Path(__file__).parents[4] / "docs/internals/configs.md"


def test_the_file_map_is_the_tree() -> None:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    named = re.findall(r"`(\w+\.py)`", file_map)
    assert len(named) == len(set(named))
    there = {path.name for path in Path(configs.__path__[0]).glob("*.py")} - {"__init__.py"}
    assert set(named) == there

"""The page about security names every file there is, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/internals/security.md").read_text()


def test_the_file_map_is_the_tree() -> None:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE, re.DOTALL)
    named = re.findall(r"`([\w/]+\.py)`", file_map)
    root = ROOT / "src/ottla/security"
    there = {str(path.relative_to(root)) for path in root.rglob("*.py") if path.name != "__init__.py"}
    assert len(named) == len(set(named))
    assert set(named) == there

"""The page about this package names the files it has."""

import re
from pathlib import Path

import ottla.pipelines

ROOT = Path(__file__).parents[3]


def test_the_file_map_is_that_of_the_package() -> None:
    page = (ROOT / "docs" / "internals" / "pipelines.md").read_text()
    named = set(re.findall(r"^\| `([\w/]+\.py)` \|", page, re.MULTILINE))
    (package,) = ottla.pipelines.__path__
    there = {str(path.relative_to(package)) for path in Path(package).rglob("*.py")}
    assert named == {name for name in there if not name.endswith("__init__.py")}


def test_the_guide_names_the_examples_that_there_are() -> None:
    page = (ROOT / "docs" / "guide" / "pipelines.md").read_text()
    table = page.partition("## From Kafka Streams")[2].partition("\n## ")[0]
    named = set(re.findall(r"\| `([a-z_]+)` \|$", table, re.MULTILINE))
    declared = re.findall(
        r'^@pipeline\("(\w+)"', (ROOT / "examples" / "operators.py").read_text(), re.MULTILINE
    )
    assert named == set(declared)

"""The page about this package names the files it has."""

import re
from pathlib import Path

import ottla.wire
from ottla.wire.apis import REMOVED, ApiKey

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "wire.md"
PACKAGE = Path(next(iter(ottla.wire.__path__)))


def test_the_file_map_is_that_of_the_package() -> None:
    named = set(re.findall(r"^\| `([\w/.]+)` \|", PAGE.read_text(), re.MULTILINE))
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    packages = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    inside = {*PACKAGE.glob("*/framing.py"), *PACKAGE.glob("compiling/[a-z]*.py")}
    assert named == modules | packages | {f"{path.parent.name}/{path.name}" for path in inside}


def test_every_api_has_a_file_and_every_file_an_api() -> None:
    files = {path.stem for path in (PACKAGE / "messages").glob("*.py")} - {"__init__", "removed"}
    assert files == {key.name.lower() for key in ApiKey if key not in REMOVED}


def test_tests_that_the_page_names_exist() -> None:
    root = PAGE.parents[2]
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE.read_text())
    assert named
    assert not [path for path in named if not (root / path).exists()]

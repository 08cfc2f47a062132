"""The page about metadata and its controller names every file, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/internals/metadata.md"


def named_files(heading: str) -> set[str]:
    (file_map,) = re.findall(r"## File map\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    (table,) = re.findall(rf"`{heading}/`.*?:\n\n(.*?)(?:\n\n|$)", file_map, re.DOTALL)
    return set(re.findall(r"`([\w/]+\.py)`", table))


def files_of(package: str, *but: str) -> set[str]:
    root = ROOT / "src/ottla" / package
    return {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path.name != "__init__.py" and path.relative_to(root).parts[0] not in but
    }


def test_every_file_of_the_metadata_is_in_the_map() -> None:
    assert named_files("metadata") == files_of("metadata", "configs")


def test_every_file_of_the_quorum_is_in_the_map() -> None:
    # `raft` has a page of its own.
    assert named_files("quorum") == files_of("quorum", "raft")


def test_the_tests_that_the_page_names_are_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE.read_text())
    assert named
    assert all((ROOT / path).exists() for path in named)

"""A module is about one thing, and a function fits on a screen: both have a largest size.

An exception is named with its reason, and goes when it is no longer needed.
"""

import ast
from pathlib import Path
from typing import Final

from tests.tidy.source import ROOT, modules, nodes

MODULE_LINES_MAX: Final = 600
FUNCTION_LINES_MAX: Final = 70

LONG_FUNCTIONS: Final = {
    "src/ottla/records/codec.py": {"iter_record_tuples", "scan_records"},
    "src/ottla/records/bulk.py": {"decode_all", "check_numbered"},
    "src/ottla/storage/loading/recovery.py": {"_recover_piece"},
    "src/ottla/storage/compaction/keys.py": {"scan_keys"},
    "src/ottla/storage/appending/append.py": {"append_as_leader"},
    "src/ottla/connect/configs/shared_keys.py": {"common_keys"},
    "src/ottla/cli/nodes/up.py": {"up"},
    "src/ottla/cli/records/consume.py": {"consume"},
}
"""Loops over records and appends, where a call for each record would take as long as the rest. Then a table
of keys, and commands, whose parameters are their documentation."""

SAYS_NOTHING: Final = frozenset(
    ("base", "common", "helper", "helpers", "impl", "manager", "misc", "tools", "util", "utils")
)
"""Names that tell nobody what is in a module."""


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None, "it was parsed from text"
    return node.end_lineno - node.lineno + 1


def test_no_module_is_too_long() -> None:
    lengths = {path.as_posix(): len((ROOT / path).read_text().splitlines()) for path in modules()}
    too_long = {path: lines for path, lines in lengths.items() if lines > MODULE_LINES_MAX}
    assert too_long == {}


def test_no_function_is_too_long_without_a_reason() -> None:
    found: dict[str, set[str]] = {}
    for path, tree in modules().items():
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > FUNCTION_LINES_MAX:
                found.setdefault(path.as_posix(), set()).add(node.name)
    assert found == LONG_FUNCTIONS


def test_modules_have_names_that_say_what_is_in_them() -> None:
    assert [path.as_posix() for path in modules() if Path(path).stem in SAYS_NOTHING] == []

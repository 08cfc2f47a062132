"""The examples show what users may rely on: they import nothing of Ottla but what is written for them."""

import ast
from pathlib import Path

import pytest
from tests.tidy.source import ROOT

FOR_USERS = {"ottla", "ottla.errors", "ottla.pipelines", "ottla.pipelines.status", "ottla.testing.node"}
EXAMPLES = sorted(ROOT.glob("examples/**/*.py"))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
    return {module for module in found if module.partition(".")[0] == "ottla"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_imports_what_is_for_users(path: Path) -> None:
    assert imported(path) <= FOR_USERS


def test_the_examples_do_import_ottla() -> None:
    assert set().union(*map(imported, EXAMPLES)) == FOR_USERS

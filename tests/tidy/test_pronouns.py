"""Where there is a noun, a name is a noun: not `one`, `it` or `where`. In more and more of the tree."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.tidy.source import modules, nodes

PRONOUNS: Final = frozenset(("it", "one", "where"))
NAMED: Final = (
    "broker/authorization",
    "broker/controller",
    "broker/fetch",
    "broker/quorum",
    "broker/serving",
    "cli/explain",
    "cli/reference",
    "client/registry",
    "connect/configs",
    "connect/converters",
    "connect/data",
    "connect/herding",
    "connect/transforms",
    "registry/checking",
    "registry/deciding",
    "registry/leading",
    "registry/serving",
    "storage/appending",
    "storage/indexes",
    "storage/producers",
    "storage/syncing",
    "wire/coordinator_records",
    "wire/messages",
    "wire/metadata_records",
)
"""Rooms that keep to it. The list may only become longer."""


def pronouns_in(tree: ast.AST) -> Iterator[str]:
    """Give each variable or parameter that a module calls by a pronoun."""
    for node in nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in PRONOUNS:
            yield f"{node.id} in line {node.lineno}"
        elif isinstance(node, ast.arg) and node.arg in PRONOUNS:
            yield f"{node.arg} in line {node.lineno}"


@pytest.mark.parametrize("room", NAMED)
def test_names_are_nouns(room: str) -> None:
    files = {path: tree for path, tree in modules().items() if Path("src/ottla", room) in path.parents}
    assert files, "there is such a room"
    found = {path.as_posix(): list(pronouns_in(tree)) for path, tree in files.items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_pronoun_is_found() -> None:
    tree = ast.parse("def told(it): return [one for one in it]")
    assert sorted(pronouns_in(tree)) == ["it in line 1", "one in line 1"]

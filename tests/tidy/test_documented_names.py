"""The pages on the internals and the decisions name only what exists.

What is looked at stands in backticks and has the form of a name: `name`, `name()`, `Class.method`,
`module.name` or `module.py`. That it is also used is for `test_dead_code` to see.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from tests.tidy.source import ROOT, WORD, module_name, modules, names_used, nodes

PAGES = sorted([*ROOT.glob("docs/internals/*.md"), *ROOT.glob("docs/decisions/*.md")])
FILES_LOOKED_FOR_IN = ("src", "tests", "benchmarks", "examples")

# Names of Apache Kafka, of operating systems and of other projects.
FOREIGN = {
    "CompleteAbort",
    "DumpLogSegments",
    "PrepareAbort",
    "cachestat",
    "grpcio",
    "io_uring",
    "python3",
    "rebootstrap",
    "setup.py",
    "trustme",
    "uuid.UUID",
}
# An extra of the package.
OURS = {"dev"}

_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\(\))?")


def names_in(page: str) -> set[str]:
    """Return all that looks like one of our names."""
    spans = _SPAN.findall(_BLOCK.sub("", page))
    return {span.removesuffix("()") for span in spans if _NAME.fullmatch(span)}


def _names_bound(tree: ast.AST) -> set[str]:
    """Return all names that are defined, assigned or taken as a parameter."""
    bound: set[str] = set()
    for node in nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.keyword(arg=str() as name):
                bound.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound |= {*name.split("."), other or name}
            case ast.ImportFrom(module=str() as module):
                bound |= set(module.split("."))
    return bound


@cache
def _known_words() -> frozenset[str]:
    """Return all names that the code of the source has: not those that only its comments speak of."""
    known: set[str] = set()
    for path, tree in modules().items():
        known |= _names_bound(tree) | set(names_used(tree)) | set(module_name(path).split("."))
    apis = (name.removesuffix("Request") for name in known if name.endswith("Request"))
    return frozenset((*known, *apis))


@cache
def _members() -> dict[str, set[str]]:
    """Return what each class and each module has, by its short name."""
    members: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    for path, tree in modules().items():
        members[module_name(path).rpartition(".")[2]] |= _names_bound(tree)
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                members[node.name] |= _names_bound(node)
                bases[node.name] |= {word for base in node.bases for word in WORD.findall(ast.unparse(base))}
    for name in bases:
        todo, seen = list(bases[name]), {name}
        while todo:
            base = todo.pop()
            if base not in seen:
                seen.add(base)
                members[name] |= members.get(base, set())
                todo += bases.get(base, ())
    return members


@cache
def _file_names() -> frozenset[str]:
    within = (path.name for folder in FILES_LOOKED_FOR_IN for path in (ROOT / folder).rglob("*"))
    return frozenset((*within, *(path.name for path in ROOT.iterdir())))


def exists(name: str) -> bool:
    """Say whether the project has something of that name."""
    if name in FOREIGN or name in OURS or name in _file_names():
        return True
    if name.endswith(".py"):
        return False
    owner, _, member = name.rpartition(".")
    owner = owner.rpartition(".")[2]
    if owner[:1].isupper() and owner in _members():
        return member in _members()[owner]
    return all(word in _known_words() for word in name.split("."))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_only_what_exists(page: Path) -> None:
    assert sorted(name for name in names_in(page.read_text()) if not exists(name)) == []


def test_what_does_not_exist_is_found() -> None:
    page = "`Log.flush`, `Log.flush_twice()`, `no_module.py`, `no_name`, `a + b`\n```\n`block`\n```\n"
    assert {name for name in names_in(page) if not exists(name)} == {
        "Log.flush_twice",
        "no_module.py",
        "no_name",
    }


def test_every_foreign_name_is_needed() -> None:
    named = set().union(*(names_in(page.read_text()) for page in PAGES))
    assert named >= FOREIGN | OURS
    assert not FOREIGN & _known_words()

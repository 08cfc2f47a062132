"""Every function, class, constant and module of the source is used by the source.

What is written for users must be named by the docs or the examples, and what is in `ottla.testing` by a test.

Uses are found by name, so a dead function is not seen if something else has its name and is alive. That is
the price of a test that need not know each protocol and callback.
"""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.tidy.source import ROOT, WORD, Named, all_names_used, module_name, modules, names_used, uses_in

FOR_USERS = ("client", "testing", "pipelines")
# These decorators leave it to others to call what they decorate. All others register it somewhere.
PLAIN_DECORATORS = {
    "property",
    "staticmethod",
    "classmethod",
    "cache",
    "dataclass",
    "final",
    "abstractmethod",
}
# The handlers of requests are found by the names of their files.
APIS = "ottla.broker.apis."
# A package imports all modules in it, by their file names.
PACKAGES_LISTED = {
    "ottla.broker.authorization",
    "ottla.wire.messages",
    "ottla.quorum.controller",
    "ottla.quorum.controller.brokers",
    "ottla.quorum.controller.partitions",
    "ottla.quorum.controller.security",
    "ottla.quorum.controller.topics",
}
# Kafka's schemas are all declared, also those that nothing encodes with: see the docstring of `ottla.wire`.
SHARE_STATE_RECORDS = "ottla.wire.coordinator_records.framing.SHARE_STATE_RECORDS"
SCHEMAS_FOR_COMPLETENESS = {
    "ottla.wire.headers",
    "ottla.wire.producer_snapshot",
    "ottla.wire.quorum_state",
    "ottla.wire.remote_log_metadata",
}
# It names what a module imports for the sake of its being imported.
PRELOADED = "ottla.pipelines.spark.daemon._PRELOADED"


# A notebook shows what this returns.
CALLED_BY_NOTEBOOKS = "_repr_html_"


class Definition(NamedTuple):
    """Something that has a name in a module."""

    path: Path
    name: str
    class_name: str | None
    node: ast.stmt

    @property
    def full_name(self) -> str:
        within = "" if self.class_name is None else f"{self.class_name}."
        return f"{module_name(self.path)}.{within}{self.name}"


def _definitions() -> Iterator[Definition]:
    for path, tree in modules().items():
        yield from _definitions_in(path, tree, None)


def _definitions_in(path: Path, within: ast.Module | Named, class_name: str | None) -> Iterator[Definition]:
    for node in within.body:
        if isinstance(node, Named):
            yield Definition(path, node.name, class_name, node)
            if isinstance(node, ast.ClassDef):
                yield from _definitions_in(path, node, node.name)
        elif class_name is None and isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield Definition(path, target.id, None, node)


def _is_used(definition: Definition) -> bool:
    name, node = definition.name, definition.node
    uses = all_names_used()[name]
    # A function that nothing but itself calls is dead, too. It is looked into only if need be.
    return uses > uses_in(definition.path)[name] or (
        uses > (names_used(node)[name] if isinstance(node, Named) else 0)
    )


def _is_called_from_outside(definition: Definition) -> bool:
    """Say whether Python, a decorator, pytest or a class from elsewhere sees to its being called."""
    name, node = definition.name, definition.node
    if (name.startswith("__") and name.endswith("__")) or name == CALLED_BY_NOTEBOOKS:
        return True
    decorators = node.decorator_list if isinstance(node, Named) else []
    if any(_name_of(decorator) not in PLAIN_DECORATORS for decorator in decorators):
        return True
    if name.startswith("pytest_") and module_name(definition.path) == "ottla.testing.plugin":
        return True
    return definition.class_name is not None and _overrides_foreign_method(definition)


def _name_of(decorator: ast.expr) -> str:
    return ast.unparse(decorator).partition("(")[0].rpartition(".")[2]


def _overrides_foreign_method(method: Definition) -> bool:
    """Say whether a class that is not ours, which the method's class derives from, has such a method."""
    assert method.class_name is not None
    cls = getattr(import_module(module_name(method.path)), method.class_name, None)
    bases = cls.__mro__[1:] if isinstance(cls, type) else ()
    return any(method.name in vars(base) for base in bases if not base.__module__.startswith("ottla"))


def _is_for_users(definition: Definition) -> bool:
    package = definition.path.parts[2]
    if package not in FOR_USERS or definition.name.startswith("_"):
        return False
    return definition.name in (_words_of_tests() if package == "testing" else _words_for_users())


@cache
def _words_for_users() -> frozenset[str]:
    pages = (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.py"))
    return frozenset(word for page in pages for word in WORD.findall(page.read_text()))


@cache
def _words_of_tests() -> frozenset[str]:
    return frozenset(word for page in ROOT.glob("tests/**/*.py") for word in WORD.findall(page.read_text()))


def test_everything_that_has_a_name_is_used() -> None:
    dead = {
        definition.full_name
        for definition in _definitions()
        if module_name(definition.path) not in SCHEMAS_FOR_COMPLETENESS
        and not _is_used(definition)
        and not _is_called_from_outside(definition)
        and not _is_for_users(definition)
    }
    assert dead - {SHARE_STATE_RECORDS, PRELOADED} == set()


def test_every_module_is_imported_or_run() -> None:
    imported = {name for tree in modules().values() for name in _modules_named_in(tree)}
    elsewhere = (ROOT / "pyproject.toml").read_text() + (ROOT / "Makefile").read_text()
    tests = [path.read_text() for path in ROOT.glob("tests/**/*.py")]
    dead = {
        name
        for path in modules()
        for name in (module_name(path),)
        if path.stem not in ("__init__", "__main__")
        and name not in imported
        and name not in elsewhere
        and not name.startswith(APIS)
        and name.rpartition(".")[0] not in PACKAGES_LISTED
        and not (path.parts[2] == "testing" and any(name in test for test in tests))
    }
    assert dead == SCHEMAS_FOR_COMPLETENESS


def _modules_named_in(tree: ast.Module) -> Iterator[str]:
    """Return all that may be the name of a module, also in strings: some are imported late."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str() as package, names=aliases):
                yield package
                yield from (f"{package}.{alias.name}" for alias in aliases)
            case ast.Constant(value=str() as text):
                yield text

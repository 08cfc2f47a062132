"""Nothing in the source is there for nobody: every function, class and module is named somewhere else in it.

It goes by names, so that a name which two things share hides one that is dead. That is the price of a test
that needs no list of exceptions for each protocol, callback and property.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
# What users call need not be called by us. It is enough that the docs or the examples name it.
FOR_USERS = ("client", "testing", "pipelines")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Definition:
    """A function, class or method, and where it is."""

    def __init__(self, path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.path = path
        self.node = node

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.node.lineno} {self.node.name}"

    @property
    def is_for_users(self) -> bool:
        return self.path.relative_to(SOURCE).parts[1] in FOR_USERS

    @property
    def is_found_otherwise(self) -> bool:
        """Say whether it is not called by its name: decorators register it, or Python itself calls it."""
        is_special = self.node.name.startswith("__") and self.node.name.endswith("__")
        return is_special or any(not _is_plain(decorator) for decorator in self.node.decorator_list)


def _is_plain(decorator: ast.expr) -> bool:
    """Say whether a decorator leaves it to others to call what it decorates."""
    name = ast.unparse(decorator).partition("(")[0]
    plain = ("property", "staticmethod", "classmethod", "cache", "dataclass", "final", "abstractmethod")
    return name.rpartition(".")[2] in plain


@cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def _words_of_source() -> Counter[str]:
    """Count how often each name stands in the code, strings included, comments and docstrings not."""
    words: Counter[str] = Counter()
    for text in _sources().values():
        words.update(_WORD.findall(_without_prose(text)))
    return words


def _without_prose(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


@cache
def _words_for_users() -> frozenset[str]:
    pages = [
        *ROOT.glob("docs/**/*.md"),
        ROOT / "README.md",
        *ROOT.glob("examples/**/*.py"),
        ROOT / "pyproject.toml",
    ]
    return frozenset(word for page in pages for word in _WORD.findall(page.read_text()))


def _definitions() -> Iterator[Definition]:
    for path, text in _sources().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield Definition(path, node)


def test_every_function_and_class_is_used() -> None:
    defined = Counter(definition.node.name for definition in _definitions())
    used = _words_of_source()
    dead = [
        str(definition)
        for definition in _definitions()
        if not definition.is_found_otherwise
        and used[definition.node.name] <= defined[definition.node.name]
        and not (definition.is_for_users and definition.node.name in _words_for_users())
    ]
    assert dead == []


def test_every_module_is_imported_or_run() -> None:
    code = "\n".join(_without_prose(text) for text in _sources().values())
    words = Counter(_WORD.findall(code))
    elsewhere = (ROOT / "pyproject.toml").read_text() + (ROOT / "Makefile").read_text()
    dead = [
        str(path.relative_to(ROOT))
        for path in _sources()
        if path.stem not in ("__init__", "__main__")
        and not words[path.stem]
        and path.stem not in elsewhere
        and not _is_found_by_name(path)
    ]
    assert dead == []


def _is_found_by_name(path: Path) -> bool:
    """Say whether a package imports its modules by their names: handlers, messages, configs."""
    return path.parent.name in ("apis", "messages", "commands") or path.parent.parent.name == "configs"

"""The source as the tests of tidiness look at it: its modules, and the names that its code uses."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def modules() -> dict[Path, ast.Module]:
    """Return the syntax trees of all modules, by their path within the repository."""
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree. To walk through all trees takes seconds, and many tests do."""
    return tuple(ast.walk(tree))


def module_name(path: Path) -> str:
    """Return the name that a module is imported by."""
    parts = path.with_suffix("").relative_to("src").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names_used(tree: ast.AST) -> Counter[str]:
    """Count how often each name is used in code, and in strings that are not docstrings.

    A definition, a parameter and an assignment are no use. Neither is an import: the linter refuses those
    of which nothing comes.
    """
    used: Counter[str] = Counter()
    for text in texts_of(tree):
        used.update(WORD.findall(text))
    for node in nodes(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                used[name] += 1
            case ast.ImportFrom(names=aliases):
                used.update(alias.name for alias in aliases if alias.asname not in (None, alias.name))
    return used


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Return the strings of the code, without docstrings."""
    docs = set(map(id, _docstrings(tree)))
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def comments_of(source: str) -> Iterator[str]:
    """Return the comments of a module. Those on consecutive lines are one."""
    lines: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != last + 1:
                yield " ".join(lines)
                lines = []
            lines.append(token.string.lstrip("# "))
            last = token.start[0]
    yield " ".join(lines)


def docstrings_of(tree: ast.AST) -> Iterator[str]:
    """Return the docstrings of a module, also those of attributes and constants."""
    return (str(part.value) for part in _docstrings(tree))


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in nodes(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                yield part.value


@cache
def uses_in(path: Path) -> Counter[str]:
    """Count the uses of each name in a module."""
    return names_used(modules()[path])


@cache
def all_names_used() -> Counter[str]:
    """Count the uses of each name in the whole source."""
    used: Counter[str] = Counter()
    for path in modules():
        used.update(uses_in(path))
    return used

"""Modules of Ottla that are imported with something added: probes that note what is executed, or faults.

A fault does not replace the source: both the source and the fault are compiled, and a switch tells which
holds. So one process imports source and tests once, and a fork for each fault turns one switch. Nothing is
written to the tree, and the positions of all code stay those of the file.
"""

import ast
import copy
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from tests.mutants.faults import SOURCE, Fault, Sites, named

CACHE: Final = Path("target/mutants")
_HITS: Final = "__hits__"
_SWITCH: Final = "__planted__"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that other processes read: they find all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_bytes(content)
    new.replace(path)


class Switch:
    """Tells which of the planted faults holds now, and whether it was reached."""

    def __init__(self) -> None:
        self.active = ""
        self.reached = False

    def __call__(self, name: str) -> bool:
        """Say whether a fault holds: asked at the place where it is planted."""
        if name != self.active:
            return False
        self.reached = True
        return True


# --- probes ---------------------------------------------------------------------------------------


def statements_of(tree: ast.Module) -> list[tuple[str, int, ast.stmt]]:
    """Return the statements of all functions, with their function's name and their number in it."""
    found: list[tuple[str, int, ast.stmt]] = []

    def walk(node: ast.AST, names: tuple[str, ...], numbers: list[int] | None) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and numbers is not None:
                found.append((".".join(names), numbers[0], child))
                numbers[0] += 1
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                walk(child, (*names, child.name), [0])
            elif isinstance(child, ast.ClassDef):
                walk(child, (*names, child.name), numbers)
            else:
                walk(child, names, numbers)

    walk(tree, (), None)
    return found


def probed(source: bytes, path: str) -> tuple[CodeType, int]:
    """Compile a module with a probe before each statement of a function. Returns how many they are, too."""
    key = hashlib.sha256(source + path.encode() + sys.version.encode()).hexdigest()[:24]
    kept = CACHE / "probed" / key
    if kept.exists():
        count, code = marshal.loads(kept.read_bytes())
        return code, count
    tree = ast.parse(source, path)
    numbers = {id(statement): number for number, (_, _, statement) in enumerate(statements_of(tree))}
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and any(id(each) in numbers for each in body):
                setattr(node, field, _with_probes(body, numbers))
    code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    write_whole(kept, marshal.dumps((len(numbers), code)))
    return code, len(numbers)


def _with_probes(body: list[ast.stmt], numbers: dict[int, int]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and id(statement) in numbers:
            target = ast.Subscript(
                ast.Name(_HITS, ast.Load()), ast.Constant(numbers[id(statement)]), ast.Store()
            )
            probe = ast.Assign([target], ast.Constant(1))
            result.append(ast.copy_location(probe, statement))
            for node in ast.walk(probe):
                ast.copy_location(node, statement)
        result.append(statement)
    return result


# --- faults ---------------------------------------------------------------------------------------


class _Planter(ast.NodeTransformer):
    def __init__(self, planted: dict[int, list[tuple[str, ast.expr | None]]]) -> None:
        self._planted = planted

    def visit(self, node: ast.AST) -> ast.AST:
        planted = self._planted.get(id(node), ())
        result: ast.AST = self.generic_visit(node)
        for name, replacement in planted:
            asked = ast.Call(ast.Name(_SWITCH, ast.Load()), [ast.Constant(name)], [])
            if replacement is not None:
                assert isinstance(result, ast.expr)
                result = ast.copy_location(ast.IfExp(asked, replacement, result), node)
            else:
                assert isinstance(result, ast.stmt)
                result = ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), asked), [result], []), node)
        return result


def planted(source: bytes, path: str, file: str, faults: Sequence[Fault]) -> CodeType:
    """Compile a module with faults beside the source, each behind the switch."""
    tree = ast.parse(source, path)
    sites = Sites(tree).found
    wanted = {fault.name for fault in faults}
    places: dict[int, list[tuple[str, ast.expr | None]]] = {}
    functions = {fault.function for fault in faults}
    for site in sites:
        if site.function in functions and (name := named(file, sites, site).name) in wanted:
            wanted.discard(name)
            places.setdefault(id(site.node), []).append((name, copy.deepcopy(site.replacement)))
    assert not wanted, f"{file} is not the source that {wanted} were chosen for"
    _Planter(places).visit(tree)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


# --- importing ------------------------------------------------------------------------------------


class Modules(importlib.abc.MetaPathFinder):
    """Imports modules of Ottla with probes, with faults, or as they are."""

    def __init__(self, faults: Mapping[str, Sequence[Fault]] | None = None) -> None:
        self.switch = Switch()
        self.hits: dict[str, bytearray] = {}
        self._faults = faults
        self._root = SOURCE.resolve()

    def install(self) -> None:
        """Import from now on. Nothing of Ottla may have been imported before."""
        assert "ottla" not in sys.modules, "what is imported already would stay as it is"
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how a module is imported, and None for what is imported as always."""
        package, *names = fullname.split(".")
        if package != "ottla":
            return None
        found = self._root.joinpath(*names)
        found = found / "__init__.py" if found.is_dir() else found.with_suffix(".py")
        file = str(found.relative_to(self._root))
        if not found.exists() or (self._faults is not None and file not in self._faults):
            return None
        loader = _Loader(fullname, str(found), file, self)
        return importlib.util.spec_from_file_location(fullname, found, loader=loader)

    def code_of(self, file: str, path: str) -> CodeType:
        """Return the code of a module, and note its probes."""
        source = Path(path).read_bytes()
        if self._faults is not None:
            return planted(source, path, file, self._faults[file])
        code, count = probed(source, path)
        self.hits[file] = bytearray(count)
        return code


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, file: str, modules: Modules) -> None:
        super().__init__(fullname, path)
        self._file = file
        self._modules = modules

    def get_code(self, fullname: str) -> CodeType:
        return self._modules.code_of(self._file, self.path)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        module.__dict__[_SWITCH] = self._modules.switch
        module.__dict__[_HITS] = self._modules.hits.get(self._file)
        exec(code, module.__dict__)

"""Where a small fault can be planted in a module, and how it looks in the syntax tree.

A fault is one of: a comparison that includes its bound or not, or is turned round; a plus for a minus; an
`and` for an `or`; a condition negated; a number one off; a flag turned; two arguments swapped; a statement
left out.

No fault is planted in what no test should have to notice: logging, docstrings, `__repr__`, assertions, what
an error says, and what only type checkers see.
"""

import ast
import copy
import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCE: Final = Path("src/ottla")
_LOGGERS: Final = re.compile(r"^_?(log|logger|logging|warnings)$", re.IGNORECASE)
_REFERENCES: Final = {"__main__.py", "reference.py"}
_OTHER_COMPARISON: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_SHOWN: Final = 100
"""How much of a changed text a result shows."""


@dataclass(frozen=True, eq=False)
class Site:
    """One fault that can be planted."""

    function: str
    """The qualified name of what it is in: empty for the module itself."""
    kind: str
    statement: ast.stmt
    node: ast.expr | ast.stmt
    replacement: ast.expr | None
    """What stands in the node's place: None where the statement is left out."""
    at_import: bool
    """Whether an import executes it, because it is outside of all functions."""

    @property
    def before(self) -> str:
        """What is changed, as text."""
        return ast.unparse(self.node)

    @property
    def after(self) -> str:
        """What it becomes."""
        return "" if self.replacement is None else ast.unparse(self.replacement)


@dataclass(frozen=True)
class Fault:
    """One fault that was chosen, as results and the list of judged faults know it."""

    file: str
    """Below src/ottla."""
    line: int
    function: str
    kind: str
    before: str
    after: str
    at_import: bool
    name: str
    """The same for the same change of the same function, wherever that stands in its file."""

    @property
    def change(self) -> str:
        """What is changed, in one line."""
        before, after = (text.replace("\n", " ")[:_SHOWN] for text in (self.before, self.after))
        return f"{self.kind}: {before}" + (f" -> {after}" if after else "")


class Sites(ast.NodeVisitor):
    """All faults that can be planted in one module, in the order of its text."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Site] = []
        self._statement: ast.stmt = tree.body[0] if tree.body else ast.Pass()
        self._names: list[str] = []
        self._functions = 0
        self._in_init = False
        self._last_of_function: set[int] = set()
        self.visit(tree)

    def _add(self, node: ast.expr | ast.stmt, kind: str, replacement: ast.expr | None) -> None:
        function = ".".join(self._names)
        self.found.append(Site(function, kind, self._statement, node, replacement, not self._functions))

    def _negate(self, test: ast.expr) -> None:
        self._add(test, "condition", ast.UnaryOp(ast.Not(), copy.deepcopy(test)))

    # Statements

    def visit(self, node: ast.AST) -> None:
        """Visit a node, and know the statement that it is in."""
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = outer

    def _visit_all(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self.visit(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = " ".join(map(ast.unparse, node.decorator_list))
        if node.name in {"__repr__", "__str__"} or "overload" in decorators or "abstract" in decorators:
            return
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._last_of_function.add(id(node.body[-1]))
        outer, self._in_init = self._in_init, node.name == "__init__"
        self._functions += 1
        self._names.append(node.name)
        self._visit_all(node.body)
        self._names.pop()
        self._functions -= 1
        self._in_init = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function."""
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """A coroutine."""
        self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A protocol has no code of its own."""
        if not any("Protocol" in ast.unparse(base) for base in node.bases):
            self._names.append(node.name)
            self._visit_all(node.body)
            self._names.pop()

    def visit_If(self, node: ast.If) -> None:
        """What only type checkers see is left out."""
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self._negate(node.test)
            self.visit(node.test)
            self._visit_all(node.body)
        self._visit_all(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        """`while True` has no condition."""
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
            self.visit(node.test)
        self._visit_all(node.body)
        self._visit_all(node.orelse)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call whose result is not used may be left out."""
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Constant) or _is_logging(call):
            return
        if isinstance(call, ast.Call):
            self._add(node, "removed call", None)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Without the attributes of its `__init__` an object fails at once, and nothing is learned."""
        if any(isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets):
            return
        if (
            all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets)
            and not self._in_init
        ):
            self._add(node, "removed assignment", None)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The annotation is left alone."""
        if node.value is not None:
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """What is added is subtracted, or not added at all."""
        if isinstance(node.target, ast.Attribute | ast.Subscript):
            self._add(node, "removed assignment", None)
        if isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node.value):
            negated = ast.UnaryOp(ast.USub(), copy.deepcopy(node.value))
            self._add(node.value, "arithmetic", negated)
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        """What is deleted stays."""
        self._add(node, "removed del", None)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What an error says is left alone."""
        self._add(node, "removed raise", None)

    def visit_Break(self, node: ast.Break) -> None:
        """The loop goes on."""
        self._add(node, "removed break", None)

    def visit_Continue(self, node: ast.Continue) -> None:
        """The rest of the loop's body follows."""
        self._add(node, "removed continue", None)

    def visit_Return(self, node: ast.Return) -> None:
        """The last statement of a function stays: without it most callers fail at once."""
        if id(node) not in self._last_of_function:
            self._add(node, "removed return", None)
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion states what holds anyway."""

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        """Each operator of a chain is one place."""
        for index, operator in enumerate(node.ops):
            replacement = copy.deepcopy(node)
            replacement.ops[index] = _OTHER_COMPARISON[type(operator)]()
            self._add(node, "comparison", replacement)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Texts cannot be subtracted."""
        if isinstance(node.op, ast.Add | ast.Sub) and not (_is_text(node.left) or _is_text(node.right)):
            replacement = copy.deepcopy(node)
            replacement.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            self._add(node, "arithmetic", replacement)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` for `or`, and `or` for `and`."""
        replacement = copy.deepcopy(node)
        replacement.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, "boolean", replacement)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The condition is negated."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """The condition is negated."""
        self.visit(node.iter)
        for test in node.ifs:
            self._negate(test)
            self.visit(test)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A number is one off, a flag is turned. Texts are left alone."""
        if isinstance(node.value, bool):
            self._add(node, "flag", ast.Constant(not node.value))
        elif isinstance(node.value, int):
            self._add(node, "constant", ast.Constant(node.value + 1))
            self._add(node, "constant", ast.Constant(node.value - 1))

    def visit_Call(self, node: ast.Call) -> None:
        """Two arguments that are alike may be swapped."""
        if _is_logging(node):
            return
        for index, (left, right) in enumerate(zip(node.args, node.args[1:], strict=False)):
            alike = type(left) is type(right) and isinstance(left, ast.Name | ast.Attribute | ast.Constant)
            if (
                alike
                and ast.dump(left) != ast.dump(right)
                and ast.unparse(node.func) not in {"isinstance", "cast"}
            ):
                replacement = copy.deepcopy(node)
                replacement.args[index : index + 2] = [copy.deepcopy(right), copy.deepcopy(left)]
                self._add(node, "arguments", replacement)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text is left alone."""

    def visit_match_case(self, node: ast.match_case) -> None:
        """A pattern is left alone."""
        if node.guard is not None:
            self._negate(node.guard)
            self.visit(node.guard)
        self._visit_all(node.body)


def _is_logging(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func
    while isinstance(name, ast.Attribute):
        name = name.value
        if isinstance(name, ast.Attribute) and _LOGGERS.match(name.attr):
            return True
    return isinstance(name, ast.Name) and _LOGGERS.match(name.id) is not None


def _is_text(node: ast.expr) -> bool:
    """Say whether this can be told to be no number."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


# --- choosing -------------------------------------------------------------------------------------


def modules_of(wanted: str) -> list[str]:
    """Return the modules of a package or the one of a path, below src/ottla."""
    wanted = wanted.removeprefix(f"{SOURCE}/").strip("/")
    root = SOURCE / wanted
    if root.is_dir():
        found = (path for path in root.rglob("*.py") if path.name not in _REFERENCES)
        return sorted(str(path.relative_to(SOURCE)) for path in found)
    path = root if root.suffix == ".py" else root.with_suffix(".py")
    if not path.exists():
        raise SystemExit(f"there is neither a package {root} nor a module {path}")
    return [str(path.relative_to(SOURCE))]


def parsed(file: str) -> ast.Module:
    """Return the syntax tree of a module below src/ottla."""
    return ast.parse((SOURCE / file).read_bytes())


def named(file: str, sites: list[Site], site: Site) -> Fault:
    """Return the fault at a site, with a name that lasts while its function does not change there."""
    text = f"{file}|{site.function}|{site.kind}|{site.before}|{site.after}"
    alike = [
        each
        for each in sites
        if (each.function, each.kind) == (site.function, site.kind)
        and (each.before, each.after) == (site.before, site.after)
    ]
    name = hashlib.sha256(f"{text}|{alike.index(site)}".encode()).hexdigest()[:8]
    line = site.node.lineno
    return Fault(file, line, site.function, site.kind, site.before, site.after, site.at_import, name)


def chosen(files: list[str], seed: str, lines: dict[str, set[int]] | None = None) -> Iterator[Fault]:
    """Return faults in an order of chance: each statement at most once, so a module weighs what it holds.

    With `lines`, only faults on these lines of a file.
    """
    chance = random.Random(seed)
    found: dict[str, list[Site]] = {}
    statements: list[tuple[str, list[Site]]] = []
    for file in files:
        found[file] = Sites(parsed(file)).found
        by_statement: dict[int, list[Site]] = defaultdict(list)
        for site in found[file]:
            if lines is None or not lines[file].isdisjoint(range(site.node.lineno, _last_line(site) + 1)):
                by_statement[id(site.statement)].append(site)
        statements += [(file, sites) for sites in by_statement.values()]
    chance.shuffle(statements)
    for file, sites in statements:
        kind = chance.choice(sorted({site.kind for site in sites}))
        yield named(file, found[file], chance.choice([site for site in sites if site.kind == kind]))


def _last_line(site: Site) -> int:
    """A condition or an operand may take several lines: any of them may be the changed one."""
    return site.node.end_lineno or site.node.lineno

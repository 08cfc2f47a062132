"""What `make test` leaves out has a quick guard: another test of the same promise, which it does run.

    @pytest.mark.thorough(guard="tests/golden/test_groups.py")
    @pytest.mark.thorough(guard="tests/cluster/test_replication.py::test_a_node_ends_and_comes_back")

A guard may be another case of the same test, if that one has a case without the mark.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEVER_QUICK = ("thorough", "live_oracle")


def marks_of(tree: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield each use of a mark: with a call around it, if there is one."""
    called = {node.func: node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr == name
            and ast.unparse(node).startswith("pytest.mark.")
        ):
            yield called.get(node, node)


def guards() -> list[tuple[str, str]]:
    """Return each file with thorough tests, with the guards that it names."""
    found = set()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        if "mark.thorough" not in text:
            continue
        for mark in marks_of(ast.parse(text), "thorough"):
            given = mark.keywords if isinstance(mark, ast.Call) else []
            named = [word.value.value for word in given if isinstance(word.value, ast.Constant)]
            found.add((str(path.relative_to(ROOT)), str(named[0]) if named else ""))
    return sorted(found)


def is_never_quick(node: ast.AST) -> bool:
    return any(True for mark in NEVER_QUICK for _ in marks_of(node, mark))


def quick_tests(path: Path) -> set[str]:
    """Return the tests of a file that have no mark, or have one on some cases only."""
    tree = ast.parse(path.read_text())
    if any(
        isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets[0]) and is_never_quick(node)
        for node in tree.body
    ):
        return set()
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not any(
            ast.unparse(one).startswith(f"pytest.mark.{mark}")
            for one in node.decorator_list
            for mark in NEVER_QUICK
        )
    }


@pytest.mark.parametrize(("where", "guard"), guards())
def test_what_is_left_out_has_a_quick_guard(where: str, guard: str) -> None:
    assert guard, f"a mark in {where} names no guard"
    file, _, test = guard.partition("::")
    quick = quick_tests(ROOT / file)
    assert quick, f"{file} has no quick test"
    assert not test or test in quick, f"{test} is not a quick test of {file}"


def test_a_guard_that_is_marked_itself_is_none(tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(
        "import pytest\n"
        "@pytest.mark.thorough(guard='x')\ndef test_slow(): pass\n"
        "@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.thorough(guard='x'))])\n"
        "def test_partly(a): pass\n"
    )
    assert quick_tests(path) == {"test_partly"}
    assert len(list(marks_of(ast.parse(path.read_text()), "thorough"))) == 2

"""No test sleeps to let something happen: a pause stands in a loop, which a condition ends."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLEEPS = ("time.sleep", "asyncio.sleep", "sleep")
# Time is simulated there.
SIMULATED = ("tests/simulation/", "tests/golden/test_transaction_windows.py")
# It lets a loop run, and those who call it look again and again.
RUNS_A_LOOP = ("tests/support/share_member.py",)


def pauses_outside_of_loops(text: str) -> Iterator[int]:
    """Yield the lines of the pauses that no loop surrounds."""
    yield from _search(ast.parse(text), is_in_loop=False)


def _search(parent: ast.AST, is_in_loop: bool) -> Iterator[int]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _search(node, is_in_loop=False)
            continue
        if isinstance(node, ast.Call) and not is_in_loop and _waits(node):
            yield node.lineno
        yield from _search(node, is_in_loop or isinstance(node, ast.While | ast.For | ast.AsyncFor))


def _waits(call: ast.Call) -> bool:
    """Say whether it is a pause. One of no seconds only lets others run."""
    return ast.unparse(call.func) in SLEEPS and ast.unparse(call.args[0]) != "0"


def test_pauses_stand_in_loops() -> None:
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        if "sleep(" in text and not name.startswith((*SIMULATED, *RUNS_A_LOOP)):
            found += [f"{name}:{line}" for line in pauses_outside_of_loops(text)]
    assert found == [], "wait for a condition in a loop instead"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("time.sleep(1)", [1]),
        ("async def f():\n    await asyncio.sleep(0.1)", [2]),
        ("while True:\n    def f():\n        time.sleep(1)", [3]),
        ("while not done():\n    time.sleep(0.1)", []),
        ("for _ in range(9):\n    if done():\n        break\n    time.sleep(0.1)", []),
        ("await asyncio.sleep(0)", []),
    ],
)
def test_a_pause_without_a_loop_is_found(text: str, lines: list[int]) -> None:
    assert list(pauses_outside_of_loops(text)) == lines

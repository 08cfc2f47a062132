"""Says which seeds reach which planted bugs, without planting them.

    python -m tests.simulation.cluster.planted.reached 0 20 [FILE]

A seed can find a bug only if it comes to the line, and if the wrong line would do something else there. So
the right code is run with a probe at every bug: it counts how often the wrong line would have made a
difference. One run answers that for all bugs. A bug that no seed reaches asks for another fault or for other
work.
"""

import ast
import inspect
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any, Final, cast

from tests.simulation.cluster.planted.bugs import BUGS
from tests.simulation.cluster.run import run_seed
from tests.simulation.planting import Bug

REACHED: Counter[str] = Counter()
_NOBODY: Final = ast.Name("_passes", ast.Load())
Step = tuple[str, int | None]


def passes(name: str) -> bool:
    """Take note that a line was come to that would be another."""
    REACHED[name] += 1
    return True


def differs(name: str, right: Any, wrong: Callable[[], object]) -> Any:
    """Take note if an expression would have had another value."""
    try:
        is_other = wrong() != right
    except Exception:
        is_other = True
    if is_other:
        REACHED[name] += 1
    return right


@contextmanager
def probed(bugs: Mapping[str, Bug]) -> Iterator[None]:
    """Have a probe at each bug for the time being."""
    by_function: dict[FunctionType, list[str]] = {}
    for name, bug in bugs.items():
        by_function.setdefault(cast("FunctionType", bug.function), []).append(name)
    right_codes = {function: function.__code__ for function in by_function}
    for function, names in by_function.items():
        function.__globals__.update(_passes=passes, _differs=differs)
        function.__code__ = _compile_probes(function, {name: bugs[name] for name in names})
    try:
        yield
    finally:
        for function, code in right_codes.items():
            function.__code__ = code


def _compile_probes(function: FunctionType, bugs: Mapping[str, Bug]) -> Any:
    source = dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    tree = ast.parse(source)
    places = []
    for name, bug in bugs.items():
        wrong = ast.parse(source.replace(bug.right, bug.wrong))
        places.append((_find_difference(ast.parse(source), wrong), wrong, name))
    # The inner ones first, so that the outer ones are still where they were.
    for path, wrong, name in sorted(places, key=lambda one: -len(one[0])):
        _put_probe(tree, path, _at(wrong, path), name)
    made: dict[str, Any] = {}
    exec(
        compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec"),
        function.__globals__,
        made,
    )
    return made[function.__name__].__code__


def _find_difference(right: ast.AST, wrong: ast.AST) -> list[Step]:
    """Return the way from the root to the smallest statement or value that is another."""
    path: list[Step] = []
    best: list[Step] = []
    while True:
        steps = [*_different_children(right, wrong)]
        if len(steps) != 1:
            return best
        (field, index), right, wrong = steps[0]
        path.append((field, index))
        is_value = isinstance(right, ast.expr) and isinstance(wrong, ast.expr)
        is_value = is_value and not isinstance(getattr(right, "ctx", None), ast.Store)
        if is_value or isinstance(right, ast.stmt):
            best = list(path)


def _different_children(right: ast.AST, wrong: ast.AST) -> Iterator[tuple[Step, Any, Any]]:
    if type(right) is not type(wrong):
        yield ("", None), right, wrong
        yield ("", None), right, wrong
        return
    for field, value in ast.iter_fields(right):
        other = getattr(wrong, field)
        if isinstance(value, list):
            if len(value) != len(other):
                pairs = enumerate(zip(value, other, strict=False))
                first = next((n for n, pair in pairs if _is_other(*pair)), 0)
                if isinstance(value[first], ast.stmt):
                    yield (field, first), value[first], other[min(first, len(other) - 1)]
                else:
                    yield ("", None), value, other
                    yield ("", None), value, other
            else:
                for n, (a, b) in enumerate(zip(value, other, strict=True)):
                    if _is_other(a, b):
                        yield (field, n), a, b
        elif isinstance(value, ast.AST) and isinstance(other, ast.AST):
            if _is_other(value, other):
                yield (field, None), value, other
        elif value != other:
            yield ("", None), value, other
            yield ("", None), value, other


def _is_other(right: Any, wrong: Any) -> bool:
    return ast.dump(right) != ast.dump(wrong)


def _calls(tree: ast.AST) -> set[str]:
    return {ast.dump(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def _at(tree: ast.AST, path: list[Step]) -> Any:
    node: Any = tree
    for field, index in path:
        node = getattr(node, field)
        if index is not None:
            node = node[min(index, len(node) - 1)]
    return node


def _put_probe(tree: ast.AST, path: list[Step], wrong: Any, name: str) -> None:
    parent = _at(tree, path[:-1])
    field, index = path[-1]
    node = _at(tree, path)
    if isinstance(node, ast.stmt):
        test = ast.parse(f"_passes({name!r})", mode="eval").body
        put: ast.AST = ast.If(test=test, body=[node], orelse=[])
    else:
        call = ast.parse(f"_differs({name!r}, 0, lambda: 0)", mode="eval").body
        assert isinstance(call, ast.Call)
        assert isinstance(call.args[2], ast.Lambda)
        # A call may change something, so a new one is not made: to come to it is enough.
        call.args[1], call.args[2].body = node, wrong if _calls(wrong) <= _calls(node) else _NOBODY
        put = call
    if index is None:
        setattr(parent, field, put)
    else:
        getattr(parent, field)[index] = put


def main() -> None:
    """Run seeds, and print for each bug which of them reach it."""
    first, seeds = int(sys.argv[1]), int(sys.argv[2])
    found: dict[int, dict[str, int]] = {}
    with probed(BUGS):
        for seed in range(first, first + seeds):
            REACHED.clear()
            try:
                run_seed(seed)
            except Exception as error:
                print(f"seed {seed} fails: {error}", flush=True)
            found[seed] = dict(REACHED)
            if len(sys.argv) > 3:
                Path(sys.argv[3]).write_text(json.dumps(found))
    for name in BUGS:
        counts = {seed: reached[name] for seed, reached in found.items() if name in reached}
        print(f"{name:45} {len(counts):3} seeds: {dict(list(counts.items())[:12])}")


if __name__ == "__main__":
    main()

"""Bugs of one line, planted in the code to prove that a simulation finds such bugs.

A bug names a function, a line of it (or a part of one) and what to put in its place. Planting compiles the
function again with the wrong line; leaving the context puts the right one back. If the code has changed
so that the line is not found, planting fails and says so: the table of bugs has to follow the code.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast


class Bug(NamedTuple):
    """What a programmer may get wrong in one line."""

    what: str
    function: Callable[..., Any]
    right: str
    wrong: str


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """Have a bug in the code for the time being."""
    function = cast("FunctionType", bug.function)
    right_code = function.__code__
    function.__code__ = _compile_wrong(function, bug)
    try:
        yield
    finally:
        function.__code__ = right_code


def _compile_wrong(function: FunctionType, bug: Bug) -> CodeType:
    source = dedent(inspect.getsource(function))
    source = source[source.index("async def " if iscoroutinefunction(function) else "def ") :]
    found = source.count(bug.right)
    assert found == 1, f"{bug.right!r} is {found} times in {function.__qualname__}, not once"
    made: dict[str, Any] = {}
    code = compile(source.replace(bug.right, bug.wrong), function.__code__.co_filename, "exec")
    exec(code, function.__globals__, made)
    return cast("CodeType", made[function.__name__].__code__)

"""Answers that are worked out in turns with everybody else.

A handler or a guard that may take long is a generator. It yields None wherever others may be served, or a
`Deferred` to wait for, and returns the answer: `runtime.turns` says how that is driven. Where there is little
to do, the same generator runs to its end at once.
"""

from collections.abc import Generator
from typing import Any, Final, TypeAlias, TypeVar

from ottla.broker.deferred import Deferred

T = TypeVar("T")
InTurns: TypeAlias = Generator[Deferred[Any] | None, None, T]

AT_ONCE: Final = 250
"""How many entries are looked at between two places where others may be served: that takes 2 ms."""


def finish(work: InTurns[T]) -> T:
    """Run work to its end, and return what it returns. It must not wait for anything."""
    try:
        while True:
            awaited = next(work)
            assert awaited is None, "work that waits is served in turns"
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]

"""What clients take from the world beside their event loop: the wall clock and random numbers.

A simulation puts its own in their place, for all clients of the process.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Surroundings(NamedTuple):
    """A wall clock in nanoseconds since 1970, and random numbers."""

    time_ns: Callable[[], int]
    random: random.Random


# Of the system, so that processes that were forked from one another do not draw the same.
current = Surroundings(time.time_ns, random.SystemRandom())


def now_ms() -> int:
    """Return the wall-clock time since 1970 in milliseconds."""
    return current.time_ns() // 1_000_000


@contextmanager
def using(time_ns: Callable[[], int], chance: random.Random) -> Iterator[None]:
    """Use another clock and other random numbers for a while."""
    global current
    before, current = current, Surroundings(time_ns, chance)
    try:
        yield
    finally:
        current = before

"""What a finder reports."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.testing.guarantees.indexes import Indexes


class Anomaly(NamedTuple):
    """Something that happened, and where."""

    name: str
    key: int | None
    detail: str
    is_legal: bool = False
    """Whether a log service may do so. It is reported all the same: it says how much the run has mixed."""


Finder = Callable[[Indexes], Iterator[Anomaly]]

"""What an operation on many things gives back: for each a value or an error, so that one spoils no other."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from ottla.client.errors import ClientError

K = TypeVar("K")
V = TypeVar("V")


class Results(Mapping[K, V]):
    """A mapping that raises the error of an item when that item is looked at.

    `failed` has the errors without raising them, `succeeded` the values of what went well; iteration and
    length cover both.
    """

    def __init__(self, outcomes: Mapping[K, V | ClientError]) -> None:
        self.succeeded: dict[K, V] = {}
        self.failed: dict[K, ClientError] = {}
        self._order = tuple(outcomes)
        for key, outcome in outcomes.items():
            if isinstance(outcome, ClientError):
                self.failed[key] = outcome
            else:
                self.succeeded[key] = outcome

    def __getitem__(self, key: K) -> V:
        if key in self.failed:
            raise self.failed[key]
        return self.succeeded[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return f"Results(succeeded={self.succeeded!r}, failed={self.failed!r})"

    def check(self) -> dict[K, V]:
        """Return all values, or raise the first error there is."""
        for error in self.failed.values():
            raise error
        return self.succeeded

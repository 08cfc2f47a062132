"""What is acknowledged in one partition. It travels as runs of offsets, with one type or one for each."""

from collections.abc import Iterable

from ottla.client.share.record import AcknowledgeType


class Acknowledgements:
    """Types by offset, of records; and runs of offsets that nobody was handed."""

    def __init__(self) -> None:
        self.types: dict[int, AcknowledgeType] = {}
        self._unseen: list[tuple[int, int, AcknowledgeType]] = []

    def __bool__(self) -> bool:
        return bool(self.types or self._unseen)

    @property
    def renews(self) -> bool:
        """Say whether a lock is to be renewed, which not every version can."""
        return AcknowledgeType.RENEW in self.types.values()

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of records, in order."""
        return tuple(sorted(self.types))

    def add_unseen(self, runs: Iterable[tuple[int, int, AcknowledgeType]]) -> None:
        """Acknowledge offsets that were not handed over."""
        self._unseen.extend(runs)

    def merge(self, earlier: "Acknowledgements") -> None:
        """Take in what was not sent before. What was said since then counts."""
        self.types = {**earlier.types, **self.types}
        self._unseen = earlier._unseen + self._unseen

    def runs(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return runs of offsets without a hole, first and last, with one type or one for each offset."""
        parts = sorted([*((offset, offset, kind) for offset, kind in self.types.items()), *self._unseen])
        found: list[tuple[int, int, list[int]]] = []
        is_open = False
        for first, last, kind in parts:
            # A run of offsets that nobody was handed can be long: it stays one of its own.
            if is_open and first == last == found[-1][1] + 1:
                found[-1] = (found[-1][0], last, found[-1][2])
                found[-1][2].append(kind)
            else:
                found.append((first, last, [kind]))
                is_open = first == last
        return [
            (first, last, tuple(kinds if len(set(kinds)) > 1 else kinds[:1])) for first, last, kinds in found
        ]

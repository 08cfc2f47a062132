"""What a checker looks up in a history: who wrote a value, who read it, and what lies at each offset.

Built in one pass over the operations, plus one over the sends. A send counts for the log only if its
operation surely happened: it was acknowledged, or somebody has read one of its values. What was handed to a
reader counts always, however the reader's own operation ended: data that was shown must be safe.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ottla.testing.guarantees.history import EventType, Operation


class DenseLog(NamedTuple):
    """The values of a key in order, without the offsets that hold none (markers, aborted records)."""

    first_index: dict[int, int]
    last_index: dict[int, int]
    values: list[tuple[int, ...]]


class Indexes:
    """All look-ups."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.writer: dict[int, dict[int, Operation]] = defaultdict(dict)
        self.readers: dict[int, dict[int, list[Operation]]] = defaultdict(lambda: defaultdict(list))
        self.ok_read: dict[int, set[int]] = defaultdict(set)
        self.log: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._note_steps()
        self._committed = {one.number for one in operations if self._surely_happened(one)}
        self._note_sends()
        self.dense = {key: _dense(offsets) for key, offsets in self.log.items()}

    def is_committed(self, operation: Operation) -> bool:
        """Say whether an operation surely happened."""
        return operation.number in self._committed

    def _surely_happened(self, operation: Operation) -> bool:
        if operation.type is EventType.OK:
            return True
        return operation.type is EventType.INFO and any(
            sent.value in self.ok_read[sent.key] for sent in operation.sends
        )

    def index_of(self, key: int, value: int) -> int | None:
        """Return the place of a value among the values of its key."""
        dense = self.dense.get(key)
        return None if dense is None else dense.first_index.get(value)

    def _note_steps(self) -> None:
        for operation in self.operations:
            for sent in operation.sends:
                self.writer[sent.key][sent.value] = operation
            for polled in operation.polls:
                for key, records in polled.records.items():
                    for offset, value in records:
                        self.log[key][offset].add(value)
                        self.readers[key][value].append(operation)
                        if operation.type is EventType.OK:
                            self.ok_read[key].add(value)

    def _note_sends(self) -> None:
        for operation in self.operations:
            if self.is_committed(operation):
                for sent in operation.sends:
                    if sent.offset is not None:
                        self.log[sent.key][sent.offset].add(sent.value)


def _dense(offsets: dict[int, set[int]]) -> DenseLog:
    first_index: dict[int, int] = {}
    last_index: dict[int, int] = {}
    values: list[tuple[int, ...]] = []
    for index, offset in enumerate(sorted(offsets)):
        values.append(tuple(sorted(offsets[offset])))
        for value in offsets[offset]:
            first_index.setdefault(value, index)
            last_index[value] = index
    return DenseLog(first_index, last_index, values)

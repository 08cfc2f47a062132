"""What must not happen, one function for each kind, and what of it a log service is allowed to do.

Kafka lets writes of several transactions mix, so cycles of write-after-write alone (G0) and gaps between the
sends of one transaction are legal. A cycle of reads alone never is.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.testing.guarantees.cycles import components, shortest_cycle
from ottla.testing.guarantees.history import EventType, Operation, Polled, Sent
from ottla.testing.guarantees.indexes import Indexes


class Anomaly(NamedTuple):
    """Something that must not happen, and where it did."""

    name: str
    key: int | None
    detail: str


Finder = Callable[[Indexes], Iterator[Anomaly]]


def find_inconsistent_offsets(indexes: Indexes) -> Iterator[Anomaly]:
    """Two values at one offset."""
    for key, offsets in indexes.log.items():
        for offset, values in offsets.items():
            if len(values) > 1:
                yield Anomaly("inconsistent-offsets", key, f"offset {offset} holds {sorted(values)}")


def find_duplicates(indexes: Indexes) -> Iterator[Anomaly]:
    """One value at two offsets."""
    for key, dense in indexes.dense.items():
        for value, first in dense.first_index.items():
            if dense.last_index[value] != first:
                yield Anomaly("duplicate", key, f"value {value} is there more than once")


def find_aborted_reads(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that was read, and whose write surely did not happen."""
    for key, values in indexes.readers.items():
        for value, readers in values.items():
            writer = indexes.writer[key].get(value)
            if writer is not None and writer.type is EventType.FAIL:
                for reader in readers:
                    if reader.type is EventType.OK:
                        yield Anomaly(
                            "G1a", key, f"operation {reader.number} read {value} of failed {writer.number}"
                        )
                        break


def find_lost_writes(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that surely was written, that nobody saw, before one that somebody saw."""
    for key, dense in indexes.dense.items():
        seen = indexes.ok_read[key]
        bound = max((dense.first_index[value] for value in seen), default=-1)
        for value, last in dense.last_index.items():
            writer = indexes.writer[key].get(value)
            if last <= bound and value not in seen and writer is not None and indexes.is_committed(writer):
                yield Anomaly("lost-write", key, f"nobody read value {value} of operation {writer.number}")


def find_unseen(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that surely was written, and that not even the last readers saw, who read to the end."""
    if not any(one.function == "final" for one in indexes.operations):
        return
    lost = {(one.key, one.detail) for one in find_lost_writes(indexes)}
    for key, values in indexes.writer.items():
        for value, writer in values.items():
            if indexes.is_committed(writer) and value not in indexes.ok_read[key]:
                detail = f"nobody read value {value} of operation {writer.number}"
                if (key, detail) not in lost:
                    yield Anomaly("unseen", key, detail)


def find_precommitted_reads(indexes: Indexes) -> Iterator[Anomaly]:
    """A transaction that read what it wrote itself, before it was committed."""
    for operation in indexes.operations:
        sent = {(one.key, one.value) for one in operation.sends}
        for polled in operation.polls:
            for key, records in polled.records.items():
                for _, value in records:
                    if (key, value) in sent:
                        yield Anomaly(
                            "precommitted-read", key, f"operation {operation.number} read its own {value}"
                        )


def find_jumps_within_operations(indexes: Indexes) -> Iterator[Anomaly]:
    """Reads of one operation that leave something out, or go back."""
    for operation in indexes.operations:
        last: dict[int, int] = {}
        for polled in operation.polls:
            yield from _jumps(indexes, operation, polled, last, "int-")


def find_jumps_between_operations(indexes: Indexes) -> Iterator[Anomaly]:
    """Reads of one process that leave something out, or go back, from one operation to the next."""
    positions: dict[int, dict[int, int]] = defaultdict(dict)
    for operation in indexes.operations:
        last = positions[operation.process]
        if operation.function in ("assign", "subscribe"):
            positions[operation.process] = {key: last[key] for key in operation.keys if key in last}
            continue
        if operation.type is not EventType.OK or operation.function == "final":
            continue
        firsts = _first_polls(operation)
        yield from _jumps(indexes, operation, Polled(firsts), last, "")
        for polled in operation.polls:
            for key, records in polled.records.items():
                for _, value in records:
                    index = indexes.index_of(key, value)
                    if index is not None:
                        last[key] = index


def _first_polls(operation: Operation) -> dict[int, list[tuple[int, int]]]:
    firsts: dict[int, list[tuple[int, int]]] = {}
    for polled in operation.polls:
        for key, records in polled.records.items():
            if records and key not in firsts:
                firsts[key] = records[:1]
    return firsts


def _jumps(
    indexes: Indexes, operation: Operation, polled: Polled, last: dict[int, int], prefix: str
) -> Iterator[Anomaly]:
    for key, records in polled.records.items():
        if key in operation.rebalanced:
            continue
        for _, value in records:
            index = indexes.index_of(key, value)
            if index is None:
                continue
            before = last.get(key)
            last[key] = index
            if before is None or index == before + 1:
                continue
            name = "poll-skip" if index > before else "nonmonotonic-poll"
            yield Anomaly(
                prefix + name, key, f"operation {operation.number}: {value} is at {index}, after {before}"
            )


def find_sends_out_of_order(indexes: Indexes) -> Iterator[Anomaly]:
    """Sends of one operation, or of one process, that lie in another order in the log."""
    positions: dict[tuple[int, int], int] = {}
    for operation in indexes.operations:
        if not indexes.is_committed(operation):
            continue
        within: dict[int, int] = {}
        for sent in operation.sends:
            index = indexes.index_of(sent.key, sent.value)
            if index is None:
                continue
            where = (operation.process, sent.key)
            if index < within.get(sent.key, -1):
                yield _backwards("int-nonmonotonic-send", operation, sent)
            elif sent.key not in within and index < positions.get(where, -1):
                yield _backwards("nonmonotonic-send", operation, sent)
            within[sent.key] = positions[where] = index


def _backwards(name: str, operation: Operation, sent: Sent) -> Anomaly:
    return Anomaly(name, sent.key, f"operation {operation.number}: {sent.value} lies before what came before")


def find_read_cycles(indexes: Indexes) -> Iterator[Anomaly]:
    """Operations that read from each other in a circle: some of them saw what was not committed yet."""
    graph: dict[int, set[int]] = defaultdict(set)
    for key, values in indexes.readers.items():
        for value, readers in values.items():
            writer = indexes.writer[key].get(value)
            if writer is None or not indexes.is_committed(writer):
                continue
            for reader in readers:
                if reader.number != writer.number and indexes.is_committed(reader):
                    graph[writer.number].add(reader.number)
    for part in components(graph):
        cycle = shortest_cycle(graph, part)
        yield Anomaly("G1c", None, " -> ".join(map(str, [*cycle, cycle[0]])))


def find_stuck(indexes: Indexes) -> Iterator[Anomaly]:
    """Last readers that did not come to the end in time."""
    for operation in indexes.operations:
        if operation.function == "final" and operation.type is not EventType.OK:
            yield Anomaly("stuck", None, f"operation {operation.number}: {operation.error}")


FINDERS: Final[Sequence[Finder]] = (
    find_inconsistent_offsets,
    find_duplicates,
    find_aborted_reads,
    find_lost_writes,
    find_unseen,
    find_precommitted_reads,
    find_jumps_within_operations,
    find_jumps_between_operations,
    find_sends_out_of_order,
    find_read_cycles,
    find_stuck,
)


def find_anomalies(operations: Sequence[Operation]) -> list[Anomaly]:
    """Return everything that must not have happened."""
    indexes = Indexes(operations)
    return [anomaly for finder in FINDERS for anomaly in finder(indexes)]

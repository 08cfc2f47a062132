"""Reads and writes out of order: within an operation, within a process, and in real time."""

from collections import defaultdict
from collections.abc import Iterator

from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.history import EventType, Operation, Polled, Sent
from ottla.testing.guarantees.indexes import Indexes


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


def find_send_skips(indexes: Indexes) -> Iterator[Anomaly]:
    """Sends of one operation with those of others between them. That is legal: transactions mix."""
    for operation in indexes.operations:
        if not indexes.is_committed(operation):
            continue
        last: dict[int, int] = {}
        for sent in operation.sends:
            index = indexes.index_of(sent.key, sent.value)
            if index is None:
                continue
            if index > last.get(sent.key, index) + 1:
                detail = f"operation {operation.number}: {sent.value} is at {index}, after {last[sent.key]}"
                yield Anomaly("int-send-skip", sent.key, detail, is_legal=True)
            last[sent.key] = index


def find_sends_behind_known_offsets(indexes: Indexes) -> Iterator[Anomaly]:
    """A write that got an offset below one that was known before the write began."""
    known: dict[int, int] = {}
    ended = iter(sorted(indexes.operations, key=lambda one: one.completed_ns))
    one = next(ended, None)
    for operation in sorted(indexes.operations, key=lambda one: one.invoked_ns):
        while one is not None and one.completed_ns < operation.invoked_ns:
            for key, offset in known_offsets(one):
                known[key] = max(known.get(key, -1), offset)
            one = next(ended, None)
        for sent in operation.sends:
            if sent.offset is not None and sent.offset <= known.get(sent.key, -1):
                detail = (
                    f"operation {operation.number}: {sent.value} got {sent.offset}, after {known[sent.key]}"
                )
                yield Anomaly("send-behind-known-offset", sent.key, detail)


def known_offsets(operation: Operation) -> Iterator[tuple[int, int]]:
    """Yield, by key, the offsets that an operation learned, by acknowledgements and by reading."""
    for sent in operation.sends:
        if sent.offset is not None:
            yield sent.key, sent.offset
    for polled in operation.polls:
        for key, records in polled.records.items():
            for offset, _ in records:
                yield key, offset

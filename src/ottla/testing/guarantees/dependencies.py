"""Who depends on whom, and cycles in that: operations each of which came before the next, so before itself.

An edge says that one operation came before another: it wrote the value before one of the other's (ww), it
wrote what the other read (wr), the same process did it before (process), or it was over when the other began
(realtime). Reads show what is committed and nothing else, so edges of reads, processes and time can make no
cycle. Writes of two transactions may lie in a different order in two logs, so with ww edges they may.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.cycles import components, short_cycle
from ottla.testing.guarantees.history import EventType, Operation
from ottla.testing.guarantees.indexes import Indexes

Edges = dict[int, set[int]]

_SHOWN_MAX: Final = 20
"""How many operations of a cycle are shown."""


def find_cycles(indexes: Indexes) -> Iterator[Anomaly]:
    """Find cycles, each under the name of the strictest order that it breaks."""
    writes, reads = write_edges(indexes), read_edges(indexes)
    processes, times = process_edges(indexes), time_edges(indexes)
    known: set[int] = set()
    yield from _cycles(indexes, "G1c", (reads,), known)
    yield from _cycles(indexes, "G1c-process", (reads, processes), known)
    yield from _cycles(indexes, "G1c-realtime", (reads, times), known)
    yield from _cycles(indexes, "G0", (writes,), known, is_legal=True)
    yield from _cycles(indexes, "G1c-ww", (writes, reads), known, is_legal=True)
    yield from _cycles(indexes, "G1c-ww-process", (writes, reads, processes), known, is_legal=True)
    yield from _cycles(indexes, "G1c-ww-realtime", (writes, reads, times), known, is_legal=True)


def _cycles(
    indexes: Indexes, name: str, edges: tuple[Edges, ...], known: set[int], is_legal: bool = False
) -> Iterator[Anomaly]:
    """Find cycles of these edges that do not contain an operation of a cycle with stricter ones."""
    graph = _united(edges)
    for part in components(graph):
        if known.isdisjoint(part):
            # A moment is no operation, and only needed to say which of them came first.
            cycle = [node for node in short_cycle(graph, part) if node < len(indexes.operations)]
            shown = [str(node) for node in cycle[:_SHOWN_MAX]] + ["..."] * (len(cycle) > _SHOWN_MAX)
            yield Anomaly(name, None, " -> ".join([*shown, str(cycle[0])]), is_legal)
        known.update(part)


def _united(edges: tuple[Edges, ...]) -> Edges:
    if len(edges) == 1:
        return edges[0]
    graph: Edges = defaultdict(set)
    for some in edges:
        for node, targets in some.items():
            graph[node] |= targets
    return graph


def write_edges(indexes: Indexes) -> Edges:
    """Return, for each key, edges from the writer of a value to the writer of the next one."""
    graph: Edges = defaultdict(set)
    for key, dense in indexes.dense.items():
        before: Operation | None = None
        for values in dense.values:
            for value in values:
                writer = indexes.writer[key].get(value)
                if writer is None or not indexes.is_committed(writer):
                    continue
                if before is not None and before.number != writer.number:
                    graph[before.number].add(writer.number)
                before = writer
    return graph


def read_edges(indexes: Indexes) -> Edges:
    """Return edges from the writer of a value to all its readers."""
    graph: Edges = defaultdict(set)
    for key, values in indexes.readers.items():
        for value, readers in values.items():
            writer = indexes.writer[key].get(value)
            if writer is None or not indexes.is_committed(writer):
                continue
            for reader in readers:
                if reader.number != writer.number and indexes.is_committed(reader):
                    graph[writer.number].add(reader.number)
    return graph


def process_edges(indexes: Indexes) -> Edges:
    """Return edges from each operation to the next one of its process."""
    graph: Edges = defaultdict(set)
    last: dict[int, int] = {}
    for operation in indexes.operations:
        if indexes.is_committed(operation):
            before = last.get(operation.process)
            if before is not None:
                graph[before].add(operation.number)
            last[operation.process] = operation.number
    return graph


def time_edges(indexes: Indexes) -> Edges:
    """Return edges from each operation to those that began after it was over, by way of moments.

    Moments are nodes after the last operation, one for each end, and each comes before the next. So there are
    as many edges as operations, not as many as pairs of them. Of operations whose end nobody knows, none is
    known to have begun after it.
    """
    graph: Edges = defaultdict(set)
    committed = [one for one in indexes.operations if indexes.is_committed(one)]
    ends = sorted((one for one in committed if one.type is EventType.OK), key=lambda one: one.completed_ns)
    first_moment = len(indexes.operations)
    for place, one in enumerate(ends):
        graph[one.number].add(first_moment + place)
        if place:
            graph[first_moment + place - 1].add(first_moment + place)
    place = -1
    for operation in sorted(committed, key=lambda one: one.invoked_ns):
        while place + 1 < len(ends) and ends[place + 1].completed_ns < operation.invoked_ns:
            place += 1
        if place >= 0:
            graph[first_moment + place].add(operation.number)
    return graph

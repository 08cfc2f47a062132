"""Cycles in a graph of operations: strongly connected parts, and a short cycle of each, to be shown."""

from collections import deque
from collections.abc import Mapping
from typing import Final

Graph = Mapping[int, set[int]]

_STARTS_MAX: Final = 50
"""Legal cycles can span a whole history. A search from each of its operations would take for ever."""


def components(graph: Graph) -> list[list[int]]:
    """Return the strongly connected parts that have more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        member = stack.pop()
                        on_stack.remove(member)
                        part.append(member)
                        if member == node:
                            break
                    if len(part) > 1:
                        found.append(part)
    return found


def short_cycle(graph: Graph, part: list[int]) -> list[int]:
    """Return the shortest cycle within a strongly connected part; in a large one, of those through a few."""
    members = set(part)
    best: list[int] = []
    for start in part[:_STARTS_MAX]:
        before: dict[int, int] = {}
        queue = deque([start])
        while queue and start not in before:
            node = queue.popleft()
            for target in graph.get(node, ()):
                if target in members and target not in before:
                    before[target] = node
                    queue.append(target)
        cycle = [start]
        node = before[start]
        while node != start:
            cycle.append(node)
            node = before[node]
        cycle.reverse()
        if not best or len(cycle) < len(best):
            best = cycle
    return best

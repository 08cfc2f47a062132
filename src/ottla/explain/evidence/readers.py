"""Who reads what, as the journal has it: connections that fetch, each with where it was when.

A node writes a line when a connection moves, stops or closes. So the last line of a connection says what it
does now: none is written while a reader waits at the end of a log. A node that has started says that all its
earlier connections are gone.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from ottla.explain.evidence.journal import JournalEvent, JournalView
from ottla.model.ids import TopicPartition

LATEST = -1
EARLIEST = -2


class Doing(Enum):
    """What a connection does, by its last line."""

    FETCHING = "fetches"
    STOPPED = "has stopped fetching"
    GONE = "is closed"


@dataclass(slots=True)
class Reader:
    """A connection that has fetched."""

    node: int
    client: str
    host: str
    port: int | None
    first: JournalEvent
    last: JournalEvent
    doing: Doing = Doing.FETCHING
    was_fetching: bool = True
    """Whether it fetched until its last line, or had stopped before."""
    isolation: int | None = None
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    """Where it stood at its last line."""
    seen: dict[TopicPartition, list[tuple[int, JournalEvent]]] = field(default_factory=dict)
    """All positions with their lines."""
    began: dict[TopicPartition, tuple[int, int, JournalEvent]] = field(default_factory=dict)
    """Which offset it has asked for, LATEST or EARLIEST, and the answer."""

    def take(self, event: JournalEvent) -> None:
        """Take a line of this connection."""
        self.was_fetching = self.doing is Doing.FETCHING
        self.last = event
        self.positions = event.positions()
        for where, offset in self.positions.items():
            self.seen.setdefault(where, []).append((offset, event))
        for where, (asked, answer) in event.resets().items():
            self.began[where] = (asked, answer, event)
        if event.kind == "fetch-stopped":
            self.doing = Doing.STOPPED
        else:
            self.doing = Doing.GONE if event.facts.get("closed") else Doing.FETCHING
            self.isolation = event.facts.get("isolation", self.isolation)

    def stops(self, event: JournalEvent) -> None:
        """Take note that the node has started again."""
        if self.doing is not Doing.GONE:
            self.was_fetching, self.doing, self.last = self.doing is Doing.FETCHING, Doing.GONE, event


def readers_of(journal: JournalView) -> tuple[Reader, ...]:
    """Return all connections that the journal knows to have fetched, those of the latest lines last."""
    found: dict[tuple[int, str, str, int | None], Reader] = {}
    for event in journal.of("fetch-position", "fetch-stopped", "node-started"):
        node = event.facts.get("n", -1)
        if event.kind == "node-started":
            for reader in found.values():
                if reader.node == node:
                    reader.stops(event)
            continue
        facts = event.facts
        key = (node, facts["client"], facts.get("host", ""), facts.get("port"))
        if key not in found:
            found[key] = Reader(*key, event, event)
        found[key].take(event)
    return tuple(sorted(found.values(), key=lambda reader: reader.last.at_ms))


def reader_of(
    readers: Collection[Reader], where: TopicPartition, client: str, host: str = ""
) -> Reader | None:
    """Return the connection by which a client reads a partition, or did so last."""
    its = [one for one in readers if one.client == client and where in one.seen]
    its = [one for one in its if one.host == host.lstrip("/")] or its
    if not its:
        return None
    return max(its, key=lambda one: (one.doing is not Doing.GONE, one.seen[where][-1][1].at_ms))


def steps_back(
    reader: Reader, where: TopicPartition
) -> Iterator[tuple[int, JournalEvent, int, JournalEvent]]:
    """Give where one connection has fetched from a lower offset than before."""
    seen = reader.seen.get(where, [])
    for (before, then), (after, now) in pairwise(seen):
        if after < before:
            yield before, then, after, now

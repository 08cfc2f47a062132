"""Who wrote without a producer id, as the journal has it: connections, and between which times they wrote.

A line is written at the next look of the node, and when the connection closes, with the time when it came.
Earlier releases did not: there a connection may have written from one look before its first line on.
"""

from dataclasses import dataclass

from ottla.explain.evidence.journal import JournalEvent, JournalView, place_of
from ottla.explain.evidence.logs import RecordFacts
from ottla.model.ids import TopicPartition

_LOOK_MS = 6_000
"""Nodes look every five seconds, by default."""


@dataclass(slots=True)
class Writer:
    """A connection that has written to partitions."""

    client: str
    host: str
    port: int | None
    first: JournalEvent
    last: JournalEvent
    places: frozenset[TopicPartition] = frozenset()
    is_closed: bool = False
    acks: int | None = None

    @property
    def name(self) -> str:
        """Return who it is, for people."""
        return f"{self.client or 'a client without a name'} at {self.host}"

    def may_have_written(self, where: TopicPartition, from_ms: int, to_ms: int) -> bool:
        """Say whether it was there when something was appended, between two times."""
        # That a connection is closed is written up to a second later.
        ends_before = self.is_closed and self.last.at_ms < from_ms
        opened_ms = self.first.facts.get("since", self.first.at_ms - _LOOK_MS)
        return where in self.places and not ends_before and opened_ms <= to_ms


def writers_of(journal: JournalView) -> tuple[Writer, ...]:
    """Return all connections that have written without a producer id, in the order they came."""
    found: dict[tuple[int, str, str, int | None], Writer] = {}
    for event in journal.of("writes"):
        facts = event.facts
        key = (facts.get("n", -1), facts["client"], facts["host"], facts.get("port"))
        writer = found.setdefault(key, Writer(*key[1:], event, event))
        writer.last = event
        writer.places |= frozenset(map(place_of, facts["at"]))
        writer.is_closed = bool(facts.get("closed"))
        writer.acks = facts.get("acks", writer.acks)
    return tuple(found.values())


def appended_between(journal: JournalView, record: RecordFacts) -> tuple[int | None, int | None]:
    """Return between which two times a record was appended, by where its partition ended at them."""
    place = f"{record.where.topic}/{record.where.partition}"
    after = None
    for event in journal.of("appended-at"):
        end = event.facts["ends"].get(place)
        if end is None:
            continue
        if end > record.offset:
            return after, event.at_ms
        after = event.at_ms
    return after, None


def candidates(journal: JournalView, writers: tuple[Writer, ...], record: RecordFacts) -> list[Writer]:
    """Return who may have written a record without producer id: by its create time, if it can be right."""
    after, before = appended_between(journal, record)
    from_ms = max(record.timestamp, after or 0)
    if before is not None:
        from_ms = min(from_ms, before)
    to_ms = from_ms if before is None else before
    return [one for one in writers if one.may_have_written(record.where, from_ms, to_ms)]

"""What nodes of Ottla have written to `__ottla_journal`. Apache Kafka has no such topic."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.explain.access import Access
from ottla.explain.evidence.logs import partitions_of, read_batches
from ottla.model.ids import TopicPartition

TOPIC: Final = "__ottla_journal"
_RECORDS_MAX: Final = 200_000


class JournalEvent(NamedTuple):
    """One event. `facts` are the fields of its kind."""

    at_ms: int
    kind: str
    subject: str
    facts: dict[str, Any]
    place: str
    """Where in the journal it is."""

    def positions(self) -> dict[TopicPartition, int]:
        """Return the positions that a fetch event has."""
        return {place_of(place): offset for place, offset in self.facts.get("at", {}).items()}


class JournalView(NamedTuple):
    """The events that were read, in the order of their times."""

    exists: bool = False
    events: tuple[JournalEvent, ...] = ()

    @property
    def span_ms(self) -> tuple[int, int] | None:
        """Return the times of the first and of the last event: how far back it goes, and how new it is."""
        return (self.events[0].at_ms, self.events[-1].at_ms) if self.events else None

    def of(self, *kinds: str, **facts: Any) -> Iterator[JournalEvent]:
        """Give the events of some kinds that have these facts, in order."""
        for event in self.events:
            if event.kind in kinds and all(event.facts.get(name) == value for name, value in facts.items()):
                yield event

    def until(self, at_ms: int) -> "JournalView":
        """Return what was known at a time."""
        return self._replace(events=tuple(event for event in self.events if event.at_ms <= at_ms))

    def producer_names(self) -> dict[int, str]:
        """Return who producers are, by their ids."""
        names = {}
        for event in self.of("producer-seen"):
            facts = event.facts
            name = f"{facts['client'] or 'a client without an id'} at {facts['host']}"
            if facts.get("txn"):
                name += f", transactional id {facts['txn']}"
            names[int(facts["producer"])] = name
        return names


async def read_journal(access: Access, since_ms: int | None = None) -> JournalView:
    """Read the journal, all of it or from a time on."""
    partitions = await partitions_of(access, [TOPIC])
    if not partitions:
        return JournalView()
    ends = await list_offsets(access.cluster, dict.fromkeys(partitions, LATEST))
    starts = await list_offsets(access.cluster, dict.fromkeys(partitions, EARLIEST))
    found = []
    for where in partitions:
        end = ends[where].offset
        start = max(starts[where].offset, end - _RECORDS_MAX)
        async for _, records in read_batches(access, where, start, end):
            for record in records:
                event = _event(record.key, record.value, record.place)
                if event is not None and (since_ms is None or event.at_ms >= since_ms):
                    found.append(event)
    return JournalView(True, tuple(sorted(found, key=lambda event: event.at_ms)))


def place_of(text: str) -> TopicPartition:
    """Read a partition as the journal has it: topic/number."""
    topic, _, number = text.rpartition("/")
    return TopicPartition(topic, int(number))


def _event(key: bytes | None, value: bytes | None, place: str) -> JournalEvent | None:
    try:
        facts = json.loads(value or b"")
        at_ms, kind = int(facts.pop("t")), str(facts.pop("k"))
    except (ValueError, KeyError, AttributeError, TypeError):
        # Written by a release that knows more, or by somebody else.
        return None
    return JournalEvent(at_ms, kind, (key or b"").decode(errors="replace"), facts, place)

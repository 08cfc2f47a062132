"""What nodes of Ottla have written to `__ottla_journal`. Apache Kafka has no such topic.

Lines come from all releases that ever wrote to it, and from anybody who may. So each is checked here, once:
who reads an event of a kind finds the fields of that kind, of the right type. A line that tells only how many
more there were is an event of the kind `more`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.explain.access import Access
from ottla.explain.evidence.logs import partitions_of, read_batches
from ottla.model.ids import TopicPartition

TOPIC: Final = "__ottla_journal"
MORE: Final = "more"
"""Of one kind and subject, only the number was kept: `of` is the kind, `more` the number."""
_RECORDS_MAX: Final = 200_000


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text_or_nothing(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_place(value: Any) -> bool:
    return isinstance(value, str) and value.rpartition("/")[2].isdecimal() and value.isascii()


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _are_places(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_place, value))


def _are_offsets(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_place(at) and _is_number(to) for at, to in value.items())


def _are_resets(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_place(at) and _are_numbers(pair) and len(pair) == 2 for at, pair in value.items()
    )


_TIME_MAX_MS: Final = 1 << 47
"""Thousands of years from now: a later time is none."""
Check = Callable[[Any], bool]

KINDS: Final[Mapping[str, Mapping[str, Check]]] = {
    "appended-at": {"ends": _are_offsets},
    "fetch-position": {"client": _is_text, "host": _is_text, "at": _are_offsets},
    "fetch-stopped": {"client": _is_text, "host": _is_text, "at": _are_offsets},
    "isr-changed": {"at": _is_place, "before": _are_numbers, "isr": _are_numbers},
    "join-refused": {"group": _is_text, "client": _is_text, "error": _is_text, "offers": _are_texts},
    "leader-changed": {"at": _is_place, "before": _is_number, "leader": _is_number},
    "lost": {"count": _is_number},
    "member-left": {"group": _is_text, "member": _is_text, "client": _is_text, "why": _is_text},
    "node-started": {},
    "partitions-added": {"topic": _is_text, "partitions": _is_number},
    "producer-seen": {"producer": _is_number, "epoch": _is_number, "client": _is_text, "host": _is_text},
    "producer-wrote": {"at": _is_place, "producer": _is_number, "epoch": _is_number},
    "records-deleted": {"at": _is_place, "before": _is_number, "client": _is_text, "host": _is_text},
    "request-refused": {"api": _is_text, "error": _is_text, "count": _is_number},
    "sync-slow": {"count": _is_number},
    "throttled": {"ms": _is_number, "quota": _is_text},
    "topic-created": {"topic": _is_text, "partitions": _is_number},
    "topic-deleted": {"topic": _is_text},
    "topic-unknown": {"client": _is_text, "topics": _are_texts},
    "transaction-expired": {},
    "writes": {"client": _is_text, "host": _is_text, "at": _are_places},
}
"""Which fields an event of a kind has in any case. Others may be there, or not."""

OPTIONAL: Final[Mapping[str, Check]] = {
    "acks": _is_number,
    "after_ms": _is_number,
    "answered": _is_flag,
    "began": _are_resets,
    "closed": _is_flag,
    "connected": _is_flag,
    "for_ms": _is_number,
    "group": _is_text,
    "high": _are_offsets,
    "isolation": _is_number,
    "n": _is_number,
    "port": _is_number,
    "reason": _is_text_or_nothing,
    "since": _is_number,
    "txn": _is_text_or_nothing,
}
"""What a field has to be where it is: one that is not is left out."""


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

    def resets(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return which offsets a reader asked for before it fetched, and the answers."""
        return {place_of(place): (one, other) for place, (one, other) in self.facts.get("began", {}).items()}


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

    def left_out(self, since_ms: int = 0) -> dict[str, int]:
        """Return how many events of each kind were not kept, because they were too many."""
        found: dict[str, int] = {}
        for event in self.of(MORE, "lost"):
            if event.at_ms >= since_ms:
                kind = event.facts.get("of", "any")
                found[kind] = found.get(kind, 0) + event.facts.get(MORE, event.facts.get("count", 0))
        return found

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
                event = read_event(record.key, record.value, record.place)
                if event is not None and (since_ms is None or event.at_ms >= since_ms):
                    found.append(event)
    return JournalView(True, tuple(sorted(found, key=lambda event: event.at_ms)))


def place_of(text: str) -> TopicPartition:
    """Read a partition as the journal has it: topic/number."""
    topic, _, number = text.rpartition("/")
    return TopicPartition(topic, int(number))


def read_event(key: bytes | None, value: bytes | None, place: str) -> JournalEvent | None:
    """Read a line of the journal; None if it tells nothing that is known here."""
    try:
        facts = json.loads(value or b"")
        at_ms, kind = facts.pop("t"), facts.pop("k")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        # Written by a release that knows more, or by somebody else.
        return None
    if not _is_number(at_ms) or not 0 <= at_ms < _TIME_MAX_MS or not isinstance(kind, str):
        return None
    subject = (key or b"").decode(errors="replace")
    if MORE in facts:
        count = facts[MORE]
        return (
            JournalEvent(at_ms, MORE, subject, {"of": kind, MORE: count}, place)
            if _is_number(count)
            else None
        )
    needed = KINDS.get(kind, {})
    if kind == MORE or any(name not in facts or not holds(facts[name]) for name, holds in needed.items()):
        return None
    for name, holds in OPTIONAL.items():
        if name in facts and name not in needed and not holds(facts[name]):
            del facts[name]
    return JournalEvent(at_ms, kind, subject, facts, place)

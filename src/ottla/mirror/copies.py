"""What is known of the copies in a cluster, by what mirrors said last about themselves.

How far a copy is behind is known only if a mirror reported on it lately and had no error with it. Anything
else is unknown, and never 0: nobody knows what a copy lacks on which nobody reports.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.mirror.halting import mirrored_topics
from ottla.mirror.mirroring import STATUS_TOPIC

SILENCE_MAX_S: Final = 60
"""How long ago a mirror may have reported. It does every two seconds."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One partition; its number is None if a topic has no copy. Offsets are -1 until they are known."""

    source: str
    topic: str
    partition: int | None
    copied_to: int = -1
    source_end: int = -1
    lag: int | None = None
    error: str | None = None
    """Why the lag is not known, if it is not."""
    source_silent_s: int | None = None
    """How long ago the source told its end; None if it never did."""

    @property
    def name(self) -> str:
        """Return what people call it."""
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


async def read_statuses(properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what mirrors said last about themselves, by source."""
    newest: dict[bytes, dict[str, Any]] = {}
    async with Consumer(
        properties={**properties, "allow.auto.create.topics": "false", "auto.offset.reset": "earliest"}
    ) as consumer:
        partitions = await consumer.partitions_for(STATUS_TOPIC)
        if not partitions:
            return []
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any([await consumer.position(where) < ends[where] for where in partitions]):
            for record in await consumer.poll(1000):
                if record.value is not None:
                    newest[record.key] = json.loads(record.value)
    return sorted(newest.values(), key=lambda status: str(status["source"]))


async def find_copies(admin: Admin, statuses: Collection[Mapping[str, Any]], now_ms: int) -> list[Copy]:
    """Return all copies of a cluster, and the topics that mirrors could not make a copy of."""
    partitions = {item.name: item.partitions for item in await admin.topics.list()}
    return copies_of(statuses, await mirrored_topics(admin), partitions, now_ms)


def copies_of(
    statuses: Collection[Mapping[str, Any]],
    mirrors: Mapping[str, str],
    partitions: Mapping[str, int],
    now_ms: int,
) -> list[Copy]:
    """Put together what mirrors say and what there is: exact copies and their sources, and partitions."""
    told: dict[tuple[str, int], Copy] = {}
    errors: dict[str, str] = {}
    missing: list[Copy] = []
    for status in statuses:
        source = str(status["source"])
        for copy in _told(status, now_ms):
            # An exact copy that is no mirror any more was made writable: it is behind nobody.
            if not status.get("exact", True) or mirrors.get(copy.topic) == source:
                told[copy.topic, copy.partition or 0] = copy
        for topic, error in status.get("topic_errors", {}).items():
            errors[topic] = error
            if topic not in partitions:
                missing.append(Copy(source, topic, None, error=error))
    for topic, source in mirrors.items():
        for number in range(partitions.get(topic, 0)):
            error = errors.get(
                topic, f"no mirror of {source} reports on it: see whether `ottla mirror run` runs"
            )
            told.setdefault((topic, number), Copy(source, topic, number, error=error))
    return [*missing, *(copy for _, copy in sorted(told.items()))]


def _told(status: Mapping[str, Any], now_ms: int) -> Iterator[Copy]:
    """Give what one mirror said."""
    silent_s = max(0, now_ms - int(status.get("at_ms", -1))) // 1000
    late = (
        f"its mirror reported {silent_s} seconds ago for the last time: see whether `ottla mirror run` runs"
        if silent_s > SILENCE_MAX_S
        else None
    )
    for part in status["partitions"]:
        seen_at_ms = int(part.get("seen_at_ms", -1))
        error = part.get("error") or late
        lag = part.get("lag")
        if lag is None and error is None:
            error = "it is not known yet where the source and the copy end"
        yield Copy(
            str(status["source"]),
            part["topic"],
            part["partition"],
            part.get("copied_to", -1),
            part["source_end"],
            None if error is not None else lag,
            error,
            None if seen_at_ms < 0 else max(0, now_ms - seen_at_ms) // 1000,
        )

"""Events that nobody has to tell: they are read off what the node has anyway.

    appended-at       where partitions end, each second, for those that have grown
    producer-wrote    a producer id or epoch that is new in a partition
    fetch-position    where clients read, every `ottla.journal.interval.ms` while they move, and when they go;
                      with where they began, if they asked for the first or the last offset
    fetch-stopped     a client that has not asked for so long, and is still connected
    writes            which partitions a client without a producer id may write to: by its produce lanes; and
                      when it goes
    sync-slow         syncs that took long

It costs nothing while nothing happens, and with many partitions it looks at them less often, and in slices.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ottla.broker.fetch.fetch_session import PartitionKey
from ottla.broker.journal.journal import client_subject, is_follower
from ottla.broker.journal.journal_node import JournalNode
from ottla.broker.logs.journal_room import TOPIC
from ottla.broker.logs.partition import Partition
from ottla.broker.serving.context import RequestContext
from ottla.runtime.slices import Slices
from ottla.wire.messages.fetch import FetchPartition

PARTITIONS_IN_RECORD_MAX: Final = 100
_MANY_PARTITIONS: Final = 2_000
_PRODUCERS_MAX: Final = 1_000
_SLOW_BUCKET: Final = 18
"""Syncs in this bucket took 131 ms or more."""
_EMPTY: Final = (0, 0)


class Sampler:
    """Looks at a broker and notes what has changed."""

    def __init__(self, broker: JournalNode) -> None:
        self._broker = broker
        self._slices = Slices(broker.world.scheduler, broker.clock)
        # Log end and high watermark of each partition at the last look.
        self._ends: dict[Partition, tuple[int, int]] = {}
        self._producers: dict[Partition, dict[int, int]] = {}
        self._positions: dict[RequestContext, tuple[dict[str, int], bool]] = {}
        self._written: dict[RequestContext, tuple[str, ...]] = {}
        self._slow_syncs = 0
        self._interval_ms = 0
        self._positions_due_ms = 0
        self._ends_due_ms = 0

    def look(self) -> None:
        """Take one look, each second."""
        now_ms = self._broker.clock.monotonic_ms()
        self._interval_ms = self._broker.config.ottla_journal_interval_ms
        self._look_at_syncs()
        self._look_at_gone(now_ms)
        if now_ms >= self._ends_due_ms:
            is_many = len(self._broker.partitions) > _MANY_PARTITIONS
            self._ends_due_ms = now_ms + (self._interval_ms if is_many else 0)
            self._slices.run("ends", self._look_at_logs())
        if now_ms >= self._positions_due_ms:
            self._positions_due_ms = now_ms + self._interval_ms
            self._look_at_clients(now_ms)

    def _look_at_logs(self) -> "Iterator[None]":
        before = self._ends
        now: dict[Partition, tuple[int, int]] = {}
        moved: dict[str, int] = {}
        # Where followers are behind: the high watermarks.
        high: dict[str, int] = {}
        for partition in self._broker.partitions:
            log = partition.log
            end = (log.log_end_offset, log.high_watermark)
            now[partition] = end
            yield
            if before.get(partition, _EMPTY) == end or partition.topic == TOPIC or not partition.is_leader:
                continue
            name = f"{partition.topic}/{partition.index}"
            moved[name] = end[0]
            if end[1] < end[0]:
                high[name] = end[1]
            if not partition.is_internal:
                self._look_at_producers(partition)
        self._ends = now
        self._producers = {at: known for at, known in self._producers.items() if at in self._ends}
        places = list(moved.items())
        for start in range(0, len(places), PARTITIONS_IN_RECORD_MAX):
            ends = dict(places[start : start + PARTITIONS_IN_RECORD_MAX])
            held = {name: high[name] for name in ends if name in high}
            self._broker.journal.note(
                f"node/{self._broker.node_id}", "appended-at", ends=ends, **({"high": held} if held else {})
            )

    def _look_at_producers(self, partition: Partition) -> None:
        producers = partition.log.active_producers()
        if len(producers) > _PRODUCERS_MAX:
            return
        known = self._producers.setdefault(partition, {})
        for producer_id, producer in producers.items():
            if known.get(producer_id) != producer.epoch:
                known[producer_id] = producer.epoch
                self._broker.journal.note(
                    f"producer/{producer_id}",
                    "producer-wrote",
                    producer=int(producer_id),
                    epoch=producer.epoch,
                    at=f"{partition.topic}/{partition.index}",
                )

    def _look_at_clients(self, now_ms: int) -> None:
        before, self._positions = self._positions, {}
        written, self._written = self._written, {}
        for context, opened_ms in list(self._broker.journal.contexts.items()):
            if context.fetched is not None and not is_follower(context):
                self._look_at_fetches(context, before.get(context), now_ms)
            if context.wrote:
                places = _places_of(context)
                self._written[context] = places
                if written.get(context) != places:
                    self._note_writes(context, opened_ms)

    def _note_writes(self, context: RequestContext, opened_ms: int, **facts: Any) -> None:
        acks = min(context.wrote.values())
        self._note(context, "writes", at=_places_of(context), acks=acks, since=opened_ms, **facts)

    def _look_at_gone(self, now_ms: int) -> None:
        """Write where readers were when they went: between two looks they may have read much."""
        writers, self._broker.journal.gone_writers = self._broker.journal.gone_writers, []
        for context, opened_ms in writers:
            self._note_writes(context, opened_ms, closed=True)
        gone, self._broker.journal.gone = self._broker.journal.gone, []
        for context, was_answered in gone:
            assert context.fetched is not None, "only readers are kept"
            ask, asked, asked_ms = context.fetched
            positions = self._positions_of(asked)
            if positions:
                self._note(
                    context,
                    "fetch-position",
                    at=positions,
                    isolation=ask.isolation_level,
                    **_began(context, positions),
                    closed=True,
                    answered=was_answered,
                    for_ms=now_ms - asked_ms,
                )

    def _positions_of(self, asked: "Sequence[tuple[PartitionKey, FetchPartition]]") -> dict[str, int]:
        positions: dict[str, int] = {}
        for key, partition in asked[:PARTITIONS_IN_RECORD_MAX]:
            found = self._broker.partitions.by_key.get(key)
            if found is not None and found.topic != TOPIC:
                positions[f"{found.topic}/{found.index}"] = partition.fetch_offset
        return positions

    def _look_at_fetches(
        self, context: RequestContext, before: tuple[dict[str, int], bool] | None, now_ms: int
    ) -> None:
        assert context.fetched is not None, "only those are looked at that have fetched"
        ask, asked, asked_ms = context.fetched
        positions = self._positions_of(asked)
        # One that waits for records at the end of a log has not stopped.
        has_stopped = now_ms - asked_ms >= self._interval_ms and context.abandon is None
        self._positions[context] = (positions, has_stopped)
        began = _began(context, positions)
        if before is None or before[0] != positions or began:
            self._note(context, "fetch-position", at=positions, isolation=ask.isolation_level, **began)
        if has_stopped and (before is None or not before[1]):
            self._note(context, "fetch-stopped", at=positions, for_ms=now_ms - asked_ms)
        elif before is not None and before[1] and not has_stopped and before[0] == positions:
            self._note(context, "fetch-position", at=positions, isolation=ask.isolation_level)

    def _look_at_syncs(self) -> None:
        slow = sum(self._broker.flusher.sync_times.buckets[_SLOW_BUCKET:])
        if slow > self._slow_syncs:
            count, self._slow_syncs = slow - self._slow_syncs, slow
            self._broker.journal.note(f"node/{self._broker.node_id}", "sync-slow", count=count, ms=131)

    def _note(self, context: RequestContext, kind: str, **facts: Any) -> None:
        client, host = context.client_id or "", context.peer_host
        self._broker.journal.note(
            client_subject(client, host), kind, client=client, host=host, port=context.peer_port, **facts
        )


def _places_of(context: RequestContext) -> tuple[str, ...]:
    return tuple(f"{one.topic}/{one.index}" for one in context.wrote)[:PARTITIONS_IN_RECORD_MAX]


def _began(context: RequestContext, positions: dict[str, int]) -> dict[str, Any]:
    """Take what a reader asked for, and was answered, before it read these partitions."""
    asked = context.looked_up
    found = {place: list(asked.pop(place)) for place in positions if place in asked}
    return {"began": found} if found else {}

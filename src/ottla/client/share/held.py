"""The records that a share consumer holds: those it has not handed over yet, and those the user works on.

All of them are locked for this consumer until their lock times out, or until the session with the broker that
gave them is lost. After that they belong to the group again, and nothing may be said about them.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.share.record import AcknowledgeType, NotHeld, SharePartition, ShareRecord, UnreadableRecord
from ottla.client.share.session import ShareSession
from ottla.model.ids import TopicPartition


class Source(NamedTuple):
    """Where records came from: a partition, read in one session."""

    partition: SharePartition
    session: ShareSession
    generation: int

    @property
    def is_lost(self) -> bool:
        """Say whether the session is gone, and with it the locks."""
        return self.session.generation != self.generation


@dataclass(slots=True)
class _Ready:
    source: Source
    records: deque[ShareRecord]
    locked_until_s: float
    failure: UnreadableRecord | None


class _Out(NamedTuple):
    record: ShareRecord
    source: Source


class Held:
    """What one consumer holds."""

    def __init__(self) -> None:
        self._ready: deque[_Ready] = deque()
        self._out: dict[tuple[str, int, int], _Out] = {}
        self._renewing: set[tuple[str, int, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._out)

    def arrive(
        self,
        source: Source,
        records: list[ShareRecord],
        locked_until_s: float,
        failure: UnreadableRecord | None = None,
    ) -> None:
        """Keep what a broker gave until somebody asks for it."""
        self._ready.append(_Ready(source, deque(records), locked_until_s, failure))

    def take(self, records_max: int, now_s: float) -> list[ShareRecord]:
        """Hand records over. Those that are no longer locked for us are left out: they will come again."""
        taken: list[ShareRecord] = []
        while self._ready and len(taken) < records_max:
            part = self._ready[0]
            if part.source.is_lost or part.locked_until_s <= now_s:
                self._ready.popleft()
                continue
            while part.records and len(taken) < records_max:
                record = part.records.popleft()
                self._out[record.topic, record.partition, record.offset] = _Out(record, part.source)
                taken.append(record)
            if not part.records:
                if part.failure is not None and taken:
                    # First what came before it, then the error.
                    break
                self._ready.popleft()
                if part.failure is not None:
                    raise part.failure
        return taken

    def acknowledge(self, where: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Say what became of a record. It is sent to its broker later."""
        key = (*where, offset)
        held = self._out.get(key)
        if held is None or held.source.is_lost:
            self._out.pop(key, None)
            raise NotHeld(
                f"{where} offset {offset} is not held by this consumer: it was acknowledged before, or it "
                "went back to the group because the connection to its broker was lost"
            )
        held.source.session.pending_of(held.source.partition).types[offset] = kind
        if kind is AcknowledgeType.RENEW:
            self._renewing.add(key)
        else:
            self._renewing.discard(key)
            del self._out[key]

    def accept_all(self) -> None:
        """Say of everything that was handed over that it is done."""
        for held in self._out.values():
            if not held.source.is_lost:
                pending = held.source.session.pending_of(held.source.partition)
                pending.types[held.record.offset] = AcknowledgeType.ACCEPT
        self._out.clear()

    def unacknowledged(self) -> Iterator[ShareRecord]:
        """Return what was handed over and not acknowledged yet."""
        for key in [key for key, held in self._out.items() if held.source.is_lost]:
            del self._out[key]
            self._renewing.discard(key)
        return (held.record for key, held in self._out.items() if key not in self._renewing)

    @property
    def has_renewals(self) -> bool:
        """Say whether locks are to be renewed."""
        return bool(self._renewing)

    def renewed(self) -> list[ShareRecord]:
        """Return the records whose locks were renewed. They are in the hands of the user again."""
        keys, self._renewing = self._renewing, set()
        return [held.record for key, held in self._out.items() if key in keys and not held.source.is_lost]

    def drop(self, partition: SharePartition, offsets: tuple[int, ...]) -> None:
        """Forget records that the broker says are not ours."""
        for offset in offsets:
            key = (partition.topic, partition.partition, offset)
            self._out.pop(key, None)
            self._renewing.discard(key)

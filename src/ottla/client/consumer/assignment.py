"""The partitions a consumer reads, and how far it is with each.

A partition goes through these statuses. Only a READY one is fetched.

    NEEDS_COMMITTED   assigned by a group: where it left off is to be asked
    NEEDS_RESET       no offset is known, or the one known is not there: auto.offset.reset decides
    NEEDS_CHECK       the leader changed: whether the log still has what was read is to be asked (KIP-320)
    READY             `position` is the next record to hand over, `fetch_offset` the next one to fetch

Between the two lies what was fetched already. A seek throws that away, and any answer that is still on the
way with it: an answer counts only if it is for the `fetch_offset` of the moment.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.errors import ClientError
from ottla.client.fetching import FetchedPartition, IsolationLevel, visible_among
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.batch import BatchView, iter_batches


class NotAssigned(ClientError):
    """A partition that this consumer does not read."""


class Position(NamedTuple):
    """The next offset to hand over, and the leader epoch of the record before it (-1: not known)."""

    offset: int
    leader_epoch: int = -1


class Status(Enum):
    """What has to happen before a partition can be fetched."""

    NEEDS_COMMITTED = "its committed offset has not been read yet"
    NEEDS_RESET = "its first offset has not been looked up yet"
    NEEDS_CHECK = "its leader has changed, and the position is not checked yet"
    READY = "it is being read"


class Chunk:
    """What one answer brought for one partition: batches that are opened when their turn comes."""

    __slots__ = ("batches", "failure", "fetched", "index", "leader_epoch", "next_offset", "ready")

    def __init__(self, fetched: FetchedPartition, isolation: IsolationLevel) -> None:
        self.fetched = fetched
        batches = list(iter_batches(fetched.records))
        self.batches: Iterator[BatchView] = visible_among(batches, fetched.aborted, isolation)
        self.next_offset = max(fetched.fetch_offset, batches[-1].next_offset if batches else 0)
        self.leader_epoch = batches[-1].leader_epoch if batches else -1
        self.ready: list[ConsumerRecord] = []
        self.index = 0
        self.failure: ClientError | None = None
        """Why nothing can be read after what is ready."""


class PartitionState:
    """One partition that is read."""

    def __init__(self, where: TopicPartition, status: Status) -> None:
        self.where = where
        self.status = status
        self.position = Position(-1)
        self.fetch_offset = -1
        self.fetch_epoch = -1
        """The leader epoch of the last record fetched."""
        self.is_paused = False
        self.chunks: deque[Chunk] = deque()
        self.buffered_bytes = 0
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.checked_epoch = -1
        self.topic_id: Uuid | None = None
        """Of which topic of this name the position is. None: of the one that answers next."""
        self.reset_to: str | int | None = None
        """Where to go instead of where auto.offset.reset says, when the user asked to seek there."""
        self.wait_until_s = 0.0
        self.waiting_since_s: float | None = None
        """Since when it has wanted a fetch. None: it wants none, or has just had one."""
        self.fetched_at_s: float | None = None
        """When a broker last answered a fetch of it without an error."""
        self._nearer_replica = -1
        self._nearer_until_s = 0.0

    def read_from(self, replica: int, until_s: float) -> None:
        """Read from a replica that is nearer than the leader, for a while (KIP-392)."""
        self._nearer_replica, self._nearer_until_s = replica, until_s

    def read_from_leader(self) -> bool:
        """Go back to the leader. Says whether another replica was read from."""
        was_elsewhere, self._nearer_replica = self._nearer_replica >= 0, -1
        return was_elsewhere

    def source(self, leader: int, now_s: float) -> int:
        """Return the broker to read from."""
        if self._nearer_replica >= 0 and now_s >= self._nearer_until_s:
            self._nearer_replica = -1
        return leader if self._nearer_replica < 0 else self._nearer_replica

    def seek(self, position: Position) -> None:
        """Go on elsewhere. What was fetched is thrown away."""
        self.drop_buffer()
        self.position = position
        self.fetch_offset = position.offset
        self.fetch_epoch = position.leader_epoch
        self.status = Status.READY
        self.checked_epoch = -1
        self.topic_id = None
        self.reset_to = None

    def need_reset(self, to: str | int | None = None) -> None:
        """Look for an offset again."""
        self.drop_buffer()
        self.fetch_offset = -1
        self.status = Status.NEEDS_RESET
        self.reset_to = to

    def checked(self, leader_epoch: int) -> None:
        """Take note that the leader of this epoch has all that was read."""
        self.status = Status.READY
        self.checked_epoch = leader_epoch

    def add(self, chunk: Chunk) -> None:
        """Take in what a leader answered."""
        self.chunks.append(chunk)
        self.buffered_bytes += len(chunk.fetched.records)
        self.fetch_offset = chunk.next_offset
        self.fetch_epoch = chunk.leader_epoch

    def drop_first(self) -> None:
        """Go past a chunk, with whatever of it is not for readers."""
        chunk = self.chunks.popleft()
        self.buffered_bytes -= len(chunk.fetched.records)
        if chunk.next_offset > self.position.offset:
            self.position = Position(chunk.next_offset, self.position.leader_epoch)

    def drop_buffer(self) -> None:
        """Throw away what was fetched."""
        self.chunks.clear()
        self.buffered_bytes = 0


class Assignment:
    """All partitions that are read now. `changed` is called when there may be something new to fetch."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        self.changed = changed

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self.states.values())

    def __contains__(self, where: object) -> bool:
        return where in self.states

    def partitions(self) -> frozenset[TopicPartition]:
        """Return what is assigned."""
        return frozenset(self.states)

    def state(self, where: TopicPartition) -> PartitionState:
        """Return the state of an assigned partition."""
        try:
            return self.states[where]
        except KeyError:
            raise NotAssigned(f"{where} is not assigned to this consumer") from None

    def replace(self, partitions: Iterable[TopicPartition], status: Status) -> None:
        """Read just these. Those that stay keep their position and what was fetched of them."""
        before, self.states = self.states, {}
        for where in sorted(partitions):
            known = where in before
            self.states[where] = before.pop(where) if known else PartitionState(where, status)
        for state in before.values():
            # Who still holds on to it must not hand over what others may read now.
            state.drop_buffer()
        self.changed()

    def buffered_bytes(self) -> int:
        """Return how much was fetched and not handed over.

        What is paused does not count: it may stay for ever, and must not keep the others from being fetched.
        """
        return sum(state.buffered_bytes for state in self.states.values() if not state.is_paused)

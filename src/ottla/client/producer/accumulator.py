"""Records on their way into batches: a queue of batches for each partition, and the memory they take.

A record joins the youngest batch of its partition while there is room. Batches leave in order, oldest first.
A batch that must be sent again goes back to its place, so that order is kept.

Memory is taken before a record is appended, and given back when its batch is done. Callers that wait for some
are handed it in the order in which they came. From then on it is theirs, also while they do not run yet.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from ottla.client.errors import ClientError
from ottla.client.producer.batch import Batch
from ottla.model.ids import TopicPartition
from ottla.records.codec import Headers

# Length, attributes, two deltas, two lengths, header count: what a record of usual size adds to its content.
_RECORD_OVERHEAD = 14
_HEADER_OVERHEAD = 6


class SendBufferFull(ClientError):
    """`send` waited for max.block.ms, and the buffer was still full."""


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return about how many bytes a record takes before compression, rather too many than too few."""
    size = _RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    if headers:
        for name, content in headers:
            size += _HEADER_OVERHEAD + len(name) * 3 + (len(content) if content else 0)
    return size


class Accumulator:
    """The queues. `wake` is called when something became ready to leave, `clock` for the time in seconds."""

    def __init__(
        self,
        batch_bytes: int,
        linger_s: float,
        buffer_bytes: int,
        wake: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._batch_bytes = batch_bytes
        self._linger_s = linger_s
        self._buffer_bytes = buffer_bytes
        self._wake = wake
        self._clock = clock
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self._used_bytes = 0
        self._waiting_for_room: deque[tuple[asyncio.Future[None], int]] = deque()
        self._batches_made = 0
        self._closed_by: ClientError | None = None
        self.flushing = 0
        """How many callers want everything out without lingering."""

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    @property
    def used_bytes(self) -> int:
        """Return how much memory is taken."""
        return self._used_bytes

    def take_room(self, size_bytes: int) -> bool:
        """Take memory for a record. Returns False if there is none, or others came before."""
        if self._waiting_for_room or not self._fits(size_bytes) or self._closed_by is not None:
            return False
        self._used_bytes += size_bytes
        return True

    async def wait_for_room(self, size_bytes: int, timeout_s: float) -> None:
        """Take memory for a record as soon as there is some, first come first served."""
        if self._closed_by is not None:
            raise self._closed_by
        if self.take_room(size_bytes):
            return
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = room, size_bytes
        self._waiting_for_room.append(waiting)
        self._wake()
        try:
            async with asyncio.timeout(timeout_s):
                await room
        except BaseException as error:
            if waiting in self._waiting_for_room:
                self._waiting_for_room.remove(waiting)
                self._hand_out()
            elif room.done() and not room.cancelled() and room.exception() is None:
                # It was handed over in the same moment. The next one must not wait for ever because of us.
                self.give_back(size_bytes)
            if not isinstance(error, TimeoutError):
                raise
            raise SendBufferFull(
                f"the buffer stayed full for {timeout_s:g} s, because records are sent faster than the "
                "broker takes them: send more slowly, or raise buffer.memory"
            ) from None

    def give_back(self, size_bytes: int) -> None:
        """Give memory back that was taken for a record."""
        self._used_bytes -= size_bytes
        self._hand_out()

    def close(self, error: ClientError) -> None:
        """Let nobody wait for memory any more."""
        self._closed_by = error
        while self._waiting_for_room:
            room, _ = self._waiting_for_room.popleft()
            if not room.done():
                room.set_exception(error)

    def append(
        self,
        where: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size_bytes: int,
    ) -> Batch:
        """Put a record, for which memory was taken, at the end of a batch, and return the batch."""
        queue = self._queues.get(where)
        if queue is None:
            queue = self._queues[where] = deque()
        batch = queue[-1] if queue else None
        # A batch that was encoded, or numbered, is on its second way: nothing may be added to it.
        if (
            batch is None
            or batch.size_bytes + size_bytes > self._batch_bytes
            or batch.attempts
            or batch.encoded is not None
        ):
            self._batches_made += 1
            batch = Batch(where, self._clock(), (self._batches_made, 0))
            queue.append(batch)
            self._wake()
        records = batch.records
        records.append((len(records), timestamp_ms, key, value, headers))
        batch.size_bytes += size_bytes
        if batch.size_bytes >= self._batch_bytes:
            self._wake()
        return batch

    def ready(self, now_s: float) -> Iterator[tuple[TopicPartition, Batch]]:
        """Yield the oldest batch of each partition whose time has come."""
        pressed = self.flushing > 0 or bool(self._waiting_for_room)
        for where, queue in self._queues.items():
            if queue and (pressed or self._is_due(queue, now_s)) and queue[0].retry_at_s <= now_s:
                yield where, queue[0]

    def next_due_s(self, now_s: float) -> float | None:
        """Return when the next batch will have lingered enough, or may be tried again.

        What is due already and still here waits for something else, an answer say, that wakes the sender.
        """
        times = (
            max(queue[0].created_s + self._linger_s, queue[0].retry_at_s) for queue in self._queues.values()
        )
        return min((due_s for due_s in times if due_s > now_s), default=None)

    def take(self, where: TopicPartition) -> Batch:
        """Take the oldest batch of a partition out of its queue."""
        queue = self._queues[where]
        batch = queue.popleft()
        if not queue:
            del self._queues[where]
        return batch

    def take_out(self, batch: Batch) -> None:
        """Take a batch out of its queue, wherever it is."""
        queue = self._queues[batch.where]
        queue.remove(batch)
        if not queue:
            del self._queues[batch.where]

    def put_back(self, batch: Batch) -> None:
        """Put a batch back in front of everything that was made after it."""
        queue = self._queues.setdefault(batch.where, deque())
        place = 0
        while place < len(queue) and queue[place].ordinal < batch.ordinal:
            place += 1
        queue.insert(place, batch)

    def release(self, batch: Batch) -> None:
        """Give the memory of a finished batch back."""
        self.give_back(batch.content_bytes)

    def expired(self, before_s: float) -> list[Batch]:
        """Take out the batches that were made too long ago."""
        found: list[Batch] = []
        for where in list(self._queues):
            while where in self._queues and self._queues[where][0].created_s < before_s:
                found.append(self.take(where))
        return found

    def everything(self) -> list[Batch]:
        """Return all batches."""
        return [batch for queue in self._queues.values() for batch in queue]

    def drop_all(self) -> list[Batch]:
        """Take everything out."""
        batches = self.everything()
        self._queues.clear()
        return batches

    def queue_length(self, where: TopicPartition) -> int:
        """Return how many batches wait for a partition."""
        queue = self._queues.get(where)
        return 0 if queue is None else len(queue)

    def queued(self, where: TopicPartition) -> list[Batch]:
        """Return what waits for a partition, oldest first."""
        return list(self._queues.get(where, ()))

    def _fits(self, size_bytes: int) -> bool:
        return self._used_bytes + size_bytes <= self._buffer_bytes

    def _hand_out(self) -> None:
        while self._waiting_for_room:
            room, size_bytes = self._waiting_for_room[0]
            if room.done():
                self._waiting_for_room.popleft()
                continue
            if not self._fits(size_bytes):
                return
            self._waiting_for_room.popleft()
            self._used_bytes += size_bytes
            room.set_result(None)

    def _is_due(self, queue: deque[Batch], now_s: float) -> bool:
        oldest = queue[0]
        return (
            len(queue) > 1
            or oldest.attempts > 0
            or oldest.size_bytes >= self._batch_bytes
            or now_s - oldest.created_s >= self._linger_s
        )

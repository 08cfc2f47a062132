"""A batch of records on its way, and the hold that the sender of a record keeps on it.

There is no future for each record: making and resolving them took a fifth of the producer's time. A record is
its batch and its place there; the batch has one future, made when somebody waits. A batch that is split hands
its places on to the halves.
"""

import asyncio
from typing import Any, NamedTuple

from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.records.batch import HEADER_BYTES
from ottla.records.codec import RecordTuple


class RecordMetadata(NamedTuple):
    """Where a record came to lie. The offset is -1 where the broker gave none (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Batch:
    """Records of one partition that travel together."""

    __slots__ = (
        "_append_time_ms",
        "_base_offset",
        "_done",
        "_error",
        "_halves",
        "_waiter",
        "attempts",
        "base_sequence",
        "created_s",
        "encoded",
        "may_still_come",
        "ordinal",
        "records",
        "retry_at_s",
        "size_bytes",
        "topic_id",
        "where",
    )

    def __init__(self, where: TopicPartition, now_s: float, ordinal: tuple[int, int] = (0, 0)) -> None:
        self.where = where
        self.ordinal = ordinal
        """The place among all batches; of a half, also where it began in the whole."""
        self.created_s = now_s
        self.records: list[RecordTuple] = []
        """Each with its place in the batch as its offset."""
        self.size_bytes = HEADER_BYTES
        self.base_sequence = -1
        self.encoded: bytearray | None = None
        self.topic_id = ZERO_UUID
        """The topic that it was sent to last. Under the same name there may be another by now."""
        self.may_still_come = False
        """Whether a copy of it that nobody answered may be on its way."""
        self.attempts = 0
        self.retry_at_s = 0.0
        self._done = False
        self._base_offset = -1
        self._append_time_ms = -1
        self._error: ClientError | None = None
        self._halves: tuple[Batch, Batch, int] | None = None
        """With the number of records in the first."""
        self._waiter: asyncio.Future[None] | None = None

    def renumber(self) -> None:
        """Forget the sequence: the producer starts a new epoch, in which the batch gets another."""
        self.base_sequence = -1
        self.encoded = None

    def landed(self, base_offset: int, append_time_ms: int) -> None:
        """Tell callers that wait that the broker has the batch."""
        self._base_offset = base_offset
        self._append_time_ms = append_time_ms
        self._finish()

    def fail(self, error: ClientError) -> None:
        """Tell callers that wait that the batch will not be sent."""
        self._error = error
        self._finish()

    @property
    def content_bytes(self) -> int:
        """Return what the records take."""
        return self.size_bytes - HEADER_BYTES

    def split(self) -> "tuple[Batch, Batch]":
        """Make two batches of this one. Their numbers follow each other, and waiters go over to them."""
        middle = len(self.records) // 2
        number, begin = self.ordinal
        halves = (
            Batch(self.where, self.created_s, self.ordinal),
            Batch(self.where, self.created_s, (number, begin + middle)),
        )
        for half, start, stop in zip(halves, (0, middle), (middle, len(self.records)), strict=True):
            half.records = [(place, *record[1:]) for place, record in enumerate(self.records[start:stop])]
            half.attempts = 1
            half.may_still_come = self.may_still_come
            if self.base_sequence >= 0:
                half.base_sequence = (self.base_sequence + start) % (1 << 31)
        # Together they give back what was taken for the whole, not a byte more or less.
        halves[0].size_bytes += self.content_bytes * middle // len(self.records)
        halves[1].size_bytes += self.content_bytes - halves[0].content_bytes
        self._halves = (*halves, middle)
        self._finish()
        return halves

    def _finish(self) -> None:
        self._done = True
        # A record that somebody holds on to must not keep the bytes of the whole batch.
        self.records = []
        self.encoded = None
        if self._waiter is not None:
            self._waiter.set_result(None)

    async def settled(self) -> None:
        """Return when all of its records are acknowledged or have failed, those of its halves as well."""
        while not self._done:
            await self._wait()
        if self._halves is not None:
            for half in self._halves[:2]:
                await half.settled()

    async def _wait(self) -> None:
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
        # One who gives up waiting must not take the others along.
        await asyncio.shield(self._waiter)


class SentRecord:
    """A record on its way. Await it for its metadata; or let it be, and `flush` at the end."""

    __slots__ = ("_batch", "_place", "_timestamp_ms")

    def __init__(self, batch: Batch, place: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._place = place
        self._timestamp_ms = timestamp_ms

    async def result(self) -> RecordMetadata:
        """Wait until the record is acknowledged. Raises what kept it from being."""
        while not self.is_done:
            await self._batch._wait()
        return self.outcome()

    def outcome(self) -> RecordMetadata:
        """Return where the record lies, once it is done. Raises what kept it from being acknowledged."""
        assert self.is_done, "only a record that is done has an outcome"
        batch = self._batch
        if batch._error is not None:
            raise batch._error
        offset = batch._base_offset + self._place if batch._base_offset >= 0 else -1
        timestamp_ms = batch._append_time_ms if batch._append_time_ms >= 0 else self._timestamp_ms
        return RecordMetadata(batch.where.topic, batch.where.partition, offset, timestamp_ms)

    def __await__(self) -> Any:
        return self.result().__await__()

    @property
    def is_done(self) -> bool:
        """Return whether the record is acknowledged or has failed."""
        while (halves := self._batch._halves) is not None:
            first, second, middle = halves
            if self._place < middle:
                self._batch = first
            else:
                self._batch, self._place = second, self._place - middle
        return self._batch._done

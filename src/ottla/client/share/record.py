"""A record as a share consumer hands it over, and how an answer of a broker becomes a list of them.

A broker sends whole batches, and says which of their offsets the consumer has acquired. An acquired offset
without a record (of a marker, or one that compaction removed) is a gap, and is acknowledged as one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.client.consumer.record import ConsumerRecord, RecordMaker, Undeserializable
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.attributes import TimestampType
from ottla.records.batch import iter_batches
from ottla.records.codec import Headers
from ottla.records.errors import RecordsError
from ottla.wire.messages.share_fetch import PartitionData


class AcknowledgeType(IntEnum):
    """What became of a record, as it travels. A gap is an offset without a record."""

    GAP = 0
    ACCEPT = 1
    """It is done."""
    RELEASE = 2
    """It is not done: deliver it again."""
    REJECT = 3
    """It cannot be done: never deliver it again."""
    RENEW = 4
    """It is being worked on: keep it locked for this consumer."""


class ShareRecord(NamedTuple):
    """A record, where it lies, and how often it was delivered, this time included."""

    topic: str
    partition: int
    leader_epoch: int
    timestamp_type: TimestampType
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: Headers
    delivery_count: int

    @property
    def where(self) -> TopicPartition:
        """The partition it came from."""
        return TopicPartition(self.topic, self.partition)


class SharePartition(NamedTuple):
    """A partition as share sessions know it: a topic made again under the same name is another one."""

    topic_id: Uuid
    topic: str
    partition: int

    @property
    def where(self) -> TopicPartition:
        """The partition as people name it."""
        return TopicPartition(self.topic, self.partition)


class NotHeld(ClientError):
    """A record that this consumer does not hold: it was acknowledged, or went back to the group."""


class UnreadableRecord(ClientError):
    """A record whose key or value the deserializer did not take, or whose bytes are damaged."""


# The constructor of a named tuple is interpreted; this one is not.
_as_record: Final[Callable[[tuple[Any, ...]], ShareRecord]] = partial(tuple.__new__, ShareRecord)


@dataclass(slots=True)
class Acquired:
    """What one answer brought of one partition: records in order, and what to acknowledge unseen."""

    partition: SharePartition
    records: list[ShareRecord] = field(default_factory=list)
    unseen: list[tuple[int, int, AcknowledgeType]] = field(default_factory=list)
    failure: UnreadableRecord | None = None
    is_damaged: bool = False


def open_acquired(maker: RecordMaker, partition: SharePartition, data: PartitionData) -> Acquired:
    """Decode the records that were acquired. What cannot be read is given back, as Kafka's consumer does."""
    acquired = Acquired(partition)
    found = _found(maker, acquired, data)
    index = 0
    for item in data.acquired_records:
        expected, count = item.first_offset, (item.delivery_count,)
        while index < len(found) and found[index][0] < expected:
            index += 1
        while index < len(found) and (offset := found[index][0]) <= item.last_offset:
            record = found[index][1]
            if offset > expected:
                acquired.unseen.append((expected, offset - 1, AcknowledgeType.GAP))
            if record is None:
                acquired.unseen.append((offset, offset, AcknowledgeType.RELEASE))
            else:
                acquired.records.append(_as_record(record + count))
            expected = offset + 1
            index += 1
        if expected <= item.last_offset:
            # After damaged bytes nothing can be found any more. The group must not deliver those again.
            kind = AcknowledgeType.REJECT if acquired.is_damaged else AcknowledgeType.GAP
            acquired.unseen.append((expected, item.last_offset, kind))
    return acquired


def _found(
    maker: RecordMaker, acquired: Acquired, data: PartitionData
) -> list[tuple[int, ConsumerRecord | None]]:
    """Return all records of the answer by offset; None stands for one that the deserializer did not take."""
    where = acquired.partition.where
    found: list[tuple[int, ConsumerRecord | None]] = []
    try:
        for batch in iter_batches(memoryview(b"") if data.records is None else data.records):
            position = 0
            while not batch.is_control:
                try:
                    found += [(record.offset, record) for record in maker.records_of(where, batch, position)]
                    break
                except Undeserializable as error:
                    found += [(record.offset, record) for record in error.before]
                    found.append((error.offset, None))
                    position = error.offset + 1
                    acquired.failure = _undeserializable(error)
    except RecordsError as error:
        acquired.failure = UnreadableRecord(f"{where} has damaged bytes: {error}")
        acquired.is_damaged = True
    return found


def _undeserializable(error: Undeserializable) -> UnreadableRecord:
    failure = UnreadableRecord(
        f"{error.where} offset {error.offset} cannot be deserialized: it goes back to the group, which "
        "delivers it again until its delivery limit is reached"
    )
    failure.__cause__ = error.__cause__
    return failure

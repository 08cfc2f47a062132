"""A record as a consumer hands it over, and how whole batches become lists of them.

Making the objects is most of what a consumer does, so it is done for a batch at a time, and without
deserializers by functions that are not interpreted.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.client.errors import ClientError
from ottla.client.serializers import Deserializer, from_bytes
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType
from ottla.records.batch import BatchView, LegacyBatchView
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.codec import Headers


class ConsumerRecord(NamedTuple):
    """A record and where it lies. Key and value are what the deserializers made of them.

    The leader epoch is -1 where the broker did not tell it.
    """

    topic: str
    partition: int
    leader_epoch: int
    timestamp_type: TimestampType
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: Headers

    @property
    def where(self) -> TopicPartition:
        """The partition it came from."""
        return TopicPartition(self.topic, self.partition)


class Undeserializable(ClientError):
    """A record whose key or value the deserializer did not take. Seek past its offset to go on."""

    def __init__(self, where: TopicPartition, offset: int, before: list[ConsumerRecord]) -> None:
        super().__init__(f"{where} offset {offset} cannot be deserialized: seek to {offset + 1} to skip it")
        self.where = where
        self.offset = offset
        self.before = before


# The constructor of a named tuple is interpreted; this one is not.
_as_record: Final[Callable[[tuple[Any, ...]], ConsumerRecord]] = partial(tuple.__new__, ConsumerRecord)


class RecordMaker:
    """Turns batches into records, with the deserializers of one consumer."""

    def __init__(self, key_deserializer: Deserializer, value_deserializer: Deserializer) -> None:
        self._key = key_deserializer
        self._value = value_deserializer
        self._is_plain = key_deserializer is from_bytes and value_deserializer is from_bytes

    def records_of(self, where: TopicPartition, batch: BatchView, position: int) -> list[ConsumerRecord]:
        """Return the records of a batch from a position on. Raises `RecordsError` for damaged bytes."""
        if isinstance(batch, LegacyBatchView):
            prefix = (where.topic, where.partition, -1, batch.timestamp_type)
            flat = iter_batch_record_tuples(batch)
        else:
            header = batch.header
            prefix = (where.topic, where.partition, header.leader_epoch, header.timestamp_type)
            flat = iter_batch_record_tuples(batch, header=header)
        if self._is_plain:
            records = list(map(_as_record, map(prefix.__add__, flat)))
            # A broker sends whole batches: the first may begin before what was asked for.
            if records and records[0].offset < position:
                records = [record for record in records if record.offset >= position]
            return records
        key, value, topic = self._key, self._value, where.topic
        records = []
        for offset, timestamp, raw_key, raw_value, headers in flat:
            if offset < position:
                continue
            try:
                fields = (offset, timestamp, key(topic, raw_key), value(topic, raw_value), headers)
            except Exception as error:
                raise Undeserializable(where, offset, records) from error
            records.append(_as_record(prefix + fields))
        return records

"""A record as a consumer hands it over, and how whole batches become lists of them.

Making the objects is most of what a consumer does, so it is done for a batch at a time, and without
deserializers by functions that are not interpreted.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from ottla.client.errors import ClientError
from ottla.client.serializers import Deserializer, from_bytes
from ottla.model.ids import TopicPartition
from ottla.records.attributes import APPEND_TIME_BIT, CODEC_MASK, TimestampType, timestamp_type_of
from ottla.records.batch import ATTRIBUTES_OFFSET, HEADER_BYTES, BatchView, LegacyBatchView
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.bulk import decode_quickly
from ottla.records.codec import Headers, RecordTuple
from ottla.records.errors import CorruptBatch

_WRONG_CRC: Final = "the checksum does not match"


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

    def __init__(
        self, key_deserializer: Deserializer, value_deserializer: Deserializer, check_crcs: bool = True
    ) -> None:
        self._key = key_deserializer
        self._value = value_deserializer
        self._check_crcs = check_crcs
        self._is_plain = key_deserializer is from_bytes and value_deserializer is from_bytes
        # A deserializer may look for the id of a schema in the headers.
        self._key_with_headers = getattr(key_deserializer, "with_headers", None)
        self._value_with_headers = getattr(value_deserializer, "with_headers", None)

    def records_of(self, where: TopicPartition, batch: BatchView, position: int) -> list[ConsumerRecord]:
        """Return the records of a batch from a position on. Raises `RecordsError` for damaged bytes."""
        leader_epoch, timestamp_type, flat = self._open(batch)
        prefix = (where.topic, where.partition, leader_epoch, timestamp_type)
        if self._is_plain:
            records = list(map(_as_record, map(prefix.__add__, flat)))
            # A broker sends whole batches: the first may begin before what was asked for.
            if records and records[0].offset < position:
                records = [record for record in records if record.offset >= position]
            return records
        key, value, topic = self._key, self._value, where.topic
        reads_headers = self._key_with_headers or self._value_with_headers
        records = []
        for offset, timestamp, raw_key, raw_value, headers in flat:
            if offset < position:
                continue
            try:
                if reads_headers and headers:
                    fields = (
                        offset,
                        timestamp,
                        *self._by_headers(topic, raw_key, raw_value, headers),
                        headers,
                    )
                else:
                    fields = (offset, timestamp, key(topic, raw_key), value(topic, raw_value), headers)
            except Exception as error:
                raise Undeserializable(where, offset, records) from error
            records.append(_as_record(prefix + fields))
        return records

    def _by_headers(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> tuple[Any, Any]:
        by_key, by_value = self._key_with_headers, self._value_with_headers
        return (
            self._key(topic, key) if by_key is None else by_key(topic, key, headers),
            self._value(topic, value) if by_value is None else by_value(topic, value, headers),
        )

    def _open(self, batch: BatchView) -> tuple[int, TimestampType, Iterable[RecordTuple]]:
        """Check a batch and begin to decode it.

        Each property of a batch unpacks its field again. With 16 records in a batch of 16 KB that was a tenth
        of a consumer's time, so here the header is unpacked once.
        """
        if isinstance(batch, LegacyBatchView):
            if self._check_crcs and not batch.crc_is_valid():
                raise CorruptBatch(0, _WRONG_CRC)
            return -1, batch.timestamp_type, iter_batch_record_tuples(batch)
        header = batch.header
        if self._check_crcs and crc32c(batch.view[ATTRIBUTES_OFFSET : header.size_bytes]) != header.crc:
            raise CorruptBatch(0, _WRONG_CRC)
        attributes = header.attributes
        flat: Iterable[RecordTuple]
        if attributes & CODEC_MASK or attributes & APPEND_TIME_BIT:
            flat = iter_batch_record_tuples(batch, header=header)
        else:
            area = bytes(batch.view[HEADER_BYTES : header.size_bytes])
            flat = decode_quickly(area, header.count, header.base_offset, header.base_timestamp)
        return header.leader_epoch, timestamp_type_of(attributes), flat

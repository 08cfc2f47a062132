"""The header of a batch, read and patched where it lies."""

from collections.abc import Callable

import pytest
from crc32c import crc32c

from ottla.records.attributes import Codec, TimestampType
from ottla.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    BatchView,
    LegacyBatchView,
    iter_batches,
    last_sequence_of,
)
from ottla.records.builder import build_batch, seal_batch
from ottla.records.codec import Record
from ottla.records.errors import CorruptBatch, UnknownCodec

HEADER = BatchHeader(
    base_offset=2**40 + 1,
    batch_length=0,
    leader_epoch=7,
    magic=MAGIC,
    crc=0,
    attributes=0x7C,
    last_offset_delta=9,
    base_timestamp=1_700_000_000_000,
    max_timestamp=1_700_000_000_005,
    producer_id=2**50,
    producer_epoch=300,
    base_sequence=2**31 - 4,
    count=10,
)


def sealed(header: BatchHeader = HEADER, area: bytes = b"some records") -> BatchView:
    return BatchView(memoryview(seal_batch(header, area)))


def test_every_field_of_the_header_is_also_a_field_of_the_view() -> None:
    batch = sealed()
    header = batch.header
    properties = [name for name, value in vars(BatchHeader).items() if isinstance(value, property)]

    assert len(properties) > 8
    for name in (*BatchHeader._fields, *properties):
        assert getattr(batch, name) == getattr(header, name), name


def test_header_says_what_was_written() -> None:
    header = sealed().header

    assert header._replace(batch_length=0, crc=0) == HEADER
    assert header.size_bytes == HEADER_BYTES + len(b"some records") == LOG_OVERHEAD + header.batch_length
    assert (header.last_offset, header.next_offset) == (2**40 + 10, 2**40 + 11)
    assert header.codec is Codec.ZSTD
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert header.is_control
    assert header.has_delete_horizon
    assert header.delete_horizon_ms == HEADER.base_timestamp
    assert header.has_producer


def test_a_plain_batch_has_none_of_the_flags() -> None:
    header = sealed(HEADER._replace(attributes=0, producer_id=-1)).header

    assert header.codec is Codec.NONE
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert (header.is_transactional, header.is_control, header.has_delete_horizon) == (False, False, False)
    assert header.delete_horizon_ms is None
    assert not header.has_producer


@pytest.mark.parametrize(
    ("base_sequence", "delta", "last"),
    [
        (0, 0, 0),
        (5, 4, 9),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 4, 9, 5),
        (2**31 - 1, 2**31 - 1, 2**31 - 2),
        (-1, 9, -1),
    ],
)
def test_sequence_wraps_from_its_maximum_to_zero(base_sequence: int, delta: int, last: int) -> None:
    assert last_sequence_of(base_sequence, delta) == last


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_unknown_codec_bits_raise(codec_id: int) -> None:
    with pytest.raises(UnknownCodec, match=str(codec_id)):
        _ = sealed(HEADER._replace(attributes=codec_id)).codec


def test_offset_and_leader_epoch_are_outside_the_checksum() -> None:
    batch = sealed()
    crc = batch.crc

    batch.view[:8] = (123456789012).to_bytes(8)
    batch.view[12:16] = (99).to_bytes(4)

    assert (batch.base_offset, batch.leader_epoch) == (123456789012, 99)
    assert batch.crc == crc
    assert batch.crc_is_valid()


@pytest.mark.parametrize(
    "patch",
    [
        lambda batch: batch.patch_append_time(1_800_000_000_000),
        lambda batch: batch.patch_max_timestamp(1_800_000_000_000),
        lambda batch: batch.clear_append_time(),
        lambda batch: batch.clear_append_time(1_800_000_000_000),
    ],
)
def test_time_is_inside_the_checksum(patch: Callable[[BatchView], None]) -> None:
    batch = sealed()
    crc = batch.crc

    patch(batch)

    assert batch.crc != crc
    assert batch.crc == crc32c(batch.view[21:])
    assert batch.crc_is_valid()


def test_append_time_can_be_set_and_cleared() -> None:
    batch = sealed(HEADER._replace(attributes=0x11))
    original = bytes(batch.view)

    batch.patch_append_time(5)
    assert (batch.timestamp_type, batch.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 5)
    assert batch.attributes == 0x19, "the other bits stay"

    batch.clear_append_time(HEADER.max_timestamp)
    assert batch.view == original


def test_clearing_append_time_alone_keeps_the_timestamp() -> None:
    batch = sealed()
    batch.clear_append_time()
    assert (batch.timestamp_type, batch.max_timestamp) == (TimestampType.CREATE_TIME, HEADER.max_timestamp)


@pytest.mark.parametrize("at", [21, 22, 30, HEADER_BYTES - 1, HEADER_BYTES, -1])
def test_checksum_covers_attributes_to_the_last_byte(at: int) -> None:
    batch = sealed()
    batch.view[at] ^= 1
    assert not batch.crc_is_valid()


def test_a_view_may_reach_beyond_its_batch() -> None:
    whole = seal_batch(HEADER, b"some records")
    batch = BatchView(memoryview(whole + b"the next batch"))

    assert batch.crc_is_valid()
    assert bytes(batch.records_bytes) == b"some records"
    batch.patch_append_time(8)
    assert batch.crc_is_valid()


def test_a_view_of_the_header_alone_has_no_records() -> None:
    batch = BatchView(memoryview(seal_batch(HEADER, b"some records"))[:HEADER_BYTES])

    assert batch.last_offset == HEADER.last_offset
    with pytest.raises(CorruptBatch, match="61 are there"):
        _ = batch.records_bytes
    with pytest.raises(CorruptBatch):
        batch.crc_is_valid()


def test_too_few_bytes_for_a_header_raise() -> None:
    with pytest.raises(CorruptBatch, match="60 bytes"):
        BatchView(memoryview(bytes(60)))


def one_batch(offset: int) -> bytearray:
    return build_batch([Record(offset, 1, b"key", b"value")], base_offset=offset)


def test_batches_are_walked_up_to_an_incomplete_tail() -> None:
    data = one_batch(3) + one_batch(4) + one_batch(5)

    for cut in range(len(data) + 1):
        whole = cut // len(one_batch(0))
        offsets = [batch.base_offset for batch in iter_batches(memoryview(data)[:cut])]
        assert offsets == [3, 4, 5][:whole], cut


def test_walked_batches_are_views_that_can_be_patched() -> None:
    data = one_batch(3) + one_batch(4)
    for batch in iter_batches(memoryview(data)):
        assert len(batch.view) == batch.size_bytes
        batch.patch_max_timestamp(batch.base_offset + 100)
    assert [batch.max_timestamp for batch in iter_batches(memoryview(data))] == [103, 104]


@pytest.mark.parametrize("length", [0, -1, -(2**31), 48])
def test_an_impossible_length_raises_with_its_position(length: int) -> None:
    bad = one_batch(4)
    bad[8:12] = length.to_bytes(4, "big", signed=True)
    data = one_batch(3) + bad

    walk = iter_batches(memoryview(data))
    assert next(walk).base_offset == 3
    with pytest.raises(CorruptBatch, match=f"length {length} ") as caught:
        next(walk)
    assert caught.value.position == len(one_batch(3))


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_an_unknown_magic_raises(magic: int) -> None:
    data = one_batch(3)
    data[16] = magic
    with pytest.raises(CorruptBatch, match=f"magic {magic}"):
        next(iter_batches(memoryview(data)))


def test_zeros_after_the_last_batch_raise() -> None:
    """A preallocated or torn file ends in zeros, which are no batch."""
    walk = iter_batches(memoryview(one_batch(3) + bytes(100)))
    next(walk)
    with pytest.raises(CorruptBatch, match="length 0"):
        next(walk)


def test_a_huge_length_is_an_incomplete_tail() -> None:
    data = one_batch(3)
    data[8:12] = (2**31 - 1).to_bytes(4, "big")
    assert list(iter_batches(memoryview(data))) == []


def legacy_message(magic: int) -> bytes:
    timestamp = (1_500_000_000_000).to_bytes(8, "big") if magic else b""
    body = bytes([magic, 0]) + timestamp + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x01v"
    return (42).to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + bytes(4) + body


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_answer_as_batches_do(magic: int) -> None:
    data = legacy_message(magic) + one_batch(43)
    old, new = iter_batches(memoryview(data))

    assert isinstance(old, LegacyBatchView)
    assert not isinstance(new, LegacyBatchView)
    assert (old.magic, old.base_offset, old.last_offset, old.next_offset) == (magic, 42, 42, 43)
    assert old.count == 1
    assert old.max_timestamp == (1_500_000_000_000 if magic else -1)
    assert old.timestamp_type is (TimestampType.CREATE_TIME if magic else TimestampType.NONE)
    assert (old.leader_epoch, old.producer_id, old.base_sequence, old.last_sequence) == (-1, -1, -1, -1)
    assert (old.is_control, old.is_transactional, old.has_producer) == (False, False, False)
    assert old.delete_horizon_ms is None
    assert not old.crc_is_valid()


def test_old_messages_are_not_patched() -> None:
    (old,) = iter_batches(memoryview(bytearray(legacy_message(1))))
    before = bytes(old.view)
    for patch in (
        old.patch_append_time,
        old.patch_max_timestamp,
        old.clear_append_time,
    ):
        with pytest.raises(CorruptBatch, match="format 1"):
            patch(5)
    with pytest.raises(CorruptBatch, match="no batch header"):
        _ = old.header
    assert old.view == before


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 22)])
def test_old_messages_have_a_least_size(magic: int, least: int) -> None:
    data = bytearray(legacy_message(magic))
    data[8:12] = (least - 1).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match=f"below the least, {least}"):
        next(iter_batches(memoryview(data)))

"""Records and batches survive the way there and back, and hostile bytes only raise what they should."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.property.record_strategies import INT64, batch_fields, damaged, records
from tests.unit.records.reading import decode_records, scan_batch
from tests.unit.storage.compaction.rewritten import rewrite

from ottla.records.attributes import Codec
from ottla.records.batch import HEADER_BYTES, BatchHeader, BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch, seal_batch
from ottla.records.codec import (
    Record,
    decode_varlong,
    encode_records,
    encode_varint,
    scan_records,
)
from ottla.records.compression import DecompressionLimits, compress, decompress
from ottla.records.errors import InvalidRecord, RecordsError

CODECS = [codec for codec in Codec if codec]
SMALL_LIMITS = DecompressionLimits(bytes_max=100_000, ratio_max=100, ratio_free_bytes=10_000)


@given(INT64)
def test_numbers_survive(number: int) -> None:
    data = encode_varint(number)
    assert decode_varlong(data, 0, len(data), 0) == (number, len(data))


@given(records(base_offset=5), INT64)
def test_records_survive(made: list[Record], base_timestamp: int) -> None:
    data = encode_records(made, 5, base_timestamp)
    assert decode_records(data, len(made), 5, base_timestamp) == made


@given(records(), INT64)
def test_scanning_sees_what_decoding_sees(made: list[Record], base_timestamp: int) -> None:
    data = encode_records(made, 0, base_timestamp)
    decoded = decode_records(data, len(made), 0, 0)
    assert list(scan_records(data, len(made))) == [
        (record.offset, record.timestamp, record.key is not None, record.value is not None)
        for record in decoded
    ]


@given(st.data(), batch_fields())
def test_batches_survive(data: st.DataObject, fields: dict[str, Any]) -> None:
    made = data.draw(records(base_offset=fields["base_offset"]))
    (batch,) = iter_batches(memoryview(build_batch(made, **fields)))

    assert batch.crc_is_valid()
    seen = list(iter_batch_records(batch))
    if fields["append_time"] is None:
        assert seen == made
    else:
        assert seen == [record._replace(timestamp=fields["append_time"]) for record in made]
    for name in ("base_offset", "leader_epoch", "codec", "producer_id", "producer_epoch", "base_sequence"):
        assert getattr(batch, name) == fields[name], name
    for name in ("is_transactional", "is_control", "delete_horizon_ms"):
        assert getattr(batch, name) == fields[name], name
    assert (batch.count, batch.last_offset) == (len(made), made[-1].offset)


@given(st.data(), batch_fields())
def test_rewritten_batches_keep_their_records(data: st.DataObject, fields: dict[str, Any]) -> None:
    made = data.draw(records(base_offset=fields["base_offset"]))
    kept = data.draw(st.lists(st.sampled_from(made), min_size=1, unique_by=lambda record: record.offset))
    kept.sort(key=lambda record: record.offset)
    batch = BatchView(memoryview(build_batch(made, **fields)))

    offsets = {record.offset for record in kept}
    rewritten = BatchView(memoryview(rewrite(batch, offsets)))

    left = [record for record in iter_batch_records(batch) if record.offset in offsets]
    assert list(iter_batch_records(rewritten)) == left
    assert (rewritten.base_offset, rewritten.last_offset) == (batch.base_offset, batch.last_offset)
    assert rewritten.last_sequence == batch.last_sequence
    assert rewritten.delete_horizon_ms == batch.delete_horizon_ms
    assert rewritten.crc_is_valid()


@pytest.mark.parametrize("codec", Codec)
@given(st.data())
def test_compressed_bytes_survive(codec: Codec, data: st.DataObject) -> None:
    # Random bytes do not compress: repeat some, so that blocks of both kinds are written.
    parts = data.draw(st.lists(st.tuples(st.binary(max_size=200), st.integers(1, 900)), max_size=6))
    plain = b"".join(part * times for part, times in parts)
    assert decompress(codec, compress(codec, plain)) == plain


@given(st.binary(max_size=300))
@example(bytes(17))
def test_any_bytes_walked_as_batches_raise_only_what_they_should(data: bytes) -> None:
    read_everything(data)


@pytest.mark.parametrize("codec", Codec)
@given(st.data())
def test_damaged_batches_raise_only_what_they_should(codec: Codec, data: st.DataObject) -> None:
    made = data.draw(records())
    whole = build_batch(made, codec=codec)
    read_everything(data.draw(damaged(whole)))
    # Behind a right checksum the damage reaches the records.
    area = data.draw(damaged(whole[HEADER_BYTES:]))
    count = data.draw(st.sampled_from((0, 1, len(made), len(made) + 1, -1, 2**31 - 1)))
    header = BatchView(memoryview(whole)).header
    attributes = data.draw(st.sampled_from((header.attributes, 0, 1, 2, 3, 4, 7)))
    read_everything(seal_batch(header._replace(count=count, attributes=attributes), area))


def read_everything(data: bytes | bytearray) -> None:
    """Read all there is to read. Whatever is wrong must be a `RecordsError`."""
    try:
        for batch in iter_batches(memoryview(data)):
            batch.crc_is_valid()
            for _ in iter_batch_records(batch, SMALL_LIMITS):
                pass
            for _ in scan_batch(batch, SMALL_LIMITS):
                pass
    except RecordsError:
        pass


@given(st.data())
def test_scanning_and_decoding_refuse_the_same_records(data: st.DataObject) -> None:
    made = data.draw(records())
    area = data.draw(damaged(encode_records(made, 0, 0)))
    count = data.draw(st.sampled_from((len(made), len(made) + 1, 1)))
    assert outcome_of_decoding(area, count) == outcome_of_scanning(area, count)


def outcome_of_decoding(area: bytes, count: int) -> list[tuple[int, int, bool, bool]] | str:
    try:
        return [
            (record.offset, record.timestamp, record.key is not None, record.value is not None)
            for record in decode_records(area, count, 0, 0)
        ]
    except InvalidRecord as error:
        return str(error)


def outcome_of_scanning(area: bytes, count: int) -> list[tuple[int, int, bool, bool]] | str:
    try:
        return list(scan_records(area, count))
    except InvalidRecord as error:
        return str(error)


@pytest.mark.parametrize("codec", CODECS)
@given(st.data())
def test_damaged_compression_raises_only_what_it_should(codec: Codec, data: st.DataObject) -> None:
    plain = data.draw(st.binary(max_size=100)) * data.draw(st.integers(0, 2000))
    packed = data.draw(damaged(compress(codec, plain)))
    try:
        got = decompress(codec, packed, SMALL_LIMITS)
    except RecordsError:
        return
    assert len(got) <= SMALL_LIMITS.limit_bytes(len(packed))


@pytest.mark.parametrize("codec", CODECS)
@given(st.binary(max_size=200))
def test_any_bytes_decompressed_raise_only_what_they_should(codec: Codec, data: bytes) -> None:
    try:
        decompress(codec, data, SMALL_LIMITS)
    except RecordsError:
        return


def test_headers_survive_being_packed() -> None:
    fields = list(range(1, 14))
    header = BatchHeader(*fields)._replace(magic=2)
    assert BatchView(memoryview(seal_batch(header, b""))).header._replace(crc=5, batch_length=2) == header


MEASURE_BOMB = """
import resource, sys, zlib
from ottla.records.attributes import Codec
from ottla.records.compression import DecompressionLimits, compress, decompress
from ottla.records.errors import DecompressionTooLarge

codec = Codec[sys.argv[1]]
MIB = 1024 * 1024
if codec is Codec.GZIP:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([deflate.compress(bytes(MIB)) for _ in range(128)] + [deflate.flush()])
elif codec is Codec.ZSTD:
    run = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"\\x00"
    bomb = bytes.fromhex("28b52ffd0058") + run * 8 * 2048 + bytes.fromhex("010000")
else:
    one = compress(codec, bytes(32 * 1024))
    start, end = (16, len(one)) if codec is Codec.SNAPPY else (7, len(one) - 4)
    bomb = one[:start] + one[start:end] * 65536 + one[end:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, bomb, DecompressionLimits(bytes_max=16 * MIB, ratio_max=10**9))
except DecompressionTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("codec", CODECS)
def test_a_decompression_bomb_takes_no_more_memory_than_allowed(codec: Codec) -> None:
    """Hundreds of megabytes, packed. A process of its own tells how much memory unpacking it took."""
    command = [sys.executable, "-c", MEASURE_BOMB, codec.name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown_kib = int(done.stdout)
    # The limit of 16 MiB, its parts being joined, and a window.
    assert grown_kib < 64 * 1024

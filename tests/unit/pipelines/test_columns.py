"""Columns hold what the records hold, whatever the batches look like."""

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.partitioner import murmur2
from ottla.pipelines.columns.decode import RecordColumns, _find_starts, _Opened, decode_columns
from ottla.pipelines.columns.encode import encode_area
from ottla.pipelines.columns.partitions import choose_partitions, murmur2_column, rows_by_partition
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.builder import build_batch, empty_batch, seal_batch
from ottla.records.codec import RecordTuple, encode_records
from ottla.records.errors import CorruptBatch, InvalidRecord

CONTENT = st.none() | st.binary(max_size=80) | st.sampled_from([b"x" * 63, b"y" * 64, b"z" * 9000])
TIMES = st.sampled_from([0, 1, 63, 64, 8191, 8192, 10**6, 2**40, -5])
ROWS = st.lists(st.tuples(TIMES, CONTENT, CONTENT), min_size=1, max_size=30)


def records_of(rows: list[tuple[int, bytes | None, bytes | None]], base: int = 100) -> list[RecordTuple]:
    return [(base + i, 1_700_000_000_000 + t, key, value, ()) for i, (t, key, value) in enumerate(rows)]


def view(batch: bytearray) -> BatchView:
    return BatchView(memoryview(batch))


def as_records(columns: RecordColumns) -> list[RecordTuple]:
    return [
        (int(offset), int(timestamp), key.as_py(), value.as_py(), ())
        for offset, timestamp, key, value in zip(
            columns.offsets, columns.timestamps_ms, columns.keys, columns.values, strict=True
        )
    ]


@given(ROWS, st.sampled_from(list(Codec)))
def test_columns_hold_what_the_records_hold(
    rows: list[tuple[int, bytes | None, bytes | None]], codec: Codec
) -> None:
    records = records_of(rows)
    (columns,) = decode_columns([view(build_batch(records, base_offset=100, codec=codec))])

    assert as_records(columns) == records
    assert columns.timestamp_types.tolist() == [0] * len(records)


def test_batches_of_a_fetch_become_columns_together() -> None:
    batches = [
        build_batch(records_of([(0, b"a", b"1"), (5, None, None)], base=10), base_offset=10),
        build_batch(records_of([(7, b"b", b"2")], base=20), base_offset=20, append_time=42),
    ]
    (columns,) = decode_columns(map(view, batches))

    assert columns.offsets.tolist() == [10, 11, 20]
    assert columns.timestamps_ms.tolist() == [1_700_000_000_000, 1_700_000_000_005, 42]
    assert columns.timestamp_types.tolist() == [0, 0, 1]
    assert columns.keys.to_pylist() == [b"a", None, b"b"]
    assert columns.values.to_pylist() == [b"1", None, b"2"]


def test_gaps_of_compaction_and_empty_batches_are_no_trouble() -> None:
    kept = [(104, 1, b"k", b"v", ()), (109, 2, b"l", b"w", ())]
    compacted = build_batch(kept, base_offset=100, last_offset=110)
    empty = empty_batch(view(compacted).header._replace(base_offset=111))
    (columns,) = decode_columns([view(compacted), view(empty)])

    assert columns.offsets.tolist() == [104, 109]


def test_only_the_records_between_two_offsets_are_kept() -> None:
    batch = build_batch(records_of([(0, b"k", b"%d" % i) for i in range(10)]), base_offset=100)
    (columns,) = decode_columns([view(batch)])

    assert columns.between(103, 106).values.to_pylist() == [b"3", b"4", b"5"]
    assert columns.between(0, 1000) is columns


def test_headers_come_with_the_rows_when_they_are_asked_for() -> None:
    records: list[RecordTuple] = [
        (0, 5, b"k", b"v", (("trace", b"1"), ("empty", None))),
        (1, 5, b"k", b"v", ()),
    ]
    batch = view(build_batch(records))
    (plain,) = decode_columns([batch])
    (full,) = decode_columns([batch], with_headers=True)

    assert plain.values.to_pylist() == [b"v", b"v"]
    assert plain.headers is None
    assert full.headers is not None
    assert full.headers.to_pylist() == [
        [{"key": "trace", "value": b"1"}, {"key": "empty", "value": None}],
        None,
    ]


@pytest.mark.parametrize("sizes", [[1, 50], [56, 57, 58], [8182, 8183, 8184, 8185], [60_000, 3, 1_000]])
def test_where_records_start_is_found_from_their_lengths_alone(sizes: list[int]) -> None:
    # Lengths of one, two and three bytes, and the edges between them.
    records = records_of([(0, None, b"v" * size) for size in sizes])
    area = encode_records(records, 100, records[0][1])
    starts = [len(encode_records(records[:count], 100, records[0][1])) for count in range(len(records))]
    opened: Any = [SimpleNamespace(batch=SimpleNamespace(count=len(records)))]
    assert _starts(opened, area, area) == starts
    # Of several batches each begins where the one before ends.
    assert _starts([*opened, *opened], area, area + area) == [*starts, *(len(area) + at for at in starts)]
    for wrong in (area[:-1], area + b"\0"):
        assert _starts(opened, wrong, wrong + bytes(4)) is None
    opened[0].batch.count = 0
    assert _starts(opened, area, area) is None


def _starts(opened: Any, piece: bytes, area: bytes) -> list[int] | None:
    found = _find_starts(area, [_Opened(item.batch, piece) for item in opened])
    return None if found is None else found.tolist()


def test_wrong_checksum_is_told() -> None:
    batch = build_batch(records_of([(0, b"k", b"v")]))
    batch[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        list(decode_columns([view(batch)]))


@pytest.mark.parametrize("seed", range(300))
def test_damaged_records_are_refused_or_read_as_the_codec_reads_them(seed: int) -> None:
    rng = random.Random(seed)
    records = records_of([(i, b"key%d" % i, rng.randbytes(rng.randrange(150))) for i in range(8)])
    if seed % 2:
        headers = (("some", b"header"), ("nothing", None))
        records = [(*record[:4], headers) for record in records]
    sound = view(build_batch(records, base_offset=100))
    area = bytearray(sound.records_bytes)
    for _ in range(rng.randrange(1, 4)):
        area[rng.randrange(len(area))] = rng.randrange(256)
    batch = view(seal_batch(sound.header, bytes(area)))
    try:
        expected = [(o, t, k, v, ()) for o, t, k, v, _ in iter_batch_record_tuples(batch)]
    except InvalidRecord:
        with pytest.raises(InvalidRecord):
            list(decode_columns([batch]))
    else:
        assert [row for columns in decode_columns([batch]) for row in as_records(columns)] == expected


@given(ROWS)
def test_area_is_what_the_codec_encodes(rows: list[tuple[int, bytes | None, bytes | None]]) -> None:
    records = records_of(rows, base=0)
    # A slice of a larger column, as tasks have them.
    keys = pa.array([b"before", *(record[2] for record in records)], pa.binary())[1:]
    values = pa.array([b"before", *(record[3] for record in records)], pa.binary())[1:]
    times = np.array([record[1] for record in records])

    assert encode_area(keys, values, times) == encode_records(records, 0, records[0][1])


def test_area_with_headers_is_what_the_codec_encodes() -> None:
    headers = pa.array([[{"key": "h", "value": b"1"}], None])
    keys, values = pa.array([b"k", None], pa.binary()), pa.array([b"v", b"w"])
    expected = encode_records([(0, 7, b"k", b"v", (("h", b"1"),)), (1, 7, None, b"w", ())], 0, 7)

    assert encode_area(keys, values, np.array([7, 7]), headers) == expected


@given(st.lists(st.none() | st.binary(max_size=40), min_size=1))
def test_keys_go_where_the_client_puts_them(keys: list[bytes | None]) -> None:
    column = pa.array([b"before", *keys], pa.binary())[1:]
    hashes = murmur2_column(column).tolist()

    assert [h for h, key in zip(hashes, keys, strict=True) if key is not None] == [
        murmur2(key) for key in keys if key is not None
    ]


def test_given_partitions_win_and_keyless_rows_take_turns() -> None:
    keys = pa.array([None, b"k", None, None], pa.binary())
    given_ones = pa.array([None, 4, None, 2], pa.int32())

    assert choose_partitions(keys, given_ones, 5, 3).tolist() == [3, 4, 4, 2]
    assert choose_partitions(keys, None, 5, 3).tolist()[2:] == [4, 0]


def test_rows_of_a_partition_keep_their_order() -> None:
    pieces = rows_by_partition(np.array([1, 0, 1, 2, 0, 1]))

    assert [(number, rows.to_pylist()) for number, rows in pieces] == [(0, [1, 4]), (1, [0, 2, 5]), (2, [3])]


@pytest.mark.parametrize("partitions", [1, 2, 3, 16, 1_000])
def test_keyed_rows_are_where_other_clients_look_for_them(partitions: int) -> None:
    keys = [b"customer-%d" % number for number in range(200)]
    hashes = [murmur2(key) for key in keys]
    assert any(found >> 31 for found in hashes), "a hash may be negative, as Java has it"
    chosen = choose_partitions(pa.array(keys, pa.binary()), None, partitions, 0).tolist()
    assert chosen == [(found & 0x7FFFFFFF) % partitions for found in hashes]

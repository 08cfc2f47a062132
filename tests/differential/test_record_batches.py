"""Batches that we build mean the same to Apache Kafka's classes, and theirs to us."""

import zlib
from collections.abc import Sequence
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from tests.java.oracle import Oracle
from tests.java.record_batches import RecordBatches, Refused, hash_of_records
from tests.unit.records.reading import header_of
from tests.unit.storage.compaction.rewritten import rewrite

from ottla.records.attributes import Codec
from ottla.records.batch import HEADER_BYTES, BatchView, iter_batches, last_sequence_of
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch, empty_batch, seal_batch
from ottla.records.codec import Record
from ottla.records.control import (
    ControlType,
    EndTxnMarker,
    build_end_txn_batch,
    decode_control_type,
    decode_end_txn_marker,
    encode_control_key,
)
from ottla.records.errors import RecordsError

NOW = 1_700_000_000_000

# Codec and level with which Kafka's libraries give the very bytes that ours give. Snappy is another
# implementation there, zstd another version, and LZ4 has no high compression below level 3 here.
GZIP_LEVELS: list[tuple[Codec, int | None]] = [(Codec.GZIP, level) for level in (None, 1, 5, 9)]
# Some systems have zlib-ng in zlib's place, which compresses to other bytes.
HAS_PLAIN_ZLIB = "ng" not in zlib.ZLIB_RUNTIME_VERSION
SAME_BYTES: list[tuple[Codec, int | None]] = [
    (Codec.NONE, None),
    *(GZIP_LEVELS if HAS_PLAIN_ZLIB else ()),
    *((Codec.LZ4, level) for level in (None, 3, 8, 9, 12, 17)),
]
SAME_MEANING: list[tuple[Codec, int | None]] = [
    (Codec.SNAPPY, None),
    *(() if HAS_PLAIN_ZLIB else GZIP_LEVELS),
    *((Codec.LZ4, level) for level in (1, 2)),
    *((Codec.ZSTD, level) for level in (None, -5, 1, 3, 12)),
]

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "idempotent": {"producer_id": 4000, "producer_epoch": 3, "base_sequence": 2**31 - 3, "leader_epoch": 7},
    "transactional": {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True},
    "append time": {"append_time": NOW + 5},
    "delete horizon": {"delete_horizon_ms": NOW + 86_400_000},
    "high offset": {"base_offset": 2**40, "leader_epoch": 2**31 - 1},
}


@pytest.fixture
def kafka(oracle: Oracle) -> RecordBatches:
    return RecordBatches(oracle)


def make_records(count: int, base_offset: int = 0, seed: int = 1) -> list[Record]:
    random = Random(seed)
    headers = (("trace", b"\x00\xff"), ("", None), ("trace", b""), ("ключ", b"1"))
    return [
        Record(
            base_offset + index,
            NOW + random.randrange(-5000, 200_000),
            random.choice((None, b"", b"key-%d" % random.randrange(9), b"k" * 100)),
            random.choice((None, b"", b"value %d " % index * random.randrange(30), random.randbytes(70))),
            headers[: random.randrange(5)] if index % 3 == 0 else (),
        )
        for index in range(count)
    ]


def assert_kafka_reads_it(kafka: RecordBatches, data: bytes | bytearray) -> None:
    """Kafka must see in the batch what we see in it."""
    batch = BatchView(memoryview(data))
    (seen,) = kafka.read(data)
    records = seen.pop("records")
    for name, value in seen.items():
        assert getattr(batch, name) == value, name
    assert batch.has_delete_horizon == ("delete_horizon_ms" in seen)
    ours = [described(batch, record) for record in iter_batch_records(batch)]
    assert records == (hash_of_records(ours) if isinstance(records, str) else ours)


def described(batch: BatchView, record: Record) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": last_sequence_of(batch.base_sequence, record.offset - batch.base_offset),
        "key": None if record.key is None else record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "headers": [
            [java_text(key), None if value is None else value.hex()] for key, value in record.headers
        ],
    }
    if batch.is_control:
        control_type = decode_control_type(record.key)
        seen["control_type"] = control_type.name
        if control_type in (ControlType.ABORT, ControlType.COMMIT):
            seen["coordinator_epoch"] = decode_end_txn_marker(record).coordinator_epoch
    return seen


def java_text(key: str) -> str:
    """Java replaces what is no UTF-8, where we keep it."""
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("codec", "level"), SAME_BYTES)
def test_our_batch_is_to_the_byte_what_kafka_builds(
    kafka: RecordBatches, codec: Codec, level: int | None, kind: str
) -> None:
    fields = {"codec": codec, "level": level, **KINDS[kind]}
    for count in (1, 70, 1500):
        records = make_records(count, fields.get("base_offset", 0))
        ours = build_batch(records, **fields)
        assert sha256(ours).digest() == kafka.write(records, **fields, briefly=True)
    assert_kafka_reads_it(kafka, ours)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("codec", "level"), SAME_MEANING)
def test_our_batch_means_what_kafka_builds(
    kafka: RecordBatches, codec: Codec, level: int | None, kind: str
) -> None:
    fields = {"codec": codec, "level": level, **KINDS[kind]}
    # What Kafka builds is recorded: large ones for one kind.
    for count in (1, 70, 1500) if kind == "plain" else (1, 70):
        records = make_records(count, fields.get("base_offset", 0))
        ours = build_batch(records, **fields)
        theirs = kafka.write(records, **fields)
        assert_kafka_reads_it(kafka, ours)
        assert_kafka_reads_it(kafka, theirs)
        assert header_of(ours)._replace(batch_length=0, crc=0) == header_of(theirs)._replace(
            batch_length=0, crc=0
        )


@pytest.mark.parametrize("level", [19, 22])
def test_kafka_reads_our_highest_levels(kafka: RecordBatches, level: int) -> None:
    """Kafka itself takes a second and 833 MB to compress a batch at level 22, so it is not asked to."""
    assert_kafka_reads_it(kafka, build_batch(make_records(1500), codec=Codec.ZSTD, level=level))


@pytest.mark.parametrize("is_commit", [True, False])
def test_our_transaction_marker_is_to_the_byte_what_kafka_builds(
    kafka: RecordBatches, is_commit: bool
) -> None:
    fields = {
        "base_offset": 77,
        "timestamp": NOW,
        "leader_epoch": 3,
        "producer_id": 2**40,
        "producer_epoch": 32767,
    }
    ours = build_end_txn_batch(EndTxnMarker(is_commit, 12), **fields)
    assert ours == kafka.write_marker(is_commit=is_commit, coordinator_epoch=12, **fields)
    assert_kafka_reads_it(kafka, ours)


@pytest.mark.parametrize("control_type", [kind for kind in ControlType if kind > ControlType.COMMIT])
def test_kafka_knows_the_types_of_our_control_records(
    kafka: RecordBatches, control_type: ControlType
) -> None:
    records = [Record(0, NOW, encode_control_key(control_type), b"\x00\x00")]
    ours = build_batch(records, is_control=True)
    assert ours == kafka.write(records, is_control=True)
    assert_kafka_reads_it(kafka, ours)


@pytest.mark.parametrize("retain_empty", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", [codec for codec, level in SAME_BYTES if level is None])
def test_filtered_batches_are_to_the_byte_what_kafkas_cleaner_makes(
    kafka: RecordBatches, codec: Codec, kind: str, retain_empty: bool
) -> None:
    fields = {"codec": codec, **KINDS[kind]}
    base_offset = fields.get("base_offset", 0)
    batch = build_batch(make_records(12, base_offset), **fields)
    random = Random(2)
    choices = [[], list(range(12)), [11], [0], *(random.sample(range(12), 5) for _ in range(6))]
    for deltas in choices:
        kept = {base_offset + delta for delta in deltas}
        theirs = kafka.filter(batch, kept=kept, retain_empty=retain_empty, now=NOW, delete_retention=1000)
        assert clean(BatchView(memoryview(batch)), kept, retain_empty, NOW + 1000) == theirs


def clean(
    batch: BatchView, kept: set[int], retain_empty: bool, horizon: int
) -> bytes | bytearray | memoryview:
    """Decide as Kafka's cleaner does: verbatim, rebuilt, emptied, or gone."""
    records = list(iter_batch_records(batch))
    left = [record for record in records if record.offset in kept]
    if not left:
        return empty_batch(batch.header) if retain_empty else b""
    needs_horizon = not batch.has_delete_horizon and any(record.value is None for record in left)
    if len(left) == len(records) and not needs_horizon:
        return batch.view
    return rewrite(batch, kept, horizon if needs_horizon else None)


@pytest.mark.parametrize("seed", range(8))
def test_kafka_and_we_refuse_the_same_damaged_records(kafka: RecordBatches, seed: int) -> None:
    random = Random(seed)
    for _ in range(150):
        data = damaged_batch(random, Codec.NONE)
        assert read_by_us(data) == read_by_kafka(kafka, data), data.hex()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_kafka_reads_the_same_in_damaged_compression_that_we_do_not_refuse(
    kafka: RecordBatches, codec: Codec, seed: int
) -> None:
    random = Random(seed)
    for _ in range(100):
        data = damaged_batch(random, codec)
        ours = read_by_us(data)
        if ours is not None:
            assert ours == read_by_kafka(kafka, data), data.hex()


def damaged_batch(random: Random, codec: Codec) -> bytearray:
    """Build a batch that is wrong inside, but whose length and checksum are right."""
    batch = build_batch(make_records(random.randrange(1, 4), seed=random.randrange(1000)), codec=codec)
    header = header_of(batch)
    area = batch[HEADER_BYTES:]
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(area))
        match random.randrange(5):
            case 0:
                area[at] = random.choice((0, 1, 3, 0x7F, 0x80, 0x81, 0xFF))
            case 1:
                area[at] ^= 1 << random.randrange(8)
            case 2:
                area[at:at] = bytes([random.choice((0, 1, 2, 0x80, 0xFF))])
            case 3 if len(area) > 1:
                del area[at]
            case _:
                # Of a compressed batch without records Kafka reads the start, and we nothing.
                none = 1 if codec else 0
                header = header._replace(count=random.choice((header.count, 4, 1, none, -1, 2**31 - 1)))
    return seal_batch(header, bytes(area))


def read_by_us(data: bytearray) -> list[dict[str, Any]] | None:
    (batch,) = iter_batches(memoryview(data))
    try:
        return [described(batch, record) for record in iter_batch_records(batch)]
    except RecordsError:
        return None


def read_by_kafka(kafka: RecordBatches, data: bytearray) -> Sequence[dict[str, Any]] | None:
    try:
        (batch,) = kafka.read(data)
    except Refused:
        return None
    records: list[dict[str, Any]] = batch["records"]
    return records

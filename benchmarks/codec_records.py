"""Whole batches of small records, built and read: ours against other Python libraries.

A record has a key of 10 bytes and a value of 90; a batch has 1,000 of them and no codec. Building goes from
records to the finished batch, checksum included; reading from the batch to records with all their fields,
checksum checked. Figures are records per CPU-second, medians of blocks that alternate between the two sides.

aiokafka has the same code twice, in Python and as a C extension. kio has it in Python only.
"""

import io
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Final, NamedTuple

import kio.records.readers
import kio.records.schema
import kio.records.writers
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy, _DefaultRecordBatchPy
from benchmarks.measure import cpu_seconds, ratio_of
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from ottla.records.batch import BatchView
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record

RECORDS: Final = 1000
BATCHES: Final = 5
ROUNDS: Final = 21
_START_MS: Final = 1_700_000_000_000

Work = Callable[[], object]


class Row(NamedTuple):
    """One comparison, in records per CPU-second. A ratio above 1 says that ours is faster."""

    name: str
    ours: float
    theirs: float
    ratio: float


def make_records() -> list[Record]:
    """Return the records of one batch. They take 200 milliseconds, as a busy producer's do."""
    return [
        Record(index, _START_MS + index // 5, b"key-%06d" % index, b"value-%084d" % index)
        for index in range(RECORDS)
    ]


def rows() -> list[Row]:
    """Measure all comparisons. Takes some ten seconds."""
    records = make_records()
    batch = bytes(build_batch(records))
    comparisons: list[tuple[str, Work, Work]] = [
        ("build, against aiokafka in Python", _ours_build(records), _aiokafka_build(records)),
        ("build, against kio", _ours_build(records), _kio_build(records)),
        ("read, against aiokafka in Python", _ours_read(batch), _aiokafka_read(batch)),
        ("read, against kio", _ours_read(batch), _kio_read(batch)),
    ]
    extension = _aiokafka_extension(records, batch)
    if extension is not None:
        build, read = extension
        comparisons.append(("build, against aiokafka in C", _ours_build(records), build))
        comparisons.append(("read, against aiokafka in C", _ours_read(batch), read))
    return [_compare(name, ours, theirs) for name, ours, theirs in comparisons]


def _compare(name: str, ours: Work, theirs: Work) -> Row:
    ours()
    theirs()
    our_seconds, their_seconds = [], []
    for _ in range(ROUNDS):
        our_seconds.append(cpu_seconds(lambda: _repeat(ours)))
        their_seconds.append(cpu_seconds(lambda: _repeat(theirs)))
    return Row(
        name,
        BATCHES * RECORDS / median(our_seconds),
        BATCHES * RECORDS / median(their_seconds),
        ratio_of(their_seconds, our_seconds).middle,
    )


def _repeat(work: Work) -> None:
    for _ in range(BATCHES):
        work()


def _ours_build(records: list[Record]) -> Work:
    return lambda: build_batch(records)


def _ours_read(batch: bytes) -> Work:
    def read() -> list[Record]:
        view = BatchView(memoryview(batch))
        assert view.crc_is_valid()
        return list(iter_batch_records(view))

    return read


def _aiokafka_build(records: list[Record], builder_class: type = _DefaultRecordBatchBuilderPy) -> Work:
    def build() -> object:
        builder = builder_class(2, 0, False, -1, -1, -1, 1 << 30)
        for record in records:
            builder.append(record.offset, record.timestamp, record.key, record.value, [])
        return builder.build()

    assert len(bytes(build())) == len(build_batch(records))  # type: ignore[call-overload]
    return build


def _aiokafka_read(batch: bytes, batch_class: type = _DefaultRecordBatchPy) -> Work:
    def read() -> list[tuple[object, ...]]:
        reader = batch_class(batch)
        assert reader.validate_crc()
        return [
            (record.offset, record.timestamp, record.key, record.value, record.headers) for record in reader
        ]

    assert len(read()) == RECORDS
    return read


def _aiokafka_extension(records: list[Record], batch: bytes) -> tuple[Work, Work] | None:
    try:
        from aiokafka.record._crecords import default_records as extension
    except ImportError:
        return None
    build = _aiokafka_build(records, extension.DefaultRecordBatchBuilder)
    return build, _aiokafka_read(batch, extension.DefaultRecordBatch)


def _kio_build(records: list[Record]) -> Work:
    schema = kio.records.schema
    new_batch = schema.NewRecordBatch(
        producer_id=i64(-1),
        producer_epoch=i16(-1),
        base_sequence=i32(-1),
        attributes=i16(0),
        records=tuple(
            schema.Record(
                attributes=i8(0),
                timestamp=TZAwareMicros.parse(datetime.fromtimestamp(record.timestamp // 1000, UTC)),
                offset=i64(record.offset),
                key=record.key,
                value=record.value,
                headers=(),
            )
            for record in records
        ),
    )

    def build() -> bytes:
        buffer = io.BytesIO()
        kio.records.writers.write_batch(buffer, new_batch)
        return buffer.getvalue()

    return build


def _kio_read(batch: bytes) -> Work:
    return lambda: kio.records.readers.read_batch(batch, 0)


def main() -> None:
    """Print the comparisons."""
    for row in rows():
        print(f"{row.name:36} {row.ours / 1e6:6.2f} M/s {row.theirs / 1e6:6.2f} M/s  {row.ratio:5.1f} x")


if __name__ == "__main__":
    main()

"""Every batch that Apache Kafka wrote is read as Kafka reads it, and written again to the same bytes."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.golden.directories import ARCHIVES, DATA, golden_directory, log_files
from tests.golden.dumps import DumpedBatch, DumpedRecord, load_dump
from tests.unit.records.reading import decode_records, scan_batch
from tests.unit.storage.compaction.rewritten import rewrite
from tests.unit.storage.logs import append, new_log
from tests.unit.storage.logs import batches_of as batches_in_log

from ottla.records.attributes import CODEC_MASK, Codec, TimestampType
from ottla.records.batch import BatchView, LegacyBatchView, iter_batches, last_sequence_of
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch, empty_batch, seal_batch
from ottla.records.codec import Record, encode_records
from ottla.records.compression import compress, decompress
from ottla.records.control import ControlType, decode_control_type, decode_end_txn_marker
from ottla.records.errors import CorruptBatch
from ottla.storage.config import LogConfig

DUMPS = sorted(
    path.name.removesuffix(".txt.gz")
    for path in DATA.glob("*.txt.gz")
    if not path.name.endswith((".indexes.txt.gz", ".producer-state.txt.gz"))
)
TEXT_DUMPS = [name for name in DUMPS if name.endswith((".data", "-legacy"))]
WHOLE_ARCHIVES = [name for name in ARCHIVES if name != "05-torn"]

# Kafka's Java client compresses gzip and LZ4 with libraries that give the same bytes as ours. Its snappy is
# another implementation, its zstd another version.
SAME_BYTES = {Codec.NONE, Codec.GZIP, Codec.LZ4}
if "ng" in zlib.ZLIB_RUNTIME_VERSION:
    # Some systems have zlib-ng in zlib's place, which compresses to other bytes.
    SAME_BYTES.remove(Codec.GZIP)

TIMESTAMP_FIELDS = {
    TimestampType.NONE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class Pair(NamedTuple):
    """A batch as we see it, where it lies, and what Kafka says of it."""

    file: str
    position: int
    batch: BatchView
    dumped: DumpedBatch


def pairs_of(dump: str) -> Iterator[Pair]:
    archive = dump.partition(".")[0]
    root = golden_directory(archive).parent
    for file, dumped_batches in load_dump(dump).items():
        position = 0
        batches = list(batches_of(root / file))
        assert len(batches) == len(dumped_batches), file
        for batch, dumped in zip(batches, dumped_batches, strict=True):
            yield Pair(file, position, batch, dumped)
            position += batch.size_bytes


def batches_of(path: Path) -> Iterator[BatchView]:
    return iter_batches(memoryview(path.read_bytes()))


def all_batches(*, legacy: bool = False) -> Iterator[BatchView]:
    for archive in WHOLE_ARCHIVES:
        for path in log_files(archive):
            yield from (batch for batch in batches_of(path) if legacy == isinstance(batch, LegacyBatchView))


@pytest.mark.parametrize("dump", DUMPS)
def test_batches_are_what_kafka_says(dump: str) -> None:
    for file, position, batch, dumped in pairs_of(dump):
        assert (file, described(batch, position)) == (file, dumped.fields)


def described(batch: BatchView, position: int) -> dict[str, str]:
    """Put a batch into the words of Kafka's dump."""
    horizon = batch.delete_horizon_ms
    modern = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "isTransactional": str(batch.is_transactional).lower(),
        "isControl": str(batch.is_control).lower(),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
    }
    shared = {
        "position": position,
        TIMESTAMP_FIELDS[batch.timestamp_type]: batch.max_timestamp,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compresscodec": batch.codec.name.lower(),
        "crc": batch.crc,
        "isvalid": str(batch.crc_is_valid()).lower(),
    }
    own = {"offset": batch.last_offset} if isinstance(batch, LegacyBatchView) else modern
    return {name: str(value) for name, value in {**own, **shared}.items()}


@pytest.mark.parametrize("dump", DUMPS)
def test_records_are_what_kafka_says(dump: str) -> None:
    for file, _, batch, dumped in pairs_of(dump):
        records = list(iter_batch_records(batch))
        if dump.endswith("cluster-metadata"):
            # Kafka's decoder for the metadata log prints payloads only, and of control records nothing.
            assert len(records) == (batch.count if batch.is_control else len(dumped.records)), file
            continue
        assert len(records) == len(dumped.records), file
        for record, dumped_record in zip(records, dumped.records, strict=True):
            expected = dict(dumped_record.fields)
            if isinstance(batch, LegacyBatchView):
                # The message's own checksum, which reading it has checked.
                del expected["crc"], expected["isValid"]
            assert described_record(batch, record) == expected, file
            assert ",".join(key for key, _ in record.headers) == dumped_record.header_keys, file


def described_record(batch: BatchView, record: Record) -> dict[str, str]:
    fields = {
        "offset": record.offset,
        TIMESTAMP_FIELDS[batch.timestamp_type]: record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
    }
    if not isinstance(batch, LegacyBatchView):
        fields["sequence"] = last_sequence_of(batch.base_sequence, record.offset - batch.base_offset)
    return {name: str(value) for name, value in fields.items()}


@pytest.mark.parametrize("dump", TEXT_DUMPS)
def test_keys_and_values_are_what_kafka_says(dump: str) -> None:
    for file, _, batch, dumped in pairs_of(dump):
        for record, dumped_record in zip(iter_batch_records(batch), dumped.records, strict=True):
            if batch.is_control:
                continue
            texts = tuple(
                None if field is None else field.decode("utf-8", "replace")
                for field in (record.key, record.value)
            )
            assert texts == dumped_record.key_and_payload, (file, record.offset)


@pytest.mark.parametrize("dump", [name for name in DUMPS if not name.endswith("cluster-metadata")])
def test_control_records_are_what_kafka_says(dump: str) -> None:
    for file, _, batch, dumped in pairs_of(dump):
        if batch.is_control:
            for record, dumped_record in zip(iter_batch_records(batch), dumped.records, strict=True):
                assert described_control(record, dumped_record) == dumped_record.rest, file


def described_control(record: Record, dumped: DumpedRecord) -> str:
    control_type = decode_control_type(record.key)
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        marker = decode_end_txn_marker(record)
        return f"endTxnMarker: {marker.control_type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    names = {
        ControlType.LEADER_CHANGE: "LeaderChange: ",
        ControlType.KRAFT_VERSION: "KRaftVersion ",
        ControlType.KRAFT_VOTERS: "KRaftVoters ",
    }
    assert dumped.rest.startswith(names[control_type])
    return dumped.rest


def test_the_golden_batches_cover_every_kind() -> None:
    batches = list(all_batches())
    legacy = list(all_batches(legacy=True))
    control_types = {
        decode_control_type(record.key)
        for batch in batches
        if batch.is_control
        for record in iter_batch_records(batch)
    }

    assert {batch.codec for batch in batches} == set(Codec)
    assert {(batch.magic, batch.codec) for batch in legacy} == {
        (magic, codec) for magic in (0, 1) for codec in Codec if codec is not Codec.ZSTD
    }
    assert control_types == set(ControlType) - {ControlType.UNKNOWN}
    assert any(batch.count == 0 for batch in batches)
    assert any(batch.has_delete_horizon for batch in batches)
    assert any(batch.is_transactional and not batch.is_control for batch in batches)
    assert any(batch.timestamp_type is TimestampType.LOG_APPEND_TIME for batch in batches)
    assert any(batch.last_offset_delta >= batch.count > 0 for batch in batches), "one with records gone"
    assert len(batches) > 3000


@pytest.mark.parametrize("archive", WHOLE_ARCHIVES)
def test_batches_are_written_again_to_the_same_bytes(archive: str) -> None:
    for path in log_files(archive):
        for batch in batches_of(path):
            if not isinstance(batch, LegacyBatchView):
                assert_written_again(batch, path)


def assert_written_again(batch: BatchView, path: Path) -> None:
    header = batch.header
    area = decompress(header.codec, batch.records_bytes)
    # As they were made, also where a batch has LogAppendTime and readers see that.
    records = decode_records(area, header.count, header.base_offset, header.base_timestamp)
    encoded = encode_records(records, header.base_offset, header.base_timestamp)

    # The records give the same bytes, and the header with those the same checksum.
    assert encoded == area, path
    assert seal_batch(header._replace(crc=0, batch_length=0), bytes(batch.records_bytes)) == batch.view, path
    scanned = [(record.offset - header.base_offset, record.key is not None) for record in records]
    assert [(offset_delta, has_key) for offset_delta, _, has_key, _ in scan_batch(batch)] == scanned, path

    # Where the compressor is the same, so is the whole batch, built from nothing but records and fields.
    if not records:
        assert empty_batch(header) == batch.view, path
    elif header.codec in SAME_BYTES:
        rebuilt = build_batch(
            records,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            codec=header.codec,
            append_time=header.max_timestamp if batch.timestamp_type else None,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            delete_horizon_ms=header.delete_horizon_ms,
            last_offset=header.last_offset,
        )
        assert rebuilt == batch.view, path
        if not batch.timestamp_type:
            assert rewrite(batch, {record.offset for record in records}) == batch.view, path
    else:
        assert decompress(header.codec, compress(header.codec, area)) == area, path


def test_leader_recompresses_as_kafkas_leader_did() -> None:
    """`t-recompress` holds as gzip what a producer sent as zstd. Only codec, size and checksum differ."""
    (kept,) = batches_of(golden_directory("01-clean") / "t-recompress-0" / f"{0:020}.log")
    header = kept.header
    area = decompress(header.codec, kept.records_bytes)
    as_sent = seal_batch(
        header._replace(attributes=header.attributes & ~CODEC_MASK | Codec.ZSTD), compress(Codec.ZSTD, area)
    )

    log = new_log(LogConfig(compression_type=Codec.GZIP))
    append(log, memoryview(as_sent), leader_epoch=header.leader_epoch)
    (stored,) = batches_in_log(log)

    assert stored.crc_is_valid()
    assert list(iter_batch_records(stored)) == list(iter_batch_records(kept))
    changed = {"batch_length": 0, "crc": 0}
    assert stored.header._replace(**changed) == header._replace(**changed)
    if Codec.GZIP in SAME_BYTES:
        assert stored.view == kept.view


def test_torn_logs_end_where_kafka_found_them_to_end() -> None:
    """Kafka, started on this directory, truncated the four damaged logs to these end offsets."""
    root = golden_directory("05-torn")
    ends = {"t-none-0": 61, "t-zstd-0": 61, "t-segs-0": 80, "t-idem-0": 50}
    assert {name: find_end(root / name) for name in ends} == ends


def find_end(partition: Path) -> int:
    """Return the offset after the last whole batch before any damage."""
    end = -1
    for path in sorted(partition.glob("*.log")):
        try:
            for batch in batches_of(path):
                if not batch.crc_is_valid():
                    return end
                end = batch.next_offset
        except CorruptBatch:
            return end
    return end

"""Records that Apache Kafka wrote for itself: of coordinators, of the metadata log, of control batches."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.differential.kafka_json import as_kafka_json
from tests.golden.directories import DATA, golden_directory, log_files
from tests.golden.dumps import DumpedRecord, load_dump

from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.codec import Record
from ottla.wire import control_records
from ottla.wire.codec import decode, encode
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.coordinator_records.classic_group import GroupMetadataValue
from ottla.wire.coordinator_records.framing import (
    GROUP_RECORDS,
    SHARE_STATE_RECORDS,
    TRANSACTION_RECORDS,
    CoordinatorRecord,
    CoordinatorRecords,
)
from ottla.wire.metadata_records.framing import decode_metadata_record, encode_metadata_record

ARCHIVES = ("01-clean", "02-compacted", "03-killed9", "04-cluster")
TOPICS = {
    "consumer-offsets": GROUP_RECORDS,
    "transaction-state": TRANSACTION_RECORDS,
    "share-state": SHARE_STATE_RECORDS,
}
QUORUM_CONTROL_RECORDS: dict[int, type[Any]] = {
    2: control_records.LeaderChangeMessage,
    3: control_records.SnapshotHeaderRecord,
    4: control_records.SnapshotFooterRecord,
    5: control_records.KRaftVersionRecord,
    6: control_records.VotersRecord,
}


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("records", TOPICS.values(), ids=TOPICS)
def test_coordinator_records_are_read_and_written_again(archive: str, records: CoordinatorRecords) -> None:
    kinds = set()
    for record in _data_records(archive, records.topic):
        assert record.key is not None
        read = records.decode(record.key, record.value)
        assert isinstance(read, CoordinatorRecord), f"{record} is of an unknown type"
        kinds.add(type(read.key))
        assert records.encode_key(read.key) == record.key
        if record.value is None:
            assert read.value is None
        else:
            assert records.encode_value(read.value, read.value_version) == record.value
    assert kinds, f"{archive} has no records of {records.topic}"


@pytest.mark.parametrize("what", TOPICS)
@pytest.mark.parametrize("directory", [*ARCHIVES[:3], "04-cluster.node1-a"])
def test_coordinator_records_are_what_kafkas_tool_reads(directory: str, what: str) -> None:
    unpacked = golden_directory(directory.split(".")[0])
    compared = 0
    for path, batches in load_dump(f"{directory}.{what}").items():
        dumped = {record.fields["offset"]: record for batch in batches for record in batch.records}
        for _, record in _records_of(unpacked.parent / path, is_control=False):
            assert record.key is not None
            read = TOPICS[what].decode(record.key, record.value)
            assert isinstance(read, CoordinatorRecord)
            assert _as_dumped(record.key, read) == _parsed(dumped[str(record.offset)])
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("archive", [*ARCHIVES, "00-fresh-format"])
def test_metadata_records_are_read_and_written_again(archive: str) -> None:
    count = 0
    for path in _metadata_files(archive):
        for _, record in _records_of(path, is_control=False):
            assert record.key is None
            assert record.value is not None
            read = decode_metadata_record(record.value)
            assert encode_metadata_record(read.record, read.version) == record.value
            count += 1
    assert count > 0


@pytest.mark.parametrize("archive", [*ARCHIVES, "00-fresh-format"])
def test_control_records_of_the_quorum_are_read_and_written_again(archive: str) -> None:
    kinds = set()
    for path in _metadata_files(archive):
        for _, record in _records_of(path, is_control=True):
            assert record.key is not None
            assert record.value is not None
            key = decode(control_records.ControlRecordTypeSchema, record.key[2:], 0)
            assert record.key == bytes(2) + encode(key, 0)
            cls = QUORUM_CONTROL_RECORDS[key.record_type]
            kinds.add(cls)
            version = int.from_bytes(record.value[:2])
            assert encode(decode(cls, record.value, version), version) == record.value
    assert {control_records.SnapshotHeaderRecord, control_records.SnapshotFooterRecord} <= kinds


@pytest.mark.parametrize("archive", ARCHIVES)
def test_transaction_markers_are_read_and_written_again(archive: str) -> None:
    count = 0
    for path in log_files(archive):
        if "__cluster_metadata" in path.parent.name or path.name.endswith(".checkpoint"):
            continue
        for batch, record in _records_of(path, is_control=True):
            assert batch.is_transactional
            assert record.value is not None
            assert record.value[:2] == bytes(2), "a marker has its version before it"
            marker = decode(control_records.EndTxnMarker, record.value[2:], 0)
            assert encode(marker, 0) == record.value[2:]
            count += 1
    assert count > 0


def test_every_archive_of_internal_records_is_tried() -> None:
    assert {path.name.split(".")[0] for path in DATA.glob("*.transaction-state.txt.gz")} == set(ARCHIVES)


def _data_records(archive: str, topic: str) -> Iterator[Record]:
    for path in log_files(archive):
        if path.parent.name.rpartition("-")[0] == topic:
            yield from (record for _, record in _records_of(path, is_control=False))


def _metadata_files(archive: str) -> list[Path]:
    return [
        path
        for path in log_files(archive)
        if path.parent.name == "__cluster_metadata-0" or path.suffix == ".checkpoint"
    ]


def _records_of(path: Path, is_control: bool) -> Iterator[tuple[BatchView, Record]]:
    for batch in iter_batches(memoryview(path.read_bytes())):
        if batch.is_control == is_control:
            yield from ((batch, record) for record in iter_batch_records(batch))


def _as_dumped(key: bytes, read: CoordinatorRecord) -> tuple[Any, Any]:
    record_type = str(int.from_bytes(key[:2]))
    value = None
    if read.value is not None:
        data = as_kafka_json(read.value, read.value_version)
        if isinstance(read.value, GroupMetadataValue):
            for member, shown in zip(read.value.members, data["members"], strict=True):
                shown["subscription"] = _opened(ConsumerProtocolSubscription, member.subscription)
                shown["assignment"] = _opened(ConsumerProtocolAssignment, member.assignment)
        value = {"version": str(read.value_version), "data": data}
    return {"type": record_type, "data": as_kafka_json(read.key, 0)}, value


def _opened(cls: type[Any], blob: bytes) -> Any:
    """Open what classic consumers keep in a group's record, as Kafka's tool does."""
    version = int.from_bytes(blob[:2])
    content = decode(cls, blob[2:], version)
    assert encode(content, version) == blob[2:]
    return as_kafka_json(content, version)


def _parsed(dumped: DumpedRecord) -> tuple[Any, Any]:
    key, payload = dumped.key_and_payload
    assert key is not None
    assert payload is not None
    return json.loads(key), None if payload == "<DELETE>" else json.loads(payload)

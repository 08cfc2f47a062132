"""What stands before the bodies of metadata and coordinator records."""

from typing import Any

import pytest
from tests.golden.schemas import load_schemas
from tests.support.declarations import all_messages, populated

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import encode
from ottla.wire.coordinator_records.framing import (
    GROUP_RECORDS,
    SHARE_STATE_RECORDS,
    TRANSACTION_RECORDS,
    CoordinatorRecord,
    CoordinatorRecords,
    UnknownCoordinatorRecord,
)
from ottla.wire.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.wire.coordinator_records.transaction import TransactionLogKey, TransactionLogValue
from ottla.wire.declare import spec_of
from ottla.wire.errors import MalformedBytes, Unencodable
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.framing import (
    METADATA_RECORDS,
    MetadataRecord,
    UnknownMetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)

FEATURE = FeatureLevelRecord(name="f", feature_level=3)
KEY = OffsetCommitKey(group="g", topic="t", partition=1)
VALUE = OffsetCommitValue(offset=5, metadata="", commit_timestamp=9)


def test_metadata_record_starts_with_frame_version_type_and_version() -> None:
    assert encode_metadata_record(FEATURE, 0).hex() == "01" + "0c" + "00" + "0266" + "0003" + "00"


@pytest.mark.parametrize("cls", METADATA_RECORDS)
def test_metadata_records_survive(cls: type[Any]) -> None:
    for version in spec_of(cls).versions.all:
        record = populated(cls, version)
        value = encode_metadata_record(record, version)
        assert decode_metadata_record(value) == MetadataRecord(record, version)


def test_registry_has_every_metadata_record() -> None:
    names = {name for name, facts in load_schemas().items() if facts.kind == "metadata"}
    remote_storage = {name for name in names if name.startswith("Remote") and "Metadata" in name}
    assert {cls.__name__ for cls in METADATA_RECORDS} == names - remote_storage


@pytest.mark.parametrize(
    ("value", "record_type", "version"), [("010600", 6, 0), ("017f00", 127, 0), ("010c01", 12, 1)]
)
def test_a_newer_metadata_record_is_not_guessed_at(value: str, record_type: int, version: int) -> None:
    with pytest.raises(UnknownMetadataRecord) as raised:
        decode_metadata_record(bytes.fromhex(value))
    assert (raised.value.record_type, raised.value.version) == (record_type, version)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "ends before its type and version"),
        ("01", "ends before its type and version"),
        ("010c", "ends before its type and version"),
        ("000c00", "frame version 0, not 1"),
        ("020c00", "frame version 2, not 1"),
        ("010c00" + "0266" + "00", "FeatureLevelRecord v0"),
        ("010c00" + "0266" + "0003" + "00" + "ff", "1 bytes are left over"),
        ("ffffffffff01", "31 bits"),
    ],
)
def test_spoilt_metadata_records_are_refused(value: str, sentence: str) -> None:
    with pytest.raises(MalformedBytes, match=sentence):
        decode_metadata_record(bytes.fromhex(value))


def test_key_starts_with_its_type_and_value_with_its_version() -> None:
    assert GROUP_RECORDS.encode_key(KEY).hex() == "0001" + "000167" + "000174" + "00000001"
    assert GROUP_RECORDS.encode_value(VALUE, 3).hex() == (
        "0003" + "0000000000000005" + "ffffffff" + "0000" + "0000000000000009"
    )


@pytest.mark.parametrize(
    "records", [GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_STATE_RECORDS], ids=lambda r: r.topic
)
def test_coordinator_records_survive(records: CoordinatorRecords) -> None:
    for key_class, value_class in records.kinds.values():
        key = populated(key_class, 0)
        for version in spec_of(value_class).versions.all:
            value = populated(value_class, version)
            read = records.decode(records.encode_key(key), records.encode_value(value, version))
            assert read == CoordinatorRecord(key, value, version)


def test_registries_have_every_coordinator_record() -> None:
    names = {name for name, facts in load_schemas().items() if facts.kind.startswith("coordinator")}
    registries = (GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_STATE_RECORDS)
    kinds = [kind for records in registries for pair in records.kinds.values() for kind in pair]
    assert sorted(cls.__name__ for cls in kinds) == sorted(names)
    assert all(all_messages()[cls.__name__] is cls for cls in kinds)


def test_a_null_value_is_a_tombstone() -> None:
    read = GROUP_RECORDS.decode(GROUP_RECORDS.encode_key(KEY), None)
    assert read == CoordinatorRecord(KEY, None, -1)


def test_a_record_of_an_unknown_type_comes_back_as_it_was() -> None:
    # Kafka skips such records with a warning: they are left over from an aborted upgrade.
    key = b"\x00\x63rest"
    assert GROUP_RECORDS.decode(memoryview(key), b"v") == UnknownCoordinatorRecord(99, key, b"v")
    assert GROUP_RECORDS.decode(key, None) == UnknownCoordinatorRecord(99, key, None)


def test_a_type_means_something_only_within_its_topic() -> None:
    key = TransactionLogKey(transactional_id="t")
    assert TRANSACTION_RECORDS.encode_key(key)[:2] == bytes(2)
    with pytest.raises(AssertionError, match="TransactionLogKey is no key of __consumer_offsets"):
        GROUP_RECORDS.encode_key(key)
    with pytest.raises(AssertionError, match="OffsetCommitKey is no value of __consumer_offsets"):
        GROUP_RECORDS.encode_value(KEY, 0)


def test_bytes_after_a_value_are_ignored() -> None:
    read = GROUP_RECORDS.decode(GROUP_RECORDS.encode_key(KEY), GROUP_RECORDS.encode_value(VALUE, 3) + b"more")
    assert read == CoordinatorRecord(KEY, VALUE, 3)


@pytest.mark.parametrize(("key", "value"), [("", None), ("00", None), ("000100", None)])
def test_spoilt_keys_are_refused(key: str, value: bytes | None) -> None:
    with pytest.raises(MalformedBytes):
        GROUP_RECORDS.decode(bytes.fromhex(key), value)


@pytest.mark.parametrize("value", ["", "00", "0005" + "00" * 40, "ffff" + "00" * 40, "0003" + "00"])
def test_spoilt_values_are_refused(value: str) -> None:
    with pytest.raises(MalformedBytes):
        GROUP_RECORDS.decode(GROUP_RECORDS.encode_key(KEY), bytes.fromhex(value))


def test_a_version_that_does_not_exist_is_not_written() -> None:
    with pytest.raises(Unencodable, match="has no version 2"):
        TRANSACTION_RECORDS.encode_value(populated(TransactionLogValue, 1), 2)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("topic_id", [ZERO_UUID, Uuid(bytes(range(16)))])
@pytest.mark.parametrize("metadata", ["", "a note", "é" * 63, "n" * 126, "n" * 127, "é" * 64])
def test_offsets_are_written_as_the_compiled_encoder_writes_them(
    version: int, topic_id: Uuid, metadata: str
) -> None:
    value = OffsetCommitValue(
        offset=1 << 40,
        leader_epoch=-1,
        metadata=metadata,
        commit_timestamp=1_750_000_000_000,
        topic_id=topic_id,
    )
    written = GROUP_RECORDS.encode_value(value, version)
    assert written == version.to_bytes(2) + encode(value, version)


@pytest.mark.parametrize("kinds", [GROUP_RECORDS, SHARE_STATE_RECORDS, TRANSACTION_RECORDS])
def test_keys_of_different_kinds_with_the_same_fields_are_different_bytes(kinds: CoordinatorRecords) -> None:
    # Some have nothing but the name of the group, and the bytes of keys are kept by what the keys hold.
    keys = [populated(key, 0) for key, _ in kinds.kinds.values()]
    written = [kinds.encode_key(key) for key in keys]
    assert [int.from_bytes(data[:2]) for data in written] == list(kinds.kinds)
    assert [kinds.encode_key(key) for key in keys] == written

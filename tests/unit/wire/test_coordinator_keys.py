"""Keys of coordinator records that look alike are not taken for each other."""

from ottla.wire.coordinator_records.classic_group import GroupMetadataKey
from ottla.wire.coordinator_records.consumer_group import ConsumerGroupMetadataKey
from ottla.wire.coordinator_records.framing import GROUP_RECORDS
from ottla.wire.coordinator_records.offsets import LegacyOffsetCommitKey, OffsetCommitKey


def test_keys_of_different_types_with_the_same_fields_have_different_bytes() -> None:
    keys = [
        GroupMetadataKey(group="g"),
        ConsumerGroupMetadataKey(group_id="g"),
        OffsetCommitKey(group="g", topic="t", partition=0),
        LegacyOffsetCommitKey(group="g", topic="t", partition=0),
    ]
    for _ in range(2):
        assert [GROUP_RECORDS.encode_key(key)[:2] for key in keys] == [b"\0\2", b"\0\3", b"\0\1", b"\0\0"]

"""Committed offsets are read the short way exactly as the compiled decoder reads them."""

import pytest

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import decode_from
from ottla.wire.coordinator_records.framing import GROUP_RECORDS
from ottla.wire.coordinator_records.offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_offset_commit_value,
    find_offset_commit_value,
)
from ottla.wire.errors import WireError

TOPIC_ID = Uuid(bytes(range(16)))
KEY = GROUP_RECORDS.encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
VALUES = {
    "plain": (OffsetCommitValue(offset=5, metadata="", commit_timestamp=9, topic_id=TOPIC_ID), 4, True),
    "with a note": (
        OffsetCommitValue(offset=-1, leader_epoch=7, metadata="nöte", commit_timestamp=-9, topic_id=TOPIC_ID),
        4,
        True,
    ),
    "with the longest short note": (
        OffsetCommitValue(offset=5, metadata="n" * 126, commit_timestamp=9, topic_id=TOPIC_ID),
        4,
        True,
    ),
    "with a long note": (
        OffsetCommitValue(offset=5, metadata="n" * 127, commit_timestamp=9, topic_id=TOPIC_ID),
        4,
        False,
    ),
    "without an id": (
        OffsetCommitValue(offset=5, metadata="n" * 40, commit_timestamp=9, topic_id=ZERO_UUID),
        4,
        False,
    ),
    "with an expiry": (
        OffsetCommitValue(offset=5, metadata="n", commit_timestamp=9, expire_timestamp=11),
        1,
        False,
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_read_as_the_compiled_decoder_reads_them(name: str) -> None:
    value, version, is_short = VALUES[name]
    data = encode_offset_commit_value(value, version)
    assert (find_offset_commit_value(data) is not None) == is_short
    record = GROUP_RECORDS.decode(KEY, data)
    expected, _ = decode_from(OffsetCommitValue, data, version, 2)
    assert record[1:] == (expected, version)
    short = find_offset_commit_value(data)
    assert short is None or type(short.topic_id) is Uuid


@pytest.mark.parametrize("name", VALUES)
def test_damaged_values_are_read_or_refused_as_the_compiled_decoder_does(name: str) -> None:
    value, version, _ = VALUES[name]
    data = encode_offset_commit_value(value, version)
    damaged = [data[:size] for size in range(2, len(data))] + [data + b"\0"]
    damaged += [
        data[:at] + bytes((byte,)) + data[at + 1 :] for at in range(2, len(data)) for byte in (0, 127, 255)
    ]
    for harmed in damaged:
        try:
            expected, _ = decode_from(OffsetCommitValue, harmed, version, 2)
        except WireError:
            with pytest.raises(WireError):
                GROUP_RECORDS.decode(KEY, harmed)
        else:
            assert GROUP_RECORDS.decode(KEY, harmed)[1] == expected

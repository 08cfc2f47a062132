"""The topic id of a partition's directory, in the text that Apache Kafka writes."""

import pytest

from ottla.model.uuid import Uuid
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.partition_metadata import decode_partition_metadata, encode_partition_metadata

KAFKA_TEXT = b"version: 0\ntopic_id: yOsu4gR6TiCQhqb51cILCw"
TOPIC_ID = Uuid.from_text("yOsu4gR6TiCQhqb51cILCw")


def test_kafkas_file_is_read_and_written_back() -> None:
    assert decode_partition_metadata(KAFKA_TEXT) == TOPIC_ID
    assert encode_partition_metadata(TOPIC_ID) == KAFKA_TEXT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "version is None"),
        (b"version: 1\ntopic_id: yOsu4gR6TiCQhqb51cILCw", "version is '1'"),
        (b"version: 0", "text of an id"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "zero id"),
        (b"version: 0\ntopic_id: yOsu4g", "text of an id"),
        (b"version: 0\nnonsense", "malformed line"),
        (b"\xff\x00", "malformed line"),
    ],
)
def test_a_file_without_a_topic_id_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason):
        decode_partition_metadata(text)

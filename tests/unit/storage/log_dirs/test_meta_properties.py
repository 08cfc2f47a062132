"""The identity of a log directory, in the text that Apache Kafka's format tool writes."""

import pytest

from ottla.model.ids import NodeId
from ottla.model.uuid import Uuid
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)

KAFKA_TEXT = b"""#
#Sun Nov 15 18:22:11 UTC 2026
node.id=1
directory.id=3n9LwqijR0S7KDdmqZP55w
version=1
cluster.id=Z29sZGVuR29sZGVuMDAwMQ
"""
META = MetaProperties("Z29sZGVuR29sZGVuMDAwMQ", NodeId(1), Uuid.from_text("3n9LwqijR0S7KDdmqZP55w"))


def test_kafkas_file_is_read() -> None:
    assert decode_meta_properties(KAFKA_TEXT) == META


def test_what_is_written_is_read() -> None:
    assert decode_meta_properties(encode_meta_properties(META)) == META


def test_a_directory_id_is_not_needed() -> None:
    without = META._replace(directory_id=None)
    assert decode_meta_properties(encode_meta_properties(without)) == without


def test_version_0_names_a_broker() -> None:
    text = b"version=0\nbroker.id=4\ncluster.id=abc\n"
    assert decode_meta_properties(text) == MetaProperties("abc", NodeId(4), None)


def test_version_0_may_know_nothing_yet() -> None:
    assert decode_meta_properties(b"version=0\nbroker.id=-1\n") == MetaProperties(None, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "version is None"),
        (b"version=2\nnode.id=1\ncluster.id=c\n", "version is '2'"),
        (b"version=1\nnode.id=1\n", "missing"),
        (b"version=1\ncluster.id=c\n", "missing"),
        (b"version=1\nnode.id=one\ncluster.id=c\n", "not a number"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short\n", "directory.id is 'short'"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "reserved"),
    ],
)
def test_a_file_that_identifies_no_directory_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason):
        decode_meta_properties(text)

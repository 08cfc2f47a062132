"""Records of MirrorMaker 2's own topics, byte for byte, and its names."""

import pytest

from ottla.mirror.maker.formats import (
    Checkpoint,
    OffsetSync,
    UnreadableRecord,
    decode_checkpoint,
    decode_offset_sync,
    decode_source_offset,
    encode_checkpoint,
    encode_heartbeat,
    encode_offset_sync,
    encode_source_offset,
)
from ottla.mirror.maker.names import Names
from ottla.model.ids import TopicPartition

WHERE = TopicPartition("t", 7)


def test_records_have_the_bytes_of_its_own_classes() -> None:
    assert encode_heartbeat("A", "Bü", 258) == (b"\0\1A\0\3B\xc3\xbc", b"\0\0\0\0\0\0\0\0\1\2")
    checkpoint = Checkpoint("g", WHERE, 3, 2, "m")
    key, value = b"\0\1g\0\1t\0\0\0\7", b"\0\0" + (3).to_bytes(8) + (2).to_bytes(8) + b"\0\1m"
    assert encode_checkpoint(checkpoint) == (key, value)
    assert decode_checkpoint(key, value) == checkpoint
    sync = OffsetSync(WHERE, 1 << 40, 5)
    key, value = b"\0\1t\0\0\0\7", (1 << 40).to_bytes(8) + (5).to_bytes(8)
    assert encode_offset_sync(sync) == (key, value)
    assert decode_offset_sync(key, value) == sync
    key, value = b'["MirrorSourceConnector",{"cluster":"A","partition":7,"topic":"t"}]', b'{"offset":4}'
    assert encode_source_offset("A", WHERE, 4) == (key, value)
    assert decode_source_offset(key, value) == (WHERE, 4)
    assert decode_source_offset(key, None) == (WHERE, None)
    assert decode_source_offset(b'["Other",{}]', value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\1g\0\1t\0\0\0\7", None),
        (b"\0\2g", b""),
        (b"\xff\xffg\0\1t\0\0\0\7", bytes(20)),
        (b"\0\1\xff\0\1t\0\0\0\7", bytes(20)),
        (b"\0\1t\0\0", bytes(20)),
    ],
)
def test_other_bytes_are_not_taken_for_records(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        decode_checkpoint(key, value)
    if key != b"\0\1g\0\1t\0\0\0\7" or value is None:
        with pytest.raises(UnreadableRecord):
            decode_offset_sync(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"{", b"{}"),
        (b'["MirrorSourceConnector",{}]', b"{}"),
        (b'["MirrorSourceConnector",1]', b"{}"),
        (b"1", b"1"),
    ],
)
def test_a_position_that_is_none_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode_source_offset(key, value)


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "is_cycle", "is_heartbeats", "is_internal"),
    [
        ("payments", None, None, False, False, False),
        ("B.payments", "B", "payments", True, False, False),
        ("C.B.payments", "C", "B.payments", True, False, False),
        ("C.payments", "C", "payments", False, False, False),
        ("heartbeats", None, None, False, True, False),
        ("C.D.heartbeats", "C", "D.heartbeats", False, True, False),
        ("myheartbeats", None, None, False, False, False),
        ("a.", None, None, False, False, False),
        (".a", "", "a", False, False, True),
        ("__consumer_offsets", None, None, False, False, True),
        ("mm2-offsets.A.internal", "mm2-offsets", "A.internal", False, False, True),
        ("x.internal", "x", "internal", False, False, False),
        ("A.checkpoints.internal", "A", "checkpoints.internal", False, False, True),
    ],
)
def test_names_tell_the_way_that_a_topic_has_come(
    topic: str,
    source: str | None,
    upstream: str | None,
    is_cycle: bool,
    is_heartbeats: bool,
    is_internal: bool,
) -> None:
    names = Names("A", "B")
    assert names.remote(topic) == f"A.{topic}"
    assert (names.source_of(topic), names.upstream_of(topic)) == (source, upstream)
    assert (names.is_cycle(topic), names.is_heartbeats(topic), names.is_internal(topic)) == (
        is_cycle,
        is_heartbeats,
        is_internal,
    )


def test_names_may_stay_except_those_of_heartbeats() -> None:
    names = Names("A", "B", is_identity=True)
    assert (names.remote("payments"), names.remote("heartbeats")) == ("payments", "A.heartbeats")
    assert (names.source_of("payments"), names.upstream_of("payments")) == ("A", "payments")
    assert not names.is_cycle("payments")
    assert names.is_cycle("B.heartbeats")
    assert names.is_heartbeats("A.heartbeats")
    assert names.offset_syncs("B") == "mm2-offset-syncs.B.internal"
    assert (names.checkpoints, names.source_offsets) == ("A.checkpoints.internal", "mm2-offsets.A.internal")

"""The blobs of classic consumers, as Java's consumer and librdkafka wrote them."""

import pytest
from tests.golden.frames import load_frames

from ottla.client.consumer.embedded_protocol import (
    NO_GENERATION,
    decode_assignment,
    decode_generation,
    decode_sticky_note,
    decode_subscription,
    encode_assignment,
    encode_sticky_note,
    encode_subscription,
)
from ottla.model.ids import TopicPartition
from ottla.wire.apis import ApiKey
from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import decode_request

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def _recorded(key: ApiKey) -> list[tuple[str, bytes]]:
    blobs = []
    for frame in load_frames():
        if frame.api_key == key and frame.is_request:
            _, request = decode_request(frame.payload)
            if key is ApiKey.JOIN_GROUP and request.protocol_type == "consumer":
                blobs += [(frame.client, protocol.metadata) for protocol in request.protocols]
            elif key is ApiKey.SYNC_GROUP:
                blobs += [(frame.client, item.assignment) for item in request.assignments]
    assert blobs
    return blobs


def test_subscriptions_of_javas_consumer_are_written_again_to_the_byte() -> None:
    ours = [
        (blob, encode_subscription(decode_subscription(bytes(blob))))
        for client, blob in _recorded(ApiKey.JOIN_GROUP)
        if client.startswith("java")
    ]
    assert ours
    for theirs, written in ours:
        assert written == theirs


def test_subscriptions_of_all_makes_are_read() -> None:
    clients = set()
    for client, blob in _recorded(ApiKey.JOIN_GROUP):
        # What was recorded as "raw" was made by hand, to see what a broker says to it.
        if client != "raw":
            assert decode_subscription(bytes(blob)).topics
            clients.add(client)
    assert len(clients) > 2


def test_assignments_of_all_makes_are_read_and_javas_written_again() -> None:
    for client, blob in _recorded(ApiKey.SYNC_GROUP):
        partitions = decode_assignment(bytes(blob))
        if client.startswith("java"):
            assert encode_assignment(partitions) == blob


def test_no_bytes_are_no_assignment() -> None:
    assert decode_assignment(b"") == ()


@pytest.mark.parametrize(
    "blob", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\1\0\5ab", b"\0\3\x7f\xff\xff\xff"]
)
def test_hostile_subscriptions_are_malformed(blob: bytes) -> None:
    with pytest.raises(MalformedBytes):
        decode_subscription(blob)


def test_a_sticky_note_keeps_partitions_and_generation() -> None:
    note = encode_sticky_note([B0, A1, A0], 7)
    assert note.hex() == "00000002000161000000020000000000000001000162000000010000000000000007"
    assert decode_sticky_note(note) == ((A0, A1, B0), 7)


def test_an_old_sticky_note_has_no_generation() -> None:
    assert decode_sticky_note(encode_sticky_note([A0], 7)[:-4]) == ((A0,), NO_GENERATION)


@pytest.mark.parametrize(
    "note",
    [None, b"", b"\0", b"\x7f\xff\xff\xff", b"\0\0\0\1\0\1\xff\0\0\0\0", b"\0\0\0\1\0\1a\x7f\xff\xff\xff"],
)
def test_a_sticky_note_that_cannot_be_read_counts_as_none(note: bytes | None) -> None:
    assert decode_sticky_note(note) == ((), NO_GENERATION)


def test_a_generation_that_cannot_be_read_counts_as_none() -> None:
    assert decode_generation(None) == decode_generation(b"\0\0") == NO_GENERATION

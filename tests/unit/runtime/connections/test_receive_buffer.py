"""Frames come out whole whatever way the bytes come in, and memory follows what has arrived."""

import socket
from collections.abc import Iterator
from struct import pack

import pytest

from ottla.runtime.connections.receive_buffer import OWN_BYTES_MIN, ReceiveBuffer, SharedBuffer
from ottla.wire.errors import MalformedBytes


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def frame(content: bytes) -> bytes:
    return pack(">i", len(content)) + content


def take_all(buffer: ReceiveBuffer) -> list[bytes]:
    frames = []
    while (view := buffer.next_frame()) is not None:
        frames.append(bytes(view))
    buffer.keep_rest()
    return frames


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 1000])
def test_frames_come_out_whole_however_the_bytes_are_cut(
    pair: tuple[socket.socket, socket.socket], step: int
) -> None:
    ours, theirs = pair
    contents = [b"", b"a", b"bb" * 10, b"", b"c" * 100]
    stream = b"".join(map(frame, contents))
    buffer = ReceiveBuffer(SharedBuffer(64), 1000)

    taken = []
    for start in range(0, len(stream), step):
        sent = stream[start : start + step]
        theirs.sendall(sent)
        received = 0
        while received < len(sent):
            received += buffer.receive(ours.recv_into)
            taken += take_all(buffer)

    assert taken == contents
    assert buffer.pending_bytes == 0


def test_a_frame_that_comes_alone_is_handed_out_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    buffer = ReceiveBuffer(SharedBuffer(64), 40)
    for content in (b"a", b"b" * 40):
        theirs.sendall(frame(content))
        received = buffer.receive_frame(ours.recv_into)
        assert isinstance(received, memoryview)
        assert received == content
        assert buffer.pending_bytes == 0


@pytest.mark.parametrize(
    "cut",
    [
        [frame(b"")],
        [frame(b"a") + frame(b"bc")],
        [frame(b"a") + frame(b"bc")[:5], frame(b"bc")[5:]],
        [frame(b"abc")[:3], frame(b"abc")[3:]],
        [frame(b"abc")[:4], frame(b"abc")[4:]],
        [frame(b"x" * 80)[:50], frame(b"x" * 80)[50:]],
    ],
)
def test_what_is_no_single_frame_is_counted_and_kept(
    pair: tuple[socket.socket, socket.socket], cut: list[bytes]
) -> None:
    ours, theirs = pair
    buffer, plain = ReceiveBuffer(SharedBuffer(64), 1000), ReceiveBuffer(SharedBuffer(1000), 1000)
    taken = []
    for part in cut:
        theirs.sendall(part)
        assert buffer.receive_frame(ours.recv_into) == len(part)
        taken += take_all(buffer)
    theirs.sendall(b"".join(cut))
    plain.receive(ours.recv_into)
    assert taken == take_all(plain)


def test_a_frame_that_is_too_large_is_not_handed_out(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    buffer = ReceiveBuffer(SharedBuffer(64), 20)
    theirs.sendall(frame(b"x" * 21))
    assert buffer.receive_frame(ours.recv_into) == 25
    with pytest.raises(MalformedBytes, match="announces 21 bytes"):
        buffer.next_frame()


def test_two_connections_share_a_buffer_without_mixing() -> None:
    shared = SharedBuffer(64)
    (our_a, their_a), (our_b, their_b) = socket.socketpair(), socket.socketpair()
    with our_a, their_a, our_b, their_b:
        a, b = ReceiveBuffer(shared, 1000), ReceiveBuffer(shared, 1000)
        their_a.sendall(frame(b"first of a")[:7])
        a.receive(our_a.recv_into)
        assert take_all(a) == []
        their_b.sendall(frame(b"all of b"))
        b.receive(our_b.recv_into)
        assert take_all(b) == [b"all of b"]
        their_a.sendall(frame(b"first of a")[7:])
        a.receive(our_a.recv_into)
        assert take_all(a) == [b"first of a"]


def test_an_announced_size_costs_nothing_until_the_bytes_come(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    buffer = ReceiveBuffer(SharedBuffer(), 104_857_600)
    theirs.sendall(pack(">i", 104_857_600))
    buffer.receive(ours.recv_into)
    assert take_all(buffer) == []
    assert buffer.own_bytes == 4

    theirs.sendall(b"x" * 10)
    buffer.receive(ours.recv_into)
    assert take_all(buffer) == []
    assert buffer.own_bytes <= 4 + OWN_BYTES_MIN


def test_memory_at_most_doubles_with_what_arrives(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    buffer = ReceiveBuffer(SharedBuffer(1024), 104_857_600)
    theirs.sendall(pack(">i", 104_857_600))
    arrived = buffer.receive(ours.recv_into)
    take_all(buffer)
    for _ in range(50):
        theirs.sendall(b"x" * 10_000)
        received = 0
        while received < 10_000:
            received += buffer.receive(ours.recv_into)
            take_all(buffer)
        arrived += received
        assert buffer.own_bytes <= max(2 * arrived, arrived + OWN_BYTES_MIN)


def test_memory_is_given_back_when_a_large_frame_was_served(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    buffer = ReceiveBuffer(SharedBuffer(1024), 100_000)
    theirs.sendall(frame(b"x" * 50_000))
    taken: list[bytes] = []
    while not taken:
        buffer.receive(ours.recv_into)
        taken = take_all(buffer)
    assert taken == [b"x" * 50_000]
    theirs.sendall(frame(b"y"))
    buffer.receive(ours.recv_into)
    assert buffer.own_bytes == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 1001])
def test_a_size_out_of_bounds_is_refused(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    ours, theirs = pair
    buffer = ReceiveBuffer(SharedBuffer(), 1000)
    theirs.sendall(pack(">i", size))
    buffer.receive(ours.recv_into)
    with pytest.raises(MalformedBytes, match="announces"):
        buffer.next_frame()


def test_half_a_large_frame_holds_what_has_arrived_and_lets_go_of_it(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    shared = SharedBuffer()
    buffer = ReceiveBuffer(shared, 100 << 20)
    sent = pack(">i", 90 << 20) + bytes(6 << 20)
    position = 0
    while position < len(sent):
        position += theirs.send(sent[position : position + 65536])
        while buffer.pending_bytes < position:
            assert buffer.receive(ours.recv_into)
            assert buffer.next_frame() is None
            buffer.keep_rest()
    # Up to here doubled memory would be held, and room for all that was announced after that.
    assert len(sent) <= shared.held_bytes <= len(sent) + OWN_BYTES_MIN
    buffer.clear()
    assert shared.held_bytes == 0

"""What is sent is what was queued, however little the socket takes and the memory holds."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from ottla.runtime import disk
from ottla.runtime.connections.file_range import SENDFILE_BYTES_MIN, FileRange
from ottla.runtime.connections.outbox import Flushed, Outbox
from ottla.runtime.connections.sockets import PlainTransport
from ottla.runtime.disk import RealDisk, RealFile
from ottla.runtime.poller import ServingLoop

Pair: TypeAlias = tuple[PlainTransport, socket.socket]

STAGING = 100


def real_file(path: Path, content: bytes) -> RealFile:
    path.write_bytes(content)
    return RealDisk().open(str(path))


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    loop = ServingLoop()
    with ours, peer:
        yield PlainTransport(loop, ours, "peer", 1), peer
    loop.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RealFile]:
    file = real_file(tmp_path / "log", bytes(range(256)) * 2)
    yield file
    file.close()


@pytest.mark.parametrize("length", [1, 95, 96, 97, 100, 101, 200, 300])
def test_head_range_and_tail_arrive_in_order(pair: Pair, log: RealFile, length: int) -> None:
    ours, peer = pair
    outbox = Outbox(ours, memoryview(bytearray(STAGING)))
    outbox.add([b"head", FileRange(log, 7, length), b"", b"tail"])

    assert outbox.flush() is Flushed.ALL

    assert not outbox
    expected = b"head" + (bytes(range(256)) * 2)[7 : 7 + length] + b"tail"
    assert peer.recv(1000) == expected


def test_bytes_longer_than_the_staging_memory_are_sent_in_parts(
    pair: Pair,
) -> None:
    ours, peer = pair
    outbox = Outbox(ours, memoryview(bytearray(STAGING)))
    content = os.urandom(777)
    outbox.add([b"head", content])

    assert outbox.flush() is Flushed.ALL

    assert peer.recv(1000) == b"head" + content


def test_the_last_call_does_not_announce_more() -> None:
    announced: list[bool] = []

    class Spy:
        def send(self, data: memoryview) -> int:
            announced.append(False)
            return len(data)

        def send_more(self, data: memoryview) -> int:
            announced.append(True)
            return len(data)

    outbox = Outbox(Spy(), memoryview(bytearray(STAGING)))  # type: ignore[arg-type]
    outbox.add([b"x" * 2 * STAGING])

    assert outbox.flush() is Flushed.ALL

    assert announced == [True, False]


def test_a_socket_that_takes_little_gets_everything_in_the_end(log: RealFile) -> None:
    taken = bytearray()

    class Slow:
        sends_files = True

        def send(self, data: memoryview) -> int:
            taken.extend(data[:13])
            return min(13, len(data))

        send_more = send

    outbox = Outbox(Slow(), memoryview(bytearray(STAGING)))  # type: ignore[arg-type]
    outbox.add([b"head", FileRange(log, 0, 256), b"tail of more than thirteen bytes"])
    while outbox.flush() is Flushed.SOCKET_FULL:
        pass

    assert bytes(taken) == b"head" + bytes(range(256)) + b"tail of more than thirteen bytes"


def test_a_file_system_that_cannot_tell_what_is_in_memory_is_just_read(
    log: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_preadv = os.preadv

    def preadv(descriptor: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real_preadv(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", preadv)
    content = bytearray(10)
    assert FileRange(log, 3, 10).read_warm(memoryview(content)) == 10
    assert content == bytes(range(3, 13))


LONG = 3 * SENDFILE_BYTES_MIN + 77


@pytest.fixture
def long_log(tmp_path: Path) -> Iterator[RealFile]:
    file = real_file(tmp_path / "long", os.urandom(LONG + 1000))
    yield file
    file.close()


@pytest.mark.parametrize("is_in_memory", [True, False], ids=["sent from its file", "read"])
def test_long_ranges_arrive_whole_and_in_order(
    pair: Pair,
    long_log: RealFile,
    is_in_memory: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disk, "is_in_memory", lambda *_: is_in_memory)
    ours, peer = pair
    peer.setblocking(False)
    outbox = Outbox(ours, memoryview(bytearray(50_000)))
    outbox.add([b"head", FileRange(long_log, 5, LONG), b"middle", FileRange(long_log, 900, LONG), b"tail"])

    received = b""
    while outbox.flush() is not Flushed.ALL or len(received) < 2 * LONG + 14:
        with suppress(BlockingIOError):
            received += peer.recv(100_000)
    content = os.pread(long_log.descriptor(), LONG + 1000, 0)
    assert received == b"head" + content[5 : 5 + LONG] + b"middle" + content[900 : 900 + LONG] + b"tail"


def test_only_long_ranges_that_are_in_memory_go_straight_from_their_files(
    pair: Pair, long_log: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_sendfile, sent_from = os.sendfile, []

    def sendfile(out: int, into: int, position: int, count: int) -> int:
        sent_from.append(position)
        return real_sendfile(out, into, position, count)

    monkeypatch.setattr(os, "sendfile", sendfile)
    monkeypatch.setattr(disk, "is_in_memory", lambda _, position, __: position >= 1000)
    ours, peer = pair
    peer.setblocking(False)

    def send(position: int, length: int) -> list[int]:
        sent_from.clear()
        outbox = Outbox(ours, memoryview(bytearray(2 * SENDFILE_BYTES_MIN)))
        outbox.add([FileRange(long_log, position, length)])
        left = length
        while left:
            outbox.flush()
            with suppress(BlockingIOError):
                left -= len(peer.recv(left))
        return sent_from

    assert send(1000, SENDFILE_BYTES_MIN)[0] == 1000
    assert send(1000, SENDFILE_BYTES_MIN - 1) == []
    assert send(999, SENDFILE_BYTES_MIN) == []


def test_a_long_range_of_a_file_that_shrank_ends_the_connection(
    pair: Pair, log: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "is_in_memory", lambda *_: True)
    outbox = Outbox(pair[0], memoryview(bytearray(STAGING)))
    outbox.add([FileRange(log, 0, LONG)])
    assert outbox.flush() is Flushed.SOCKET_FULL
    with pytest.raises(EOFError, match="ends before position 512"):
        outbox.flush()


def test_a_file_system_without_sendfile_is_read(
    pair: Pair, long_log: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sendfile(*_: int) -> int:
        raise OSError(errno.EINVAL, "cannot")

    monkeypatch.setattr(os, "sendfile", sendfile)
    monkeypatch.setattr(disk, "is_in_memory", lambda *_: True)
    monkeypatch.setattr(PlainTransport, "can_sendfile", True)
    ours, peer = pair
    peer.setblocking(False)
    outbox = Outbox(ours, memoryview(bytearray(50_000)))
    outbox.add([b"head", FileRange(long_log, 5, LONG), b"tail"])
    received = b""
    while outbox.flush() is not Flushed.ALL or len(received) < LONG + 8:
        with suppress(BlockingIOError):
            received += peer.recv(100_000)
    assert received == b"head" + os.pread(long_log.descriptor(), LONG, 5) + b"tail"
    assert not PlainTransport.can_sendfile

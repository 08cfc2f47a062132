"""What is sent is what was queued, however little the socket takes and the memory holds."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.runtime.file_range import FileRange
from ottla.runtime.outbox import Flushed, Outbox

STAGING = 100


class OpenFile:
    """A file as the real disk would give it."""

    def __init__(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        self._descriptor = os.open(path, os.O_RDONLY)

    def descriptor(self) -> int:
        return self._descriptor

    def pin(self) -> int:
        return self._descriptor

    def unpin(self) -> None:
        pass

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    with ours, peer:
        yield ours, peer


@pytest.fixture
def log(tmp_path: Path) -> Iterator[OpenFile]:
    file = OpenFile(tmp_path / "log", bytes(range(256)) * 2)
    yield file
    file.close()


@pytest.mark.parametrize("length", [1, 95, 96, 97, 100, 101, 200, 300])
def test_head_range_and_tail_arrive_in_order(
    pair: tuple[socket.socket, socket.socket], log: OpenFile, length: int
) -> None:
    ours, peer = pair
    outbox = Outbox(ours, memoryview(bytearray(STAGING)))
    outbox.add([b"head", FileRange(log, 7, length), b"", b"tail"])

    assert outbox.flush() is Flushed.ALL

    assert not outbox
    expected = b"head" + (bytes(range(256)) * 2)[7 : 7 + length] + b"tail"
    assert peer.recv(1000) == expected


def test_bytes_longer_than_the_staging_memory_are_sent_in_parts(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = pair
    outbox = Outbox(ours, memoryview(bytearray(STAGING)))
    content = os.urandom(777)
    outbox.add([b"head", content])

    assert outbox.flush() is Flushed.ALL

    assert peer.recv(1000) == b"head" + content


def test_the_last_call_does_not_announce_more() -> None:
    flags: list[int] = []

    class Spy:
        def send(self, data: memoryview, flag: int) -> int:
            flags.append(flag)
            return len(data)

    outbox = Outbox(Spy(), memoryview(bytearray(STAGING)))  # type: ignore[arg-type]
    outbox.add([b"x" * 2 * STAGING])

    assert outbox.flush() is Flushed.ALL

    assert flags == [socket.MSG_MORE, 0]


def test_a_socket_that_takes_little_gets_everything_in_the_end(log: OpenFile) -> None:
    taken = bytearray()

    class Slow:
        def send(self, data: memoryview, _flags: int) -> int:
            taken.extend(data[:13])
            return min(13, len(data))

    outbox = Outbox(Slow(), memoryview(bytearray(STAGING)))  # type: ignore[arg-type]
    outbox.add([b"head", FileRange(log, 0, 256), b"tail of more than thirteen bytes"])
    while outbox.flush() is Flushed.SOCKET_FULL:
        pass

    assert bytes(taken) == b"head" + bytes(range(256)) + b"tail of more than thirteen bytes"


def test_a_file_system_that_cannot_tell_what_is_in_memory_is_just_read(
    log: OpenFile, monkeypatch: pytest.MonkeyPatch
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

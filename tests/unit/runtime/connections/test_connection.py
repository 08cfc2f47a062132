"""A connection keeps order, applies back-pressure both ways and survives what peers do."""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from struct import pack

import pytest

from ottla.runtime import disk
from ottla.runtime.connections import file_range
from ottla.runtime.connections.connection import OWN_BYTES_ALWAYS, Connection
from ottla.runtime.connections.file_range import FileRange
from ottla.runtime.connections.outbox import STAGING_BYTES, Piece
from ottla.runtime.connections.receive_buffer import SharedBuffer
from ottla.runtime.connections.sockets import PlainTransport
from ottla.runtime.disk import RealDisk
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop
from ottla.wire.errors import MalformedBytes


def frame(content: bytes) -> bytes:
    return pack(">i", len(content)) + content


class Wire:
    """A connection on a loop of its own, its peer's end of the wire, and its owner's diary."""

    def __init__(self, serve: Callable[[bytes], Sequence[Piece] | None]) -> None:
        self.loop = ServingLoop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.peer = socket.create_connection(listening.getsockname())
            ours, _ = listening.accept()
        ours.setblocking(False)
        self.peer.settimeout(10)
        self.shared_buffer = SharedBuffer()
        self.staging = memoryview(bytearray(STAGING_BYTES))
        self.frame_bytes_max = 1_000_000
        self.tick = 1
        self.closed: list[Exception | None] = []
        self.cold_reads = 0
        self.served: list[bytes] = []
        self.session_is_closed = False
        self.is_short_of_memory = False
        self._serve = serve
        self.connection = Connection(
            LoopScheduler(self.loop),
            PlainTransport(self.loop, ours, "127.0.0.1", 1),
            self,
            "PLAINTEXT",
            lambda _: self,
        )

    def receive(self, request: memoryview) -> Sequence[Piece] | None:
        self.served.append(bytes(request))
        return self._serve(bytes(request))

    def close(self) -> None:
        self.session_is_closed = True

    def connection_closed(self, connection: Connection, reason: Exception | None) -> None:
        self.closed.append(reason)

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.cold_reads += 1
        work()
        self.loop.call_soon(done, None)

    def turn(self, count: int = 5) -> None:
        """Let the loop handle what is there."""
        for _ in range(count):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def read(self, size: int) -> bytes:
        """Read as the peer, giving the connection turns meanwhile."""
        self.peer.setblocking(False)
        content = b""
        while len(content) < size:
            self.turn(1)
            try:
                received = self.peer.recv(size - len(content))
            except BlockingIOError:
                continue
            assert received, f"closed after {len(content)} of {size} bytes"
            content += received
        return content

    def end(self) -> None:
        self.connection.close()
        self.peer.close()
        self.loop.close()


@pytest.fixture
def make_wire() -> Iterator[Callable[[Callable[[bytes], Sequence[Piece] | None]], Wire]]:
    wires: list[Wire] = []

    def make(serve: Callable[[bytes], Sequence[Piece] | None]) -> Wire:
        wires.append(Wire(serve))
        return wires[-1]

    yield make
    for wire in wires:
        wire.end()


MakeWire = Callable[[Callable[[bytes], Sequence[Piece] | None]], Wire]


def test_pipelined_requests_are_answered_in_order(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: [b"<", request, b">"])
    wire.peer.sendall(b"".join(frame(b"%d" % number) for number in range(9)))
    assert wire.read(27) == b"<0><1><2><3><4><5><6><7><8>"


def test_no_request_is_served_while_an_answer_is_pending(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: None if request == b"park" else [request])
    wire.peer.sendall(frame(b"one") + frame(b"park") + frame(b"two"))
    wire.turn()
    wire.peer.sendall(frame(b"three"))
    wire.turn()
    assert wire.served == [b"one", b"park"]
    assert wire.read(3) == b"one"

    wire.connection.answer_later([b"parked"])

    assert wire.read(14) == b"parkedtwothree"


def test_a_peer_that_leaves_while_its_answer_is_pending_is_noticed(make_wire: MakeWire) -> None:
    wire = make_wire(lambda _: None)
    wire.peer.sendall(frame(b"park"))
    wire.turn()
    wire.peer.close()
    wire.turn()
    assert wire.closed == [None]
    assert wire.session_is_closed
    wire.connection.answer_later([b"too late"])


def test_a_connection_ends_with_the_answer_to_the_request_that_was_taken_up(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: None)
    wire.peer.sendall(frame(b"first") + frame(b"second"))
    wire.turn()
    wire.connection.end()
    wire.turn()
    assert wire.closed == [], "an answer is due"
    wire.connection.answer_later([frame(b"answer")])
    assert wire.closed == [None]
    assert wire.read(len(frame(b"answer"))) == frame(b"answer")
    assert wire.served == [b"first"]


def test_a_connection_on_which_nothing_is_due_ends_at_once(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: [frame(request)])
    wire.connection.mute(60_000)
    wire.connection.end()
    assert wire.closed == [None]


def test_a_peer_that_does_not_read_is_not_served(make_wire: MakeWire) -> None:
    answer = b"x" * 1_000_000
    wire = make_wire(lambda _: [answer])
    wire.peer.sendall(frame(b"more") * 50)
    wire.turn(200)
    # The kernel's buffers take some megabytes, not fifty.
    assert len(wire.served) < 40
    assert wire.read(50 * len(answer)) == 50 * answer
    assert len(wire.served) == 50


def test_answers_before_a_bad_request_are_still_sent(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: [request])
    wire.peer.sendall(frame(b"good") + pack(">i", -1))
    wire.turn()
    assert wire.peer.recv(100) == b"good"
    assert wire.peer.recv(100) == b""
    assert isinstance(wire.closed[0], MalformedBytes)


def test_an_error_of_the_session_closes_only_this_connection(make_wire: MakeWire) -> None:
    def serve(_: bytes) -> Sequence[Piece]:
        raise KeyError("a bug")

    wire = make_wire(serve)
    wire.peer.sendall(frame(b"boom"))
    wire.turn()
    assert wire.peer.recv(100) == b""
    assert isinstance(wire.closed[0], KeyError)


def test_a_muted_connection_reads_on_when_its_time_is_over(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: [request])

    def mute_after_first(request: bytes) -> Sequence[Piece]:
        if request == b"one":
            wire.connection.mute(60_000)
        return [request]

    wire._serve = mute_after_first
    wire.peer.sendall(frame(b"one") + frame(b"two"))
    wire.turn()
    # The answer goes out at once; what waits is the next request.
    assert wire.read(3) == b"one"
    assert wire.served == [b"one"]

    wire.connection._on_unmute()

    assert wire.read(3) == b"two"


@pytest.mark.parametrize("size", [1, 1000, STAGING_BYTES - 8, STAGING_BYTES, STAGING_BYTES - 4, 3_000_000])
def test_ranges_of_files_are_sent_between_bytes(make_wire: MakeWire, tmp_path: Path, size: int) -> None:
    content = os.urandom(size + 20)
    (tmp_path / "log").write_bytes(content)
    file = RealDisk().open(str(tmp_path / "log"))
    wire = make_wire(lambda _: [b"head", FileRange(file, 10, size), b"tail"])
    wire.peer.sendall(frame(b"read") + frame(b"again"))
    expected = b"head" + content[10 : 10 + size] + b"tail"
    assert wire.read(2 * len(expected)) == 2 * expected


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_cold_ranges_are_read_by_a_thread(
    make_wire: MakeWire, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(size)
    (tmp_path / "log").write_bytes(content)
    file = RealDisk().open(str(tmp_path / "log"))
    warm: set[int] = set()
    real_warm, real_preadv = FileRange.warm, os.preadv

    def warm_up(self: FileRange) -> None:
        warm.update(range(self.position, self.position + file_range.WARMED_BYTES))
        real_warm(self)

    def preadv(descriptor: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        if flags and position not in warm:
            raise BlockingIOError
        return real_preadv(descriptor, buffers, position, 0)

    def is_in_memory(descriptor: int, position: int, length: int) -> bool:
        return warm.issuperset(range(position, position + length))

    monkeypatch.setattr(FileRange, "warm", warm_up)
    monkeypatch.setattr(disk, "is_in_memory", is_in_memory)
    monkeypatch.setattr(os, "preadv", preadv)
    wire = make_wire(lambda _: [b"head", FileRange(file, 0, size)])
    wire.peer.sendall(frame(b"read") + frame(b"again"))

    assert wire.read(2 * (4 + size)) == 2 * (b"head" + content)
    assert wire.cold_reads >= max(1, size // file_range.WARMED_BYTES)


def test_a_file_that_shrank_closes_the_connection(make_wire: MakeWire, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 50_000)
    file = RealDisk().open(str(tmp_path / "log"))
    wire = make_wire(lambda _: [b"head", FileRange(file, 0, 100_000)])
    wire.peer.sendall(frame(b"read"))
    wire.turn(20)
    assert isinstance(wire.closed[0], EOFError)


def test_a_large_frame_waits_while_memory_is_short_and_a_small_one_does_not(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: [b"%d" % len(request)])
    wire.is_short_of_memory = True
    wire.peer.sendall(frame(b"small"))
    assert wire.read(1) == b"5"
    size = 3_000_000
    wire.connection._buffer.frame_bytes_max = size
    wire.peer.setblocking(False)
    sent = wire.peer.send(frame(b"x" * size))
    wire.turn(50)
    assert OWN_BYTES_ALWAYS < wire.connection.own_bytes < 2 * OWN_BYTES_ALWAYS + 400_000
    assert wire.connection.is_waiting_for_frame

    wire.is_short_of_memory = False
    wire.connection.memory_is_back()
    rest = memoryview(frame(b"x" * size))[sent:]
    while rest:
        wire.turn(1)
        try:
            rest = rest[wire.peer.send(rest) :]
        except BlockingIOError:
            continue
    assert wire.read(7) == b"%d" % size
    assert wire.shared_buffer.held_bytes == wire.connection.own_bytes


def test_a_frame_in_parts_has_one_beginning(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: [request])
    wire.tick = 5
    wire.peer.sendall(pack(">i", 10) + b"12")
    wire.turn()
    wire.tick = 9
    wire.peer.sendall(b"34")
    wire.turn()
    assert wire.connection.frame_tick == 5
    wire.peer.sendall(b"567890" + pack(">i", 3))
    wire.turn()
    assert wire.connection.frame_tick == 9
    wire.peer.sendall(b"abc")
    wire.turn()
    assert wire.connection.frame_tick == 0
    assert wire.read(13) == b"1234567890abc"


def test_what_came_before_a_farewell_is_served(make_wire: MakeWire) -> None:
    wire = make_wire(lambda request: None if request == b"commit" else [b"left"])
    wire.peer.sendall(frame(b"commit") + frame(b"leave"))
    wire.turn()
    wire.peer.close()
    wire.turn()
    assert wire.served == [b"commit"]
    assert wire.closed == []
    wire.connection.answer_later([b"committed"])
    wire.turn()
    assert wire.served == [b"commit", b"leave"]
    assert len(wire.closed) == 1


def test_a_peer_that_goes_while_it_waits_is_let_go(make_wire: MakeWire) -> None:
    wire = make_wire(lambda _: None)
    wire.peer.sendall(frame(b"fetch") + frame(b"cut off")[:6])
    wire.turn()
    wire.peer.close()
    wire.turn()
    assert len(wire.closed) == 1


def test_a_connection_is_closed_once_however_many_reasons_there_are(make_wire: MakeWire) -> None:
    wire = make_wire(lambda _: None)
    wire.connection.close()
    wire.connection.close(ConnectionError("too late"))
    assert wire.closed == [None], "or there would be a place too many for others"

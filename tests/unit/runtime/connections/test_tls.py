"""TLS over a pipe that takes little at a time: everything arrives, and both sides learn how it ended."""

import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trustme

from ottla.runtime.connections.tls import CIPHER_BYTES_AT_ONCE, HANDSHAKE_MS_MAX, TlsFailed, TlsTransport
from ottla.world.disk import Buffer, File
from ottla.world.network import READABLE, WRITABLE

AUTHORITY = trustme.CA()
SERVER = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
AUTHORITY.issue_cert("node.example").configure_cert(SERVER)
CLIENT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
AUTHORITY.configure_trust(CLIENT)
STRANGER = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
LARGE = bytes(range(256)) * 4096
"""More than a pipe holds, and more than is encrypted at once."""


class Later:
    """A call that is due later."""

    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Turns:
    """A scheduler whose turns and whose time the test makes."""

    def __init__(self) -> None:
        self.soon: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self.later: list[tuple[int, Callable[..., object], Later]] = []

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        self.soon.append((callback, args))

    def call_later(self, delay_ms: int, callback: Callable[..., object], *_args: Any) -> Later:
        self.later.append((delay_ms, callback, Later()))
        return self.later[-1][2]

    def when_idle(self, callback: Callable[[], None], at_latest_ns: int) -> None:
        raise NotImplementedError

    def call_from_thread(self, callback: Callable[..., object], *args: Any) -> None:
        raise NotImplementedError

    def report(self, message: str, error: Exception) -> None:
        raise error


@dataclass
class End:
    """One end of a pipe with little room, as a transport."""

    room: int
    arrived: bytearray = field(default_factory=bytearray)
    is_closed: bool = False
    events: int = 0
    handler: Callable[[int], None] | None = None
    sends_files: bool = True
    peer_certificate: bytes | None = None
    local: tuple[str, int] = ("10.0.0.1", 9092)
    peer_host: str = "10.0.0.2"
    peer_port: int = 5000
    other: "End" = field(init=False)

    def receive_into(self, buffer: memoryview) -> int:
        if not self.arrived:
            if self.other.is_closed:
                return 0
            raise BlockingIOError
        count = min(len(buffer), len(self.arrived))
        buffer[:count] = self.arrived[:count]
        del self.arrived[:count]
        return count

    def send(self, data: Buffer) -> int:
        if self.other.is_closed:
            raise BrokenPipeError(32, "Broken pipe")
        count = min(len(memoryview(data)), self.room - len(self.other.arrived))
        if not count:
            raise BlockingIOError
        self.other.arrived += memoryview(data)[:count]
        return count

    send_more = send

    def send_file(self, file: File, position: int, count: int) -> int | None:
        raise NotImplementedError

    def is_closed_by_peer(self) -> bool:
        if self.arrived:
            return False
        if self.other.is_closed:
            return True
        raise BlockingIOError

    def watch(self, handler: Callable[[int], None], events: int) -> None:
        self.handler, self.events = handler, events

    def change(self, events: int) -> None:
        self.events = events

    def close(self) -> None:
        self.is_closed = True

    def ready(self) -> int:
        """Tell which of the events that are watched for hold now."""
        can_read = READABLE if self.arrived or self.other.is_closed else 0
        can_write = WRITABLE if len(self.other.arrived) < self.room else 0
        return 0 if self.is_closed else (can_read | can_write) & self.events


class Side:
    """Who uses one end: sends what it was given, and keeps what arrives."""

    def __init__(self, transport: TlsTransport, scratch: int = 65_536) -> None:
        self.transport = transport
        self.unsent = memoryview(b"")
        self.received = bytearray()
        self.error: OSError | None = None
        self.is_at_end = False
        self.reads = True
        self._buffer = memoryview(bytearray(scratch))

    def start(self) -> None:
        self.transport.watch(self._on_event, READABLE)

    def give(self, content: bytes) -> None:
        self.unsent = memoryview(content)
        self.transport.change(READABLE | WRITABLE)

    def stop_reading(self) -> None:
        self.reads = False
        self.transport.change(0)

    def read_on(self) -> None:
        self.reads = True
        self.transport.change(READABLE)

    def _on_event(self, events: int) -> None:
        try:
            if events & WRITABLE and self.unsent:
                self.unsent = self.unsent[self.transport.send(self.unsent) :]
                if not self.unsent:
                    self.transport.change(READABLE if self.reads else 0)
            if events & READABLE and self.reads:
                count = self.transport.receive_into(self._buffer)
                self.is_at_end = not count
                self.received += self._buffer[:count]
                if not count:
                    self.transport.change(0)
        except BlockingIOError:
            return
        except OSError as error:
            self.error = error
            self.transport.close()


class Pair:
    """A client and a server at the two ends of a pipe."""

    def __init__(self, room: int = 10_000, client: ssl.SSLContext = CLIENT, scratch: int = 65_536) -> None:
        self.turns = Turns()
        ends = End(room), End(room)
        ends[0].other, ends[1].other = ends[1], ends[0]
        self.ends = ends
        memory = memoryview(bytearray(CIPHER_BYTES_AT_ONCE))
        self.server = Side(TlsTransport(ends[0], SERVER, self.turns, memory), scratch)
        self.client = Side(
            TlsTransport(ends[1], client, self.turns, memory, server_name="node.example", is_server=False),
            scratch,
        )
        self.server.start()
        self.client.start()

    def settle(self) -> None:
        """Let everything happen that can, until nothing is left to do."""
        for _ in range(10_000):
            if self.turns.soon:
                callback, args = self.turns.soon.popleft()
                callback(*args)
            elif busy := [end for end in self.ends if end.ready() and end.handler is not None]:
                for end in busy:
                    assert end.handler is not None
                    if events := end.ready():
                        end.handler(events)
            else:
                return
        raise AssertionError("there is no end to it")


def test_both_sides_know_each_other_after_the_handshake() -> None:
    pair = Pair()
    before = pair.client.transport.peer_certificate
    pair.settle()
    after = pair.client.transport.peer_certificate
    assert before is None
    assert after is not None
    assert pair.server.transport.peer_certificate is None, "a client without a certificate"
    assert (pair.server.transport.peer_host, pair.server.transport.peer_port) == ("10.0.0.2", 5000)
    assert not pair.server.transport.sends_files


@pytest.mark.parametrize("room", [700, 10_000, 10_000_000])
def test_what_is_larger_than_the_pipe_arrives_though_the_peer_says_nothing(room: int) -> None:
    pair = Pair(room)
    pair.settle()
    pair.server.give(LARGE)
    pair.settle()
    assert pair.client.received == LARGE
    assert pair.ends[0].events == pair.ends[1].events == READABLE, "nobody waits for room any more"


def test_both_sides_may_send_at_the_same_time() -> None:
    pair = Pair()
    pair.settle()
    pair.server.give(LARGE)
    pair.client.give(LARGE[::-1])
    pair.settle()
    assert pair.client.received == LARGE
    assert pair.server.received == LARGE[::-1]


def test_what_is_given_before_the_handshake_is_sent_after_it() -> None:
    pair = Pair()
    pair.client.give(b"hello")
    with pytest.raises(BlockingIOError):
        pair.client.transport.send(b"too soon")
    pair.settle()
    assert pair.server.received == b"hello"


def test_what_is_decrypted_already_is_told_though_nothing_more_arrives() -> None:
    pair = Pair(scratch=10)
    pair.settle()
    pair.client.give(b"0123456789" * 5)
    pair.settle()
    assert pair.server.received == b"0123456789" * 5


def test_who_stops_reading_gets_the_rest_when_it_reads_on() -> None:
    pair = Pair(scratch=10)
    pair.settle()
    pair.server.stop_reading()
    pair.client.give(b"0123456789" * 5)
    pair.settle()
    assert pair.server.received == b""
    pair.server.read_on()
    pair.settle()
    assert pair.server.received == b"0123456789" * 5


def test_who_closes_says_so() -> None:
    pair = Pair()
    pair.settle()
    with pytest.raises(BlockingIOError):
        pair.client.transport.is_closed_by_peer()
    pair.server.transport.close()
    pair.server.transport.close()
    assert pair.ends[1].arrived, "the peer is told in TLS, before the connection ends"
    pair.settle()
    assert pair.client.is_at_end
    assert pair.client.error is None
    assert pair.client.transport.is_closed_by_peer()


def test_nothing_can_be_sent_after_the_farewell() -> None:
    pair = Pair()
    pair.settle()
    pair.server.transport.close()
    with pytest.raises(TlsFailed):
        pair.server.transport.send(b"one more thing")


def test_a_handshake_that_takes_too_long_ends() -> None:
    pair = Pair()
    ((delay_ms, late, _), _) = pair.turns.later
    assert delay_ms == HANDSHAKE_MS_MAX
    late()
    assert isinstance(pair.server.error, TlsFailed)
    assert "longer than 10 s" in str(pair.server.error)
    assert pair.server.transport.is_closed_by_peer()
    with pytest.raises(TlsFailed):
        pair.server.transport.send(b"x")


def test_nobody_waits_for_a_handshake_that_is_over() -> None:
    pair = Pair()
    pair.settle()
    assert all(timer.is_cancelled for _, _, timer in pair.turns.later)
    early = Pair()
    early.server.transport.close()
    early.client.transport.close()
    assert all(timer.is_cancelled for _, _, timer in early.turns.later)


def test_a_certificate_that_is_not_trusted_is_told_to_both_sides() -> None:
    pair = Pair(client=STRANGER)
    pair.settle()
    assert "the peer's certificate is not valid" in str(pair.client.error)
    assert "TLS failed" in str(pair.server.error)


def test_bytes_that_are_not_tls_end_the_connection() -> None:
    pair = Pair()
    pair.ends[1].arrived.clear()
    pair.ends[0].arrived[:] = b"GET / HTTP/1.1\r\n\r\n"
    pair.settle()
    assert isinstance(pair.server.error, TlsFailed)


def test_a_peer_that_goes_while_it_is_sent_to_is_told() -> None:
    pair = Pair(700)
    pair.settle()
    pair.client.stop_reading()
    pair.server.give(LARGE)
    pair.settle()
    assert pair.ends[0].events & WRITABLE
    pair.ends[1].close()
    pair.ends[1].arrived.clear()
    pair.settle()
    assert isinstance(pair.server.error, OSError)


def test_a_handler_is_not_called_after_its_side_has_closed() -> None:
    pair = Pair(scratch=10)
    pair.settle()
    pair.client.give(b"0123456789" * 5)
    pair.ends[0].events = 0
    pair.settle()
    pair.server.transport.receive_into(memoryview(bytearray(10)))
    pair.server.transport.close()
    pair.settle()
    assert pair.server.received == b""

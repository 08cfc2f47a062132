"""The network of this machine: TCP sockets on the event loop's poller.

`PlainTransport` adds nothing to a socket where it is hot: what receives and what sends are the socket's own
methods.
"""

import errno
import os
import socket
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast

from ottla.runtime.poller import ServingLoop
from ottla.world.disk import Buffer, File
from ottla.world.network import WRITABLE, Address, Connecting, Transport


class FileWithDescriptor(Protocol):
    """A file of the real disk: the only kind that the kernel can send from."""

    def descriptor(self) -> int:
        """Return an open file descriptor. It stays open at least until the next call of the event loop."""


class PlainTransport:
    """A connected TCP socket."""

    __slots__ = ("_poller", "_socket", "local", "peer_host", "peer_port", "receive_into", "send")

    # Not every file system can. The first file that shows it switches it off for all.
    can_sendfile: ClassVar = True
    peer_certificate = None

    def __init__(self, loop: ServingLoop, sock: socket.socket, peer_host: str, peer_port: int) -> None:
        """Take a socket over, which must not block."""
        self._poller = loop.poller
        self._socket = sock
        self.local: Address = sock.getsockname()[:2]
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.receive_into: Callable[[memoryview], int] = sock.recv_into
        self.send: Callable[[Buffer], int] = sock.send

    @property
    def sends_files(self) -> bool:
        """Say whether `send_file` works."""
        return self.can_sendfile

    def send_more(self, data: Buffer) -> int:
        """Send bytes that others follow at once: the kernel fills the packet."""
        return self._socket.send(data, socket.MSG_MORE)

    def send_file(self, file: File, position: int, count: int) -> int | None:
        """Send a part of a file without a copy."""
        descriptor = cast(FileWithDescriptor, file).descriptor()
        try:
            return os.sendfile(self._socket.fileno(), descriptor, position, count)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            PlainTransport.can_sendfile = False
            return None

    def is_closed_by_peer(self) -> bool:
        """Say whether the peer has closed, without receiving anything."""
        return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)

    def watch(self, handler: Callable[[int], None], events: int) -> None:
        """Call `handler` whenever one of the events holds."""
        self._poller.add(self._socket.fileno(), handler, events)

    def change(self, events: int) -> None:
        """Watch for other events."""
        self._poller.change(self._socket.fileno(), events)

    def close(self) -> None:
        """Close now."""
        descriptor = self._socket.fileno()
        if descriptor >= 0:
            self._poller.discard(descriptor)
            self._socket.close()


class PlainListening:
    """A listening TCP socket."""

    def __init__(self, loop: ServingLoop, sock: socket.socket) -> None:
        self._loop = loop
        self._socket = sock
        self._ready: Callable[[], None] = _nothing
        self.address: Address = sock.getsockname()[:2]

    def start(self, backlog: int, ready: Callable[[], None]) -> None:
        """Let peers connect."""
        self._socket.listen(backlog)
        self._ready = ready
        self.resume()

    def accept(self) -> PlainTransport:
        """Return the next connection."""
        client, address = self._socket.accept()
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return PlainTransport(self._loop, client, *address[:2])
        except OSError as error:
            # It was gone before it was served.
            client.close()
            raise ConnectionAbortedError(*error.args) from error

    def pause(self) -> None:
        """Let peers wait in the backlog."""
        self._loop.remove_reader(self._socket.fileno())

    def resume(self) -> None:
        """Accept again."""
        self._loop.add_reader(self._socket.fileno(), self._ready)

    def close(self) -> None:
        """Give the address back."""
        if self._socket.fileno() >= 0:
            self.pause()
            self._socket.close()


class _PlainConnecting:
    """A TCP connection that is being made."""

    def __init__(
        self,
        loop: ServingLoop,
        address: Address,
        connected: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._address = address
        self._connected = connected
        self._failed = failed
        self._is_over = False
        self._socket: socket.socket | None = None
        loop.call_soon(self._begin)

    def cancel(self) -> None:
        """Stop."""
        if not self._is_over:
            self._is_over = True
            self._let_go()

    def _begin(self) -> None:
        if self._is_over:
            return
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = sock.connect_ex((host, port))
        except OSError as error:
            self._fail(error)
            return
        if number not in (0, errno.EINPROGRESS):
            self._fail(OSError(number, os.strerror(number)))
            return
        self._loop.poller.add(sock.fileno(), self._on_event, WRITABLE)

    def _on_event(self, _events: int) -> None:
        assert self._socket is not None, "it is what is watched"
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._fail(OSError(number, os.strerror(number)))
            return
        self._is_over = True
        self._loop.poller.discard(self._socket.fileno())
        try:
            transport = PlainTransport(self._loop, self._socket, *self._address)
        except OSError as error:
            self._fail(error)
            return
        self._connected(transport)

    def _fail(self, error: OSError) -> None:
        self._is_over = True
        self._let_go()
        self._failed(error)

    def _let_go(self) -> None:
        if self._socket is not None:
            self._loop.poller.discard(self._socket.fileno())
            self._socket.close()


class PlainNetwork:
    """TCP on one event loop."""

    def __init__(self, loop: ServingLoop) -> None:
        self._loop = loop

    def listen(self, host: str, port: int, send_buffer_bytes: int = -1) -> PlainListening:
        """Take an address."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if send_buffer_bytes > 0:
                # Accepted connections inherit it.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
            if family == socket.AF_INET6:
                # An address of one family means that family, so that `::` beside `0.0.0.0` does not clash.
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind((host, port))
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        return PlainListening(self._loop, listening)

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> Connecting:
        """Connect to a peer by its IP address."""
        return _PlainConnecting(self._loop, (host, port), connected, failed)

    def resolve(self, host: str) -> str:
        """Return the IP address of a host."""
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        # Of a name with both, the older family, as Java does: clients try it first, too.
        addresses.sort(key=lambda found: found[0] != socket.AF_INET)
        return str(addresses[0][4][0])

    def host_name(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()


def _nothing(*_: Any) -> None:
    """Stand for what is called once a listener was started."""

"""What a node asks of the network: to listen, to connect, and to move bytes without ever waiting.

A `Transport` is one connection as a stream of bytes. Plain TCP is one kind. TLS and the simulated network are
others. It is used in the way of a non-blocking socket, with Python's own errors:

- `BlockingIOError`: nothing can be received or sent now. A watcher is called when it can.
- any other `OSError`: the connection is broken.

Addresses are pairs of host and port, and a host is an IP address in text.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from ottla.world.disk import Buffer, File

READABLE: Final = 0x01
WRITABLE: Final = 0x04
GONE: Final = 0x08 | 0x10
"""An error or a hang-up. It is reported whether it was asked for or not."""

Address: TypeAlias = tuple[str, int]


class Transport(Protocol):
    """One connection. What is used for every request may be an attribute, bound when it is made."""

    local: Address
    peer_host: str
    peer_port: int

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate that the peer has shown and that was checked, as DER; None if there is none."""

    @property
    def receive_into(self) -> Callable[[memoryview], int]:
        """Fill a buffer with what has arrived, and return how many bytes; 0 when the peer has closed."""

    @property
    def send(self) -> Callable[[Buffer], int]:
        """Send bytes, and return how many were taken."""

    def send_more(self, data: Buffer) -> int:
        """Do what `send` does when more follows at once, so that packets can be filled."""

    @property
    def sends_files(self) -> bool:
        """Say whether `send_file` works. If not, files have to be read and sent as bytes."""

    def send_file(self, file: File, position: int, count: int) -> int | None:
        """Send a part of a file without a copy, and return how many bytes were taken.

        None says that this does not work with this file.
        """

    def is_closed_by_peer(self) -> bool:
        """Say whether the peer has closed, without receiving anything.

        Raises `BlockingIOError` if nothing has arrived at all.
        """

    def watch(self, handler: Callable[[int], None], events: int) -> None:
        """Call `handler` whenever one of the events holds, with those that do."""

    def change(self, events: int) -> None:
        """Watch for other events."""

    def close(self) -> None:
        """Close now, and call the handler no more. What was not sent is lost."""


class Listening(Protocol):
    """An address that was taken, for others to connect to."""

    address: Address

    def start(self, backlog: int, ready: Callable[[], None]) -> None:
        """Let peers connect. `ready` is called whenever there may be one to accept."""

    def accept(self) -> Transport:
        """Return the next connection. Raises `BlockingIOError` if there is none, or another `OSError`."""

    def pause(self) -> None:
        """Do not call `ready` until `resume`. Peers that connect meanwhile wait."""

    def resume(self) -> None:
        """Call `ready` again when there may be somebody to accept."""

    def close(self) -> None:
        """Give the address back."""


class Connecting(Protocol):
    """A connection that is being made."""

    def cancel(self) -> None:
        """Stop. Neither callback is called any more."""


class Network(Protocol):
    """The network, as one node sees it."""

    def listen(self, host: str, port: int, send_buffer_bytes: int = -1) -> Listening:
        """Take an address, port 0 for a free one. Nobody can connect yet. Raises `OSError`."""

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> Connecting:
        """Connect to a peer. One of the two is called later, never before this has returned."""

    def resolve(self, host: str) -> str:
        """Return the IP address of a host to listen on. Raises `OSError`."""

    def host_name(self) -> str:
        """Return the name under which others know this machine."""

"""A connection to another broker that is made when somebody asks, and again after it broke.

The caller has to be patient: a request that cannot be sent, or is not answered, gets the reason instead of a
response, and whether and when to ask again is up to its sender.
"""

from collections import deque
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.runtime.connections.peer import NotServed, Peer, PeerLost, PeerMemory, PeerSettings
from ottla.world.network import Address
from ottla.world.world import World

Answered: TypeAlias = Callable[[Any], None]
"""Called with the response, or with an `Unanswered`."""
FindAddress: TypeAlias = Callable[[], Address | None]
VERSION_MAX: Final = 1 << 15


class Unanswered(Exception):
    """A request to another broker got no response. The message says why."""


class _Request(NamedTuple):
    request: Any
    answered: Answered
    timeout_ms: int | None
    version_max: int


class BrokerPeer:
    """The way to one broker for one purpose."""

    def __init__(
        self, world: World, memory: PeerMemory, find_address: FindAddress, settings: PeerSettings
    ) -> None:
        """`find_address` returns where the broker is now, as the metadata says, or None."""
        self._world = world
        self._memory = memory
        self._find_address = find_address
        self._settings = settings
        self._peer: Peer | None = None
        self._is_ready = False
        self._is_closed = False
        # Requests for when there is a connection.
        self._waiting: deque[_Request] = deque()

    def ask(
        self,
        request: Any,
        answered: Answered,
        timeout_ms: int | None = None,
        version_max: int = VERSION_MAX,
    ) -> None:
        """Send a request in the newest version that both know, up to `version_max`."""
        one = _Request(request, answered, timeout_ms, version_max)
        if self._is_ready:
            self._send(one)
            return
        self._waiting.append(one)
        if len(self._waiting) == 1:
            self._connect()

    def close(self) -> None:
        """Close. Requests that wait for a response fail."""
        self._is_closed = True
        if self._peer is not None:
            self._peer.close()
        self._lose(Unanswered("the connection was closed"))

    def _connect(self) -> None:
        address = self._find_address()
        if address is None or self._is_closed:
            self._world.scheduler.call_soon(self._lose, Unanswered("the broker is not there"))
            return
        host, port = address
        if _is_ip_address(host):
            self._connect_to(host, port, host)
            return
        found: list[str] = []

        def resolved(error: Exception | None) -> None:
            if error is not None:
                self._lose(Unanswered(f"cannot find the address of {host}: {error}"))
            elif not self._is_closed:
                self._connect_to(found[0], port, host)

        self._world.workers.run(lambda: found.append(self._world.network.resolve(host)), resolved)

    def _connect_to(self, address: str, port: int, name: str) -> None:
        peer = Peer(self._world, self._memory, (address, port), self._settings, self._lost, name)
        self._peer = peer
        peer.connect(self._connected)

    def _connected(self) -> None:
        self._is_ready = True
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            self._send(one)

    def _lost(self, error: PeerLost) -> None:
        self._lose(Unanswered(str(error)))

    def _lose(self, error: Unanswered) -> None:
        self._peer = None
        self._is_ready = False
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.answered(error)

    def _send(self, one: _Request) -> None:
        peer = self._peer
        if peer is None or peer.is_full:
            one.answered(Unanswered("the connection is busy or gone"))
            return
        try:
            version = min(peer.version_for(type(one.request)), one.version_max)
        except NotServed as error:
            one.answered(Unanswered(str(error)))
            return

        def answered(response: Any) -> None:
            one.answered(Unanswered(str(response)) if isinstance(response, PeerLost) else response)

        peer.ask(one.request, version, answered, one.timeout_ms)


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True

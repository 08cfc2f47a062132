"""A lasting way to another node: ask, and it connects by itself, again and again, with a back-off.

    link = Link(world, memory, host, port, PeerSettings(...))
    link.ask(request, answered)

A `Peer` is one connection; a link has one after the other. What is asked while there is none waits for the
next one. A connection that breaks, or cannot be made, answers all that waits for it with `PeerLost`: whether
to ask again, and whom, is for the owner to decide. A host name is looked up for each connection, by a worker.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from ottla.runtime.connections.outbox import STAGING_BYTES
from ottla.runtime.connections.peer import Answered, NotServed, Peer, PeerLost, PeerMemory, PeerSettings
from ottla.runtime.connections.receive_buffer import SharedBuffer
from ottla.world.scheduler import Timer
from ottla.world.world import World

BACK_OFF_MS_MIN: Final = 50
BACK_OFF_MS_MAX: Final = 1000
WAITING_MAX: Final = 10_000


class _Waiting(NamedTuple):
    request: Any
    answered: Answered
    version: int | None
    version_min: int
    timeout_ms: int | None


def new_peer_memory() -> PeerMemory:
    """Return memory for all links of a node."""
    return PeerMemory(SharedBuffer(), memoryview(bytearray(STAGING_BYTES)))


class Link:
    """The way to one node."""

    def __init__(
        self,
        world: World,
        memory: PeerMemory,
        host: str,
        port: int,
        settings: PeerSettings,
        back_off_ms_max: int = BACK_OFF_MS_MAX,
    ) -> None:
        self.host, self.port = host, port
        self._world = world
        self._memory = memory
        self._settings = settings
        self._back_off_ms_max = back_off_ms_max
        self._peer: Peer | None = None
        self._is_ready = False
        self._is_closed = False
        self._timer: Timer | None = None
        self._failures = 0
        self._waiting: deque[_Waiting] = deque()
        self.when_lost: Callable[[], None] | None = None
        """Called when a connection is lost that was there, also if nobody waits for an answer."""

    def ask(
        self,
        request: Any,
        answered: Answered,
        version: int | None = None,
        timeout_ms: int | None = None,
        version_min: int = 0,
    ) -> None:
        """Send a request, in the newest version that both nodes know unless one is given.

        Versions before `version_min` cannot say what the request says. `answered` gets the response, a
        `PeerLost` or a `NotServed`, never before this has returned.
        """
        if self._is_closed or len(self._waiting) >= WAITING_MAX:
            reason = "is closed" if self._is_closed else f"has {WAITING_MAX} requests waiting"
            error = PeerLost(f"the connection to {self.host}:{self.port} {reason}")
            self._world.scheduler.call_soon(answered, error)
            return
        self._waiting.append(_Waiting(request, answered, version, version_min, timeout_ms))
        if self._is_ready:
            self._send_waiting()
        elif self._peer is None and self._timer is None:
            self._connect()

    def close(self) -> None:
        """Close for good. All that waits gets a `PeerLost`."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        peer, self._peer, self._is_ready = self._peer, None, False
        if peer is not None:
            peer.close()
        self._refuse_waiting(PeerLost(f"the connection to {self.host}:{self.port} was closed"))

    # Connecting

    def _connect(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        if _is_address(self.host):
            self._connect_to(self.host)
            return
        found: list[str] = []

        def look_up() -> None:
            found.append(self._world.network.resolve(self.host))

        self._timer = self._world.scheduler.call_later(self._settings.connect_timeout_ms, self._look_up_late)
        timer = self._timer
        self._world.workers.run(look_up, partial(self._looked_up, timer, found))

    def _looked_up(self, timer: Timer, found: list[str], error: Exception | None) -> None:
        if self._timer is not timer or self._is_closed:
            return
        timer.cancel()
        self._timer = None
        if found:
            self._connect_to(found[0])
        elif isinstance(error, OSError):
            self._failed(PeerLost(f"cannot find the address of {self.host}: {error.strerror or error}"))
        else:
            assert error is not None, "it found nothing, so it failed"
            raise error

    def _look_up_late(self) -> None:
        self._timer = None
        self._failed(PeerLost(f"cannot find the address of {self.host} in time"))

    def _connect_to(self, address: str) -> None:
        self._peer = Peer(
            self._world, self._memory, (address, self.port), self._settings, self._lost, self.host
        )
        self._peer.connect(self._ready)

    def _ready(self) -> None:
        self._is_ready = True
        self._failures = 0
        self._send_waiting()

    def _send_waiting(self) -> None:
        assert self._peer is not None, "it is ready"
        while self._waiting and not self._peer.is_full and self._is_ready:
            request, answered, version, version_min, timeout_ms = self._waiting.popleft()
            try:
                chosen = version
                if chosen is None:
                    chosen = self._peer.version_for(type(request), version_min)
            except NotServed as error:
                self._world.scheduler.call_soon(answered, error)
                continue
            self._peer.ask(request, chosen, partial(self._answered, answered), timeout_ms)

    def _answered(self, answered: Answered, answer: Any) -> None:
        answered(answer)
        if self._waiting and self._is_ready:
            self._send_waiting()

    # Losing

    def _lost(self, error: PeerLost) -> None:
        was_ready, self._peer, self._is_ready = self._is_ready, None, False
        self._failed(error)
        if was_ready and self.when_lost is not None:
            self.when_lost()

    def _failed(self, error: PeerLost) -> None:
        back_off_ms = min(BACK_OFF_MS_MIN << self._failures, self._back_off_ms_max)
        self._failures = min(self._failures + 1, 16)
        self._timer = self._world.scheduler.call_later(back_off_ms, self._backed_off)
        self._refuse_waiting(error)

    def _backed_off(self) -> None:
        self._timer = None
        if self._waiting:
            self._connect()

    def _refuse_waiting(self, error: PeerLost) -> None:
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.answered(error)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True

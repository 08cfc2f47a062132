"""A lasting way to another node: ask, and it connects by itself, again and again, with a back-off.

    link = Link(world, memory, find_address, PeerSettings(...))
    link.ask(request, answered)

A `Peer` is one connection; a link has one after the other. What is asked while there is none waits for the
next one. A connection that breaks, or cannot be made, answers all that waits for it with `PeerLost`: whether
to ask again, and whom, is for the owner to decide. For each connection, `find_address` is asked, and a worker
looks up the host name.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.runtime.connections.outbox import STAGING_BYTES
from ottla.runtime.connections.peer import Answered, NotServed, Peer, PeerLost, PeerMemory, PeerSettings
from ottla.runtime.connections.receive_buffer import SharedBuffer
from ottla.world.network import Address
from ottla.world.scheduler import Timer
from ottla.world.world import World

BACK_OFF_MS_MIN: Final = 50
BACK_OFF_MS_MAX: Final = 1000
WAITING_MAX: Final = 10_000
VERSION_MAX: Final = 1 << 15

FindAddress: TypeAlias = Callable[[], Address | None]


class _Waiting(NamedTuple):
    request: Any
    answered: Answered
    timeout_ms: int | None
    version: int | None
    version_min: int
    version_max: int


def new_peer_memory() -> PeerMemory:
    """Return memory for all links of a node."""
    return PeerMemory(SharedBuffer(), memoryview(bytearray(STAGING_BYTES)))


class Link:
    """The way to one node."""

    def __init__(
        self,
        world: World,
        memory: PeerMemory,
        find_address: FindAddress,
        settings: PeerSettings,
        back_off_ms_max: int = BACK_OFF_MS_MAX,
    ) -> None:
        """`find_address` returns where the node is now, or None if nobody knows."""
        self._find_address = find_address
        # That of the last connection, for messages.
        self._name = "another node"
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
        timeout_ms: int | None = None,
        *,
        version: int | None = None,
        version_min: int = 0,
        version_max: int = VERSION_MAX,
    ) -> None:
        """Send a request, in the newest version that both nodes know unless one is given.

        Versions before `version_min` cannot say what the request says, and those after `version_max` may not
        be used yet. `answered` gets the response, or an `Unanswered`, never before this has returned.
        """
        if self._is_closed or len(self._waiting) >= WAITING_MAX:
            reason = "is closed" if self._is_closed else f"has {WAITING_MAX} requests waiting"
            error = PeerLost(f"the connection to {self._name} {reason}")
            self._world.scheduler.call_soon(answered, error)
            return
        self._waiting.append(_Waiting(request, answered, timeout_ms, version, version_min, version_max))
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
        self._refuse_waiting(PeerLost(f"the connection to {self._name} was closed"))

    # Connecting

    def _connect(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        place = self._find_address()
        if place is None:
            self._timer = self._world.scheduler.call_later(0, self._is_nowhere)
            return
        host, port = place
        self._name = f"{host}:{port}"
        if _is_address(host):
            self._connect_to(host, place)
            return
        found: list[str] = []

        def look_up() -> None:
            found.append(self._world.network.resolve(host))

        self._timer = self._world.scheduler.call_later(self._settings.connect_timeout_ms, self._look_up_late)
        timer = self._timer
        self._world.workers.run(look_up, partial(self._looked_up, timer, place, found))

    def _is_nowhere(self) -> None:
        self._timer = None
        self._failed(PeerLost("the node is not registered, so nobody knows where it is"))

    def _looked_up(self, timer: Timer, place: Address, found: list[str], error: Exception | None) -> None:
        if self._timer is not timer or self._is_closed:
            return
        timer.cancel()
        self._timer = None
        if found:
            self._connect_to(found[0], place)
        elif isinstance(error, OSError):
            self._failed(PeerLost(f"cannot find the address of {place[0]}: {error.strerror or error}"))
        else:
            assert error is not None, "it found nothing, so it failed"
            raise error

    def _look_up_late(self) -> None:
        self._timer = None
        self._failed(PeerLost(f"cannot find the address of {self._name} in time"))

    def _connect_to(self, address: str, place: Address) -> None:
        host, port = place
        self._peer = Peer(self._world, self._memory, (address, port), self._settings, self._lost, host)
        self._peer.connect(self._ready)

    def _ready(self) -> None:
        self._is_ready = True
        self._failures = 0
        self._send_waiting()

    def _send_waiting(self) -> None:
        assert self._peer is not None, "it is ready"
        while self._waiting and not self._peer.is_full and self._is_ready:
            request, answered, timeout_ms, version, version_min, version_max = self._waiting.popleft()
            try:
                chosen = version
                if chosen is None:
                    chosen = min(self._peer.version_for(type(request), version_min), version_max)
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

"""Listeners, the connections they accept, and the limits on both.

Who may connect: at most so many at once, in all and from one address, no faster than `ask_admission` says.
Who must go: a connection that was silent for too long, and one that began a frame and does not finish it. A
sweep once a second looks at all of them, so that no connection needs a timer of its own.
"""

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from ottla.runtime.connections.connection import Connection, Session
from ottla.runtime.connections.outbox import STAGING_BYTES
from ottla.runtime.connections.receive_buffer import SharedBuffer
from ottla.runtime.connections.tls import TlsFailed
from ottla.runtime.log_lines import RepeatedLines
from ottla.wire.errors import MalformedBytes
from ottla.world.clock import Clock
from ottla.world.network import Listening, Transport
from ottla.world.scheduler import Scheduler, Timer
from ottla.world.workers import Run

ACCEPTS_AT_ONCE: Final = 64
SWEEP_MS: Final = 1000
_ACCEPT_AGAIN_MS: Final = 1000
TURNED_AWAY_MAX: Final = 1000
FRAME_BYTES_PER_SECOND_MIN: Final = 1 << 20
_PEER_IS_GONE: Final = (errno.ENOTCONN, errno.ECONNRESET, errno.EPIPE)
_OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds on connections, with Kafka's names and defaults where Kafka has them."""

    connections_max: int = 0x7FFFFFFF
    connections_per_ip_max: int = 0x7FFFFFFF
    connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)
    idle_ms_max: int = 600_000
    frame_bytes_max: int = 104_857_600
    # Deviation: Kafka lets a peer take as long as it likes for a frame. Here it has this long, and more time
    # only while it sends at a decent rate.
    frame_ms_max: int = 30_000
    backlog: int = 50
    # Deviation: Kafka has no such bound by default. A thousand connections could fill 100 GiB with frames
    # that they never end.
    held_bytes_max: int = 1 << 30
    # What the kernel may hold of answers to a connection; -1 leaves it to the system. The system's own choice
    # grows to megabytes, which then pass through no cache: a GB fetched over loopback took both sides 0.8 CPU
    # seconds, and 0.45 with Kafka's default of 100 KB. For what is received it is the other way round: with
    # 100 KB a producer of large requests took twice the CPU, so that stays the system's choice.
    send_buffer_bytes: int = -1


class Admission(NamedTuple):
    """What is to become of a new connection. Times of 0 mean that it is served at once."""

    # For how long neither it nor any other is served.
    pause_ms: int
    # It is not served at all, and closed then.
    close_after_ms: int


AskAdmission: TypeAlias = Callable[[str, str, int], Admission]
"""Called with the listener, the peer's host and the monotonic time whenever a connection comes."""


def admit_at_once(_listener: str, _peer_host: str, _now_ms: int) -> Admission:
    """Serve every connection at once."""
    return Admission(0, 0)


class Listeners:
    """All listeners and connections of a node, on one event loop."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        limits: ConnectionLimits,
        make_session: Callable[[Connection], Session],
        run: Run,
        ask_admission: AskAdmission = admit_at_once,
    ) -> None:
        """`run` does blocking work elsewhere; `ask_admission` knows how fast connections may come."""
        self._scheduler = scheduler
        self._clock = clock
        # They may be replaced at any time, and hold for connections to come.
        self.limits = limits
        # It may be replaced, too: tests put themselves between a client and its session.
        self.make_session = make_session
        self._listening: dict[str, Listening] = {}
        self._per_ip: dict[str, int] = {}
        self._lines = RepeatedLines(logging.getLogger("ottla.listener"), clock.monotonic_ms)
        self.run = run
        self._started_ms = clock.monotonic_ms()
        self._sweep_timer: Timer | None = None
        self._turned_away = 0
        self._ask_admission = ask_admission
        # A dict for its order: what is done to all connections is done in the order they came.
        self.connections: dict[Connection, None] = {}
        self.shared_buffer = SharedBuffer()
        self.staging = memoryview(bytearray(STAGING_BYTES))
        self.frame_bytes_max = limits.frame_bytes_max
        self.tick = 1
        self.accepted = 0
        self.refused = 0

    def add(self, name: str, listening: Listening) -> None:
        """Serve the clients that connect to an address, once `start` is called."""
        self._listening[name] = listening

    def start(self) -> None:
        """Accept clients."""
        for name, listening in self._listening.items():
            listening.start(self.limits.backlog, partial(self._accept, name, listening))
        self._sweep_timer = self._scheduler.call_later(SWEEP_MS, self._sweep)

    def stop_accepting(self) -> None:
        """Give the addresses back. Connections stay."""
        for listening in self._listening.values():
            listening.close()
        self._listening.clear()

    def end(self) -> None:
        """Take up no further request, and close each connection when its last one is answered."""
        self.stop_accepting()
        for connection in list(self.connections):
            connection.end()

    def close(self) -> None:
        """Close everything now."""
        self.stop_accepting()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in list(self.connections):
            connection.close()

    # What connections ask of their owner

    @property
    def is_short_of_memory(self) -> bool:
        """Say whether connections hold as much memory for received bytes as they may."""
        return self.shared_buffer.held_bytes > self.limits.held_bytes_max

    def connection_closed(self, connection: Connection, reason: Exception | None) -> None:
        """Forget a connection, and tell why it ended if that is our business."""
        self.connections.pop(connection, None)
        remaining = self._per_ip.get(connection.peer_host, 1) - 1
        if remaining:
            self._per_ip[connection.peer_host] = remaining
        else:
            self._per_ip.pop(connection.peer_host, None)
        if isinstance(reason, TlsFailed):
            self._lines.warn("closed a connection", f"{connection.peer_host}: {reason}")
        if reason is None or isinstance(reason, ConnectionError):
            return
        if isinstance(reason, MalformedBytes):
            self._lines.warn(
                "closed a connection after an invalid request", f"{connection.peer_host}: {reason}"
            )
        elif isinstance(reason, ConnectionEnded):
            self._lines.warn("closed a connection", f"{connection.peer_host}: {reason}")
        else:
            kind = f"closed a connection because of {type(reason).__name__}"
            self._lines.fail(kind, f"{connection.peer_host}: {reason}", reason)

    # Accepting

    def _accept(self, name: str, listening: Listening) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                client = listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_DESCRIPTORS:
                    raise
                # The backlog keeps who waits. Without a pause this would be asked again at once, and again.
                self._lines.warn("cannot accept a connection", str(error))
                listening.pause()
                self._scheduler.call_later(_ACCEPT_AGAIN_MS, self._accept_again, name, listening)
                return
            pause_ms, close_after_ms = self._ask_admission(name, client.peer_host, self._clock.monotonic_ms())
            if close_after_ms:
                self._turn_away(client, close_after_ms)
            elif pause_ms:
                listening.pause()
                self._scheduler.call_later(pause_ms, self._admit_late, name, listening, client)
                return
            else:
                self._admit(name, client)

    def _admit_late(self, name: str, listening: Listening, client: Transport) -> None:
        if self._listening.get(name) is not listening:
            client.close()
            return
        self._admit(name, client)
        listening.resume()

    def _turn_away(self, client: Transport, close_after_ms: int) -> None:
        """Close a connection without having served it, after a while: so the peer does not come at once."""
        self.refused += 1
        self._lines.warn("refused a connection", f"{client.peer_host} opens connections too fast")
        if self._turned_away >= TURNED_AWAY_MAX:
            client.close()
            return
        self._turned_away += 1
        self._scheduler.call_later(close_after_ms, self._close_turned_away, client)

    def _close_turned_away(self, client: Transport) -> None:
        self._turned_away -= 1
        client.close()

    def _accept_again(self, name: str, listening: Listening) -> None:
        if self._listening.get(name) is listening:
            listening.resume()

    def _admit(self, name: str, client: Transport) -> None:
        peer_host = client.peer_host
        from_here = self._per_ip.get(peer_host, 0)
        allowed = self.limits.connections_per_ip_overrides.get(peer_host, self.limits.connections_per_ip_max)
        if len(self.connections) >= self.limits.connections_max or from_here >= allowed:
            self.refused += 1
            self._lines.warn(
                "refused a connection", f"{peer_host} has {from_here} of {len(self.connections)} connections"
            )
            client.close()
            return
        try:
            connection = Connection(self._scheduler, client, self, name, self.make_session)
        except OSError as error:
            client.close()
            if error.errno not in _PEER_IS_GONE:
                self._lines.warn("cannot serve a connection", f"{peer_host}: {error}")
            return
        self.accepted += 1
        self._per_ip[peer_host] = from_here + 1
        self.connections[connection] = None

    # The sweep

    def _sweep(self) -> None:
        self._sweep_timer = self._scheduler.call_later(SWEEP_MS, self._sweep)
        self.tick = 1 + (self._clock.monotonic_ms() - self._started_ms) // 1000
        for connection in list(self.connections):
            if (reason := self._find_overdue(connection)) is not None:
                connection.close(reason)
        if not self.is_short_of_memory:
            for connection in list(self.connections):
                connection.memory_is_back()

    def _find_overdue(self, connection: Connection) -> "ConnectionEnded | None":
        limits = self.limits
        if connection.is_idle:
            silent_ms = (self.tick - connection.active_tick) * 1000
            if silent_ms > limits.idle_ms_max:
                # This is how connections end in the best of worlds: not worth a warning.
                connection.close()
        elif connection.is_waiting_for_frame:
            frame_ms = (self.tick - connection.frame_tick) * 1000
            allowed_ms = limits.frame_ms_max + connection.pending_bytes * 1000 // FRAME_BYTES_PER_SECOND_MIN
            if frame_ms > allowed_ms:
                return ConnectionEnded(
                    f"only {connection.pending_bytes} bytes of a frame arrived in {frame_ms // 1000} s"
                )
        elif connection.is_sending and (self.tick - connection.active_tick) * 1000 > (
            # An answer that takes much memory has to be read soon: others wait for that memory.
            min(limits.frame_ms_max, limits.idle_ms_max)
            if connection.holds_counted_memory
            else limits.idle_ms_max
        ):
            return ConnectionEnded("the client did not read its responses in time")
        return None


class ConnectionEnded(Exception):
    """A limit ended the connection, or a refusal that cannot be sent in any other way."""

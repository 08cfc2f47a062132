"""A simulated network: streams of bytes that arrive in order, in pieces, and after a while.

What TCP promises holds within a connection: bytes arrive in order and none are lost while it lasts. They may
be cut anywhere. Between connections there is no order. A sender has a limited number of bytes on their way
that the peer has not received, so a peer that does not read holds up the sender.

Ways to make it fail:

- `cut(a, b)`: nothing gets from one machine to the other, in this direction. Lost packets are sent again, so
  what was sent arrives after `mend`. Nobody can connect meanwhile;
- `slow_down(a, b, us)`: packets take longer, in this direction;
- `reset(host)`: all connections of a machine break;
- `give_up(a, b)`: connections break at one end. What is on its way arrives, perhaps after what the
  same machine sends on its next connection;
- `reject(a, b)`: somebody on the way refuses connections in the name of the other machine, which lives, and
  breaks those that are there;
- `lose_track(host)`: all connections of a machine lead nowhere, and neither end notices;
- `unplug(host, is_silent=True)`: a machine is gone, and the others do not notice.
"""

import errno
from collections import Counter, deque
from collections.abc import Callable
from typing import Final
from zlib import crc32

from ottla.testing.simulation.simulation import Event, Machine, Simulation
from ottla.world.disk import Buffer, File
from ottla.world.network import GONE, READABLE, WRITABLE, Address, Listening, Transport

WINDOW_BYTES: Final = 256 * 1024
LATENCY_US: Final = (50, 250)
_LATENCY_US_MIN: Final = LATENCY_US[0]
_LATENCY_US_SPAN: Final = LATENCY_US[1] - LATENCY_US[0]
NO_ANSWER_US: Final = 3_000_000
"""After how long a machine that is off is given up."""
KNOCK_AGAIN_US: Final = 1_000_000
"""After how long the first packet of a connection is sent again."""
FIRST_FREE_PORT: Final = 32_768
CUT_CHANCE: Final = 0.05
"""How often what is sent at once arrives in two pieces."""


class SimulatedNetwork:
    """The wires between all machines, by address."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.rng = simulation.rng
        self._listening: dict[Address, SimulatedListening] = {}
        self._machines: dict[str, Machine] = {}
        # By host, so that those of a machine break when its power goes.
        self._transports: dict[str, dict[SimulatedTransport, None]] = {}
        self._off: set[str] = set()
        self.cuts: set[tuple[str, str]] = set()
        self._rejects: set[tuple[str, str]] = set()
        # How often the connections of a machine have begun to lead nowhere.
        self.lost_track: Counter[str] = Counter()
        self._slow_us: dict[tuple[str, str], int] = {}
        # Ends of connections that have to send something again.
        self._holding: dict[SimulatedTransport, None] = {}
        self._free_port = FIRST_FREE_PORT
        self._connections = 0

    def plug_in(self, machine: Machine) -> "NetworkOfMachine":
        """Return the network as one machine sees it."""
        self._machines[machine.host] = machine
        self._transports.setdefault(machine.host, {})
        self._off.discard(machine.host)
        return NetworkOfMachine(self, machine)

    def unplug(self, host: str, is_silent: bool = False) -> None:
        """Remove a machine: it no longer listens, and the others see their connections to it break.

        If it is silent, they find out only by waiting, or when the machine is there again and knows nothing.
        """
        self._off.add(host)
        for address in [address for address in self._listening if address[0] == host]:
            del self._listening[address]
        for transport in list(self._transports[host]):
            transport.lose(is_silent)

    def cut(self, source: str, target: str) -> None:
        """Let nothing get from one machine to another."""
        self.cuts.add((source, target))

    def mend(self, source: str, target: str) -> None:
        """Let packets through again. Those that were lost are sent again."""
        self.cuts.discard((source, target))
        for transport in list(self._holding):
            if (transport.local[0], transport.peer_host) == (source, target):
                del self._holding[transport]
                transport.send_again()

    def mend_all(self) -> None:
        """Let all machines reach each other, at full speed."""
        self._slow_us.clear()
        self._rejects.clear()
        for source, target in sorted(self.cuts):
            self.mend(source, target)

    def slow_down(self, source: str, target: str, delay_us: int) -> None:
        """Let packets from one machine to another take so much longer."""
        self._slow_us[source, target] = delay_us

    def reset(self, host: str) -> None:
        """Break all connections of a machine."""
        for transport in list(self._transports.get(host, ())):
            transport.break_off()
            transport.peer.break_off()

    def give_up(self, source: str, target: str) -> None:
        """Break connections at one end only. What this end has sent still arrives, if late."""
        for transport in list(self._transports.get(source, ())):
            if transport.peer_host == target:
                transport.break_off()

    def reject(self, source: str, target: str) -> None:
        """Refuse connections from one machine to another, and break those that are there."""
        self._rejects.add((source, target))
        for transport in list(self._transports.get(source, ())):
            if transport.peer_host == target:
                transport.break_off()
                transport.peer.break_off()

    def admit(self, source: str, target: str) -> None:
        """Refuse connections no more."""
        self._rejects.discard((source, target))

    def is_rejected(self, source: str, target: str) -> bool:
        """Say whether connections from one machine to another are refused on the way."""
        return (source, target) in self._rejects

    def lose_track(self, host: str) -> None:
        """Let all connections of a machine lead nowhere. Neither end notices."""
        self.lost_track[host] += 1
        for transport in list(self._transports.get(host, ())):
            transport.lead_nowhere()
            transport.peer.lead_nowhere()

    def hold(self, transport: "SimulatedTransport") -> None:
        """Take note that something was lost and is to be sent again."""
        self._holding[transport] = None

    def is_cut(self, source: str, target: str) -> bool:
        """Say whether nothing gets from one machine to another."""
        return (source, target) in self.cuts

    @property
    def is_slow(self) -> bool:
        """Say whether packets take longer anywhere."""
        return any(self._slow_us.values())

    def is_off(self, host: str) -> bool:
        """Say whether a machine is not there."""
        return host in self._off or host not in self._machines

    def latency_us(self, source: str, target: str) -> int:
        """Return how long the next packet takes."""
        latency_us = _LATENCY_US_MIN + int(self.rng.random() * _LATENCY_US_SPAN)
        return latency_us + self._slow_us.get((source, target), 0) if self._slow_us else latency_us

    def listen(self, machine: Machine, host: str, port: int) -> "SimulatedListening":
        """Take an address."""
        if port == 0:
            port = self.take_port()
        if (host, port) in self._listening:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listening = self._listening[host, port] = SimulatedListening(self, machine, (host, port))
        return listening

    def find(self, address: Address) -> "SimulatedListening | None":
        """Return who listens there."""
        return self._listening.get(address)

    def forget(self, listening: "SimulatedListening") -> None:
        """Give an address back."""
        if self._listening.get(listening.address) is listening:
            del self._listening[listening.address]

    def take_port(self) -> int:
        """Return a port that nobody has."""
        self._free_port += 1
        return self._free_port

    def join(
        self, client: Machine, server: Machine, port: int
    ) -> "tuple[SimulatedTransport, SimulatedTransport]":
        """Make the two ends of a connection."""
        self._connections += 1
        name = f"c{self._connections}"
        client_port = self.take_port()
        here = SimulatedTransport(self, client, f"{name}>", (client.host, client_port), server.host, port)
        there = SimulatedTransport(self, server, f"{name}<", (server.host, port), client.host, client_port)
        here.peer, there.peer = there, here
        self._transports[client.host][here] = None
        self._transports[server.host][there] = None
        return here, there

    def part(self, transport: "SimulatedTransport") -> None:
        """Forget one end of a connection."""
        self._transports[transport.local[0]].pop(transport, None)


class SimulatedTransport:
    """One end of a connection."""

    sends_files = False
    peer_certificate = None

    def __init__(
        self,
        network: SimulatedNetwork,
        machine: Machine,
        name: str,
        local: Address,
        peer_host: str,
        peer_port: int,
    ) -> None:
        self._network = network
        self._machine = machine
        self.name = name
        self.local = local
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.peer: SimulatedTransport
        self._arrived: deque[bytes] = deque()
        self._is_ended = False
        self._error: OSError | None = None
        # Bytes on their way that the peer has not received.
        self._unread = 0
        self._last_delivery_us = 0
        # What was lost on the way and is to be sent again.
        self._held: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._handler: Callable[[int], None] | None = None
        self._events = 0
        self._fire_event: Event | None = None
        self._leads_nowhere = False
        self.is_closed = False

    # What the world's transport does

    def receive_into(self, buffer: memoryview) -> int:
        """Take what has arrived."""
        if self._error is not None:
            raise self._error
        count, room = 0, len(buffer)
        while self._arrived and count < room:
            piece = self._arrived.popleft()
            if len(piece) > room - count:
                self._arrived.appendleft(piece[room - count :])
                piece = piece[: room - count]
            buffer[count : count + len(piece)] = piece
            count += len(piece)
        if count:
            self.peer.was_read(count)
            return count
        if self._is_ended:
            return 0
        raise BlockingIOError(errno.EAGAIN, "nothing has arrived")

    def send(self, data: Buffer) -> int:
        """Put bytes on their way."""
        if self._error is not None:
            raise self._error
        room = WINDOW_BYTES - self._unread
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "the peer has to read first")
        sent = bytes(data) if len(data) <= room else bytes(data[:room])
        size = len(sent)
        self._unread += size
        network = self._network
        network.simulation.note(self._machine.name, f"send {self.name} {size} {crc32(sent)}")
        rng = network.rng
        if size > 1 and rng.random() < CUT_CHANCE:
            cut = rng.randrange(1, size)
            self._deliver(self.peer.arrive, sent[:cut])
            self._deliver(self.peer.arrive, sent[cut:])
        else:
            self._deliver(self.peer.arrive, sent)
        return size

    send_more = send

    def send_file(self, _file: File, _position: int, _count: int) -> int | None:
        """Say that it does not work: files are read."""
        return None

    def is_closed_by_peer(self) -> bool:
        """Say whether the peer has closed."""
        if self._error is not None:
            raise self._error
        if self._arrived:
            return False
        if self._is_ended:
            return True
        raise BlockingIOError(errno.EAGAIN, "nothing has arrived")

    def watch(self, handler: Callable[[int], None], events: int) -> None:
        """Call the handler when something is due."""
        self._handler = handler
        self._events = events
        self._look()

    def change(self, events: int) -> None:
        """Watch for other events."""
        self._events = events
        self._look()

    def close(self) -> None:
        """Close. A peer whose bytes were not received sees the connection break, as with TCP."""
        if self.is_closed:
            return
        self.is_closed = True
        self._handler = None
        self._network.simulation.note(self._machine.name, f"close {self.name}")
        self._network.part(self)
        self._deliver(self.peer.break_off if self._arrived else self.peer.end)

    # What the other end and the network do

    def arrive(self, data: bytes) -> None:
        """Take bytes from the wire."""
        if self.is_closed:
            if not self._network.is_off(self.local[0]):
                self._deliver(self.peer.break_off)
            return
        self._arrived.append(data)
        if self._fire_event is None:
            self._fire()

    def was_read(self, count: int) -> None:
        """Take note that the peer has received some bytes. What waits for that is notified later."""
        self._unread -= count
        if self._events & WRITABLE:
            delay_us = self._network.latency_us(self.peer_host, self.local[0])
            self._machine.call_later_us(delay_us, self._look)

    def end(self) -> None:
        """The peer has closed."""
        self._is_ended = True
        self._look()

    def break_off(self) -> None:
        """The connection is broken."""
        if not self.is_closed and self._error is None:
            self._error = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            self._look()

    def lead_nowhere(self) -> None:
        """Send nothing any more that arrives."""
        self._leads_nowhere = True

    def lose(self, is_silent: bool) -> None:
        """The power of this machine is gone."""
        self.is_closed = True
        self._handler = None
        self._network.part(self)
        self._held.clear()
        if not is_silent:
            self._deliver(self.peer.break_off)

    def send_again(self) -> None:
        """Send what was lost on the way."""
        held, self._held = self._held, deque()
        for take, args in held:
            self._deliver(take, *args)

    def _deliver(self, take: Callable[..., None], *args: object) -> None:
        """Have the other end take something, after everything that was sent before."""
        network, host = self._network, self.local[0]
        if self._leads_nowhere:
            return
        if network.cuts and network.is_cut(host, self.peer_host):
            self._held.append((take, args))
            network.hold(self)
            return
        now_us = network.simulation.now_us
        at_us = now_us + network.latency_us(host, self.peer_host)
        if at_us <= self._last_delivery_us:
            at_us = self._last_delivery_us + 1
        self._last_delivery_us = at_us
        self.peer._machine.call_later_us(at_us - now_us, take, *args)

    def _due(self) -> int:
        if self._error is not None:
            return (READABLE | WRITABLE) & self._events | GONE
        due = READABLE if self._arrived or self._is_ended else 0
        if self._unread < WINDOW_BYTES:
            due |= WRITABLE
        return due & self._events

    def _look(self) -> None:
        """See to it that the handler is called if something is due."""
        if self._handler is not None and self._fire_event is None and self._due():
            self._fire_event = self._machine.call_later_us(0, self._fire)

    def _fire(self) -> None:
        self._fire_event = None
        due = self._due()
        if self._handler is not None and due:
            self._handler(due)
            self._look()


class SimulatedListening:
    """An address that a machine listens on."""

    def __init__(self, network: SimulatedNetwork, machine: Machine, address: Address) -> None:
        self._network = network
        self.machine = machine
        self.address = address
        self._ready: Callable[[], None] | None = None
        self._is_paused = False
        self._backlog = 0
        self._waiting: deque[SimulatedTransport] = deque()

    @property
    def is_open(self) -> bool:
        """Say whether peers may connect."""
        return self._ready is not None

    def start(self, backlog: int, ready: Callable[[], None]) -> None:
        """Let peers connect."""
        self._backlog = backlog
        self._ready = ready

    def accept(self) -> SimulatedTransport:
        """Return the next connection."""
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        return self._waiting.popleft()

    def pause(self) -> None:
        """Let peers wait."""
        self._is_paused = True

    def resume(self) -> None:
        """Accept again."""
        self._is_paused = False
        self._tell()

    def close(self) -> None:
        """Give the address back."""
        self._ready = None
        self._network.forget(self)
        for transport in self._waiting:
            transport.close()
        self._waiting.clear()

    def come(self, transport: SimulatedTransport) -> None:
        """Take a peer that connects."""
        if self._ready is None or len(self._waiting) >= self._backlog:
            transport.close()
            return
        self._waiting.append(transport)
        self._tell()

    def _tell(self) -> None:
        if self._waiting and not self._is_paused and self._ready is not None:
            self._ready()


class _SimulatedConnecting:
    """A connection that is being made: there and back takes two latencies."""

    def __init__(
        self,
        network: SimulatedNetwork,
        machine: Machine,
        address: Address,
        connected: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._network = network
        self._machine = machine
        self._address = address
        self._connected = connected
        self._failed = failed
        self._is_over = False
        network.simulation.note(machine.name, f"connect {address[0]}:{address[1]}")
        self._give_up_us = network.simulation.now_us + NO_ANSWER_US
        machine.call_later_us(2 * network.latency_us(machine.host, address[0]), self._knock)

    def cancel(self) -> None:
        """Stop."""
        self._is_over = True

    def _knock(self) -> None:
        if self._is_over:
            return
        network, (host, port), own = self._network, self._address, self._machine.host
        if network.is_off(host) or network.is_cut(own, host) or network.is_cut(host, own):
            if network.simulation.now_us >= self._give_up_us:
                self._fail(errno.ETIMEDOUT, "Connection timed out")
            else:
                self._machine.call_later_us(KNOCK_AGAIN_US, self._knock)
            return
        listening = network.find((host, port))
        if listening is None or not listening.is_open or network.is_rejected(own, host):
            self._fail(errno.ECONNREFUSED, "Connection refused")
            return
        self._is_over = True
        here, there = network.join(self._machine, listening.machine, port)
        listening.machine.call_later_us(network.latency_us(own, host), listening.come, there)
        self._connected(here)

    def _fail(self, number: int, message: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._failed(OSError(number, message))


class NetworkOfMachine:
    """The network as one machine sees it: the world's `Network`."""

    def __init__(self, network: SimulatedNetwork, machine: Machine) -> None:
        self._network = network
        self._machine = machine

    def listen(self, host: str, port: int, send_buffer_bytes: int = -1) -> Listening:  # noqa: ARG002
        """Take an address. What is on its way is bounded by the network's own window."""
        return self._network.listen(self._machine, host, port)

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> _SimulatedConnecting:
        """Connect to a peer."""
        return _SimulatedConnecting(self._network, self._machine, (host, port), connected, failed)

    def resolve(self, host: str) -> str:
        """Hosts are addresses here."""
        return host

    def host_name(self) -> str:
        """Return the address of the machine."""
        return self._machine.host

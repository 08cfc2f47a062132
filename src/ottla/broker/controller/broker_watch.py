"""Whether the processes of other brokers are there, so that the controller need not wait for sessions to end.

A process that ends takes its connections and its listeners with it, whatever ends it. So when the connection
on which a broker sent its heartbeats closes, and nobody listens where the broker did, its process is gone.
The machine itself has said so: it answered that the port is closed. If it does not answer, nothing is known,
and the session has to time out as in Kafka.

A firewall that rejects connections gives the same answer, so one look proves nothing. Each broker sends a
heartbeat as soon as it loses its connection to the controller, or hears of another one. So it is looked at a
second time, an interval later, and a broker that was heard from in between is there.

The kernel closes the files of a process one after the other, so a listener may accept for a moment after a
connection was closed. So a broker is looked at again and again, until it is heard from or fenced.

A controller that takes over has no connections of brokers to watch. It looks at all of them.

This is safe whatever is found out wrongly: see `fencing`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla.metadata.image import MetadataImage
from ottla.quorum.controller.brokers.sessions import STANDS_MS, Incarnation
from ottla.world.network import Address, Connecting, Transport
from ottla.world.scheduler import Timer
from ottla.world.world import World

ANSWER_MS_MAX: Final = 1_000
"""How long a machine may take to say that a port is closed."""
SECOND_LOOK_MS: Final = STANDS_MS
"""How long after a look that found nobody the second one is. Until then no other node leads what it led."""
LOOK_AGAIN_MS_MIN: Final = 10
LOOK_AGAIN_MS_MAX: Final = 500
"""How long after a look the next one is: longer each time."""
TAKE_OVER_MS: Final = 50
"""How often a node that leads the quorum looks whether its controller has begun."""
TAKE_OVER_MS_MAX: Final = 10_000


class BrokerWatch:
    """Notices that a process is gone."""

    def __init__(
        self,
        node_id: int,
        world: World,
        image: Callable[[], MetadataImage],
        is_active: Callable[[], bool],
        is_gone: Callable[[Incarnation], None],
    ) -> None:
        """`is_active` says whether this node's controller decides; `is_gone` gets what was found."""
        self._node_id = node_id
        self._world = world
        self._image = image
        self._is_active = is_active
        self._is_gone = is_gone
        self._heard: set[Incarnation] = set()
        self._looked_at: set[Incarnation] = set()

    def heard(self, broker: Incarnation) -> None:
        """Note that a broker has sent a heartbeat, if there is such a broker."""
        known = self._image().brokers.get(broker.broker_id)
        if known is not None and known.broker_epoch == broker.epoch:
            self._heard.add(broker)

    def connection_closed(self, broker: Incarnation) -> None:
        """Look whether a broker is there still: the connection is closed on which it sent heartbeats."""
        self._heard.discard(broker)
        self._begin_to_look_at(broker)

    def took_over(self) -> None:
        """Look at all brokers, as a controller that has heard from none."""
        self._heard.clear()
        self._begin_to_look(TAKE_OVER_MS_MAX)

    def _begin_to_look(self, patience_ms: int) -> None:
        """Look at brokers as soon as the controller has begun, or give up after a while."""
        if self._is_active():
            for broker_id, broker in self._image().brokers.items():
                if broker_id != self._node_id:
                    self._begin_to_look_at(Incarnation(broker_id, broker.broker_epoch))
        elif patience_ms > 0:
            self._world.scheduler.call_later(TAKE_OVER_MS, self._begin_to_look, patience_ms - TAKE_OVER_MS)

    def _begin_to_look_at(self, broker: Incarnation) -> None:
        if broker not in self._looked_at:
            self._looked_at.add(broker)
            self._look(broker, LOOK_AGAIN_MS_MIN)

    def _look(self, broker: Incarnation, pause_ms: int, found_nobody: bool = False) -> None:
        addresses = self._find_addresses(broker)
        if not addresses:
            self._looked_at.discard(broker)
            return
        again = partial(self._look, broker, min(2 * pause_ms, LOOK_AGAIN_MS_MAX))
        _Look(
            self._world,
            addresses,
            nobody=partial(self._found_nobody, broker, found_nobody),
            unknown=lambda: self._world.scheduler.call_later(pause_ms, again),
        )

    def _find_addresses(self, broker: Incarnation) -> list[Address]:
        """Return where to look for a broker, or nothing if there is no reason to look."""
        known = self._image().brokers.get(broker.broker_id)
        if known is None or known.broker_epoch != broker.epoch or known.fenced:
            return []
        if broker in self._heard or not self._is_active():
            return []
        return [(endpoint.host, endpoint.port) for endpoint in known.endpoints]

    def _found_nobody(self, broker: Incarnation, is_second: bool) -> None:
        if not is_second:
            self._world.scheduler.call_later(SECOND_LOOK_MS, self._look, broker, LOOK_AGAIN_MS_MIN, True)
            return
        self._looked_at.discard(broker)
        if broker not in self._heard and self._is_active():
            self._is_gone(broker)


class _Look:
    """A look at all addresses of a broker, one after the other."""

    def __init__(
        self,
        world: World,
        addresses: Sequence[Address],
        nobody: Callable[[], None],
        unknown: Callable[[], object],
    ) -> None:
        """`nobody` is called if every one of them refuses to connect, and `unknown` otherwise."""
        self._world = world
        self._left = list(addresses)
        self._nobody = nobody
        self._unknown = unknown
        self._connecting: Connecting | None = None
        self._timer: Timer = world.scheduler.call_later(ANSWER_MS_MAX, self._give_up)
        self._is_over = False
        self._next()

    def _next(self) -> None:
        if not self._left:
            self._end()
            self._nobody()
            return
        host, port = self._left.pop(0)
        found: list[str] = []

        def resolve() -> None:
            found.append(self._world.network.resolve(host))

        def resolved(error: Exception | None) -> None:
            if self._is_over:
                return
            if error is not None:
                self._give_up()
                return
            self._connecting = self._world.network.connect(found[0], port, self._connected, self._failed)

        self._world.workers.run(resolve, resolved)

    def _connected(self, transport: Transport) -> None:
        transport.close()
        self._give_up()

    def _failed(self, error: OSError) -> None:
        self._connecting = None
        if isinstance(error, ConnectionRefusedError):
            self._next()
        else:
            self._give_up()

    def _give_up(self) -> None:
        """End without a result: somebody is there, or nothing can be known."""
        if not self._is_over:
            self._end()
            self._unknown()

    def _end(self) -> None:
        self._is_over = True
        self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()

"""asyncio in a simulation: an event loop for our real client, with simulated time and network.

It implements what the client asks of an event loop, and raises `NotImplementedError` for the rest, as
asyncio's base class does. There is one loop for all clients of a simulation, on a machine of their own.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final, TypeVar

from ottla.client import surroundings
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Event, Machine, Simulation
from ottla.world.network import READABLE, WRITABLE, Transport

T = TypeVar("T")

_UNSENT_BYTES_MAX: Final = 1 << 16
"""If more than this waits to be sent, the protocol has to pause, as with asyncio."""
_BLOCKING_US: Final = 500
"""How long it takes until something is done that blocks."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """An event loop on a simulated machine."""

    def __init__(self, simulation: Simulation, network: SimulatedNetwork, host: str = "10.0.1.1") -> None:
        self.simulation = simulation
        self.machine = Machine(simulation, "clients", host)
        self._network = network.plug_in(self.machine)
        self.failures: list[dict[str, Any]] = []

    def run(self, main: Coroutine[Any, Any, T], within_ms: int = 600_000) -> T:
        """Let time pass until a coroutine is done, and return what it returns."""
        with self.running():
            task = self.create_task(main)
            self.simulation.run_until(task.done, within_ms)
            if self.failures:
                raise AssertionError(f"a callback of a client failed: {self.failures[0]}")
            return task.result()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be asyncio's running loop, with the simulation's clock and chance for clients."""
        random = Random(f"clients {self.machine.rng.getrandbits(64)}")
        asyncio._set_running_loop(self)
        try:
            with surroundings.using(lambda: self.machine.now_ms() * 1_000_000, random):
                yield
        finally:
            asyncio._set_running_loop(None)

    # What asyncio asks of a loop

    def time(self) -> float:
        """Return simulated seconds."""
        return self.simulation.now_us / 1_000_000

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Event:
        """Call in the next turn. What an event offers is all that asyncio asks of a handle."""
        run = contextvars.copy_context().run if context is None else context.run
        return self.machine.call_soon(run, callback, *args)

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Event:
        """Call after this many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Event:
        """Call at a time."""
        run = contextvars.copy_context().run if context is None else context.run
        # A timer never comes early: asyncio's own code looks at the clock afterwards.
        delay_us = -int(-when * 1_000_000 // 1) - self.simulation.now_us
        return self.machine.call_later_us(delay_us if delay_us > 0 else 0, run, callback, *args)

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        """Return a task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Do what blocks a little later, on the only thread there is."""
        assert executor is None, "there are no threads to choose from"
        done: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if done.done():
                return
            try:
                result = func(*args)
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        self.machine.call_later_us(_BLOCKING_US, work)
        return done

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BufferedProtocol],
        host: str,
        port: int,
        ssl: object = None,
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Connect by the simulated network."""
        assert ssl is None, "the simulated network speaks plain TCP only"
        made: asyncio.Future[Transport] = self.create_future()

        def connected(transport: Transport) -> None:
            if made.done():
                transport.close()
            else:
                made.set_result(transport)

        def failed(error: OSError) -> None:
            if not made.done():
                made.set_exception(error)

        connecting = self._network.connect(host, port, connected, failed)
        try:
            transport = await made
        except asyncio.CancelledError:
            connecting.cancel()
            if made.done() and not made.cancelled() and made.exception() is None:
                made.result().close()
            raise
        protocol = protocol_factory()
        return ProtocolTransport(self, transport, protocol), protocol

    # Says no: nothing is slow in simulated time. It is called for each future, and this is the fastest way.
    get_debug = bool

    def is_running(self) -> bool:
        """Say yes: only code that this loop runs can ask."""
        return True

    def is_closed(self) -> bool:
        """Say no."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what failed. `run` raises it."""
        self.failures.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what failed."""
        self.failures.append(context)


def simulated_loop(simulation: Simulation, network: SimulatedNetwork) -> SimulatedLoop:
    """Return the event loop for the clients of a simulation."""
    # Most of a loop's methods are for sockets and processes of the operating system. They stay away.
    return SimulatedLoop(simulation, network)  # type: ignore[abstract]


class ProtocolTransport(asyncio.Transport):
    """A simulated connection as asyncio's transports are."""

    def __init__(self, loop: SimulatedLoop, transport: Transport, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._loop = loop
        self._transport = transport
        self._protocol = protocol
        self._unsent: deque[bytes] = deque()
        self._waits_for_room = False
        self._is_paused = False
        self._is_closing = False
        self._is_closed = False
        protocol.connection_made(self)
        transport.watch(self._on_event, READABLE)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or keep what cannot be sent yet."""
        if not self._is_closing:
            self._unsent.append(bytes(data))
            self._flush()
            if not self._is_paused and sum(map(len, self._unsent)) > _UNSENT_BYTES_MAX:
                self._is_paused = True
                self._protocol.pause_writing()

    def is_closing(self) -> bool:
        """Say whether `close` was called."""
        return self._is_closing

    def close(self) -> None:
        """Close once everything is sent."""
        self._is_closing = True
        if not self._unsent:
            self._close(None)

    def abort(self) -> None:
        """Close now."""
        self._is_closing = True
        self._close(None)

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002 - asyncio's signature
        """Know nothing more."""
        return default

    def _on_event(self, events: int) -> None:
        if events & WRITABLE:
            self._flush()
        if events & ~WRITABLE and not self._is_closed:
            self._receive()

    def _receive(self) -> None:
        try:
            count = self._transport.receive_into(self._protocol.get_buffer(-1))  # type: ignore[arg-type]
        except BlockingIOError:
            return
        except OSError as error:
            self._is_closing = True
            self._close(error)
            return
        if count:
            self._protocol.buffer_updated(count)
        else:
            self._is_closing = True
            self._close(None)

    def _flush(self) -> None:
        try:
            while self._unsent:
                data = self._unsent[0]
                sent = self._transport.send(data)
                if sent < len(data):
                    self._unsent[0] = data[sent:]
                else:
                    del self._unsent[0]
        except BlockingIOError:
            self._waits_for_room = True
            self._transport.change(READABLE | WRITABLE)
            return
        except OSError as error:
            self._is_closing = True
            self._close(error)
            return
        if self._is_paused:
            self._is_paused = False
            self._protocol.resume_writing()
        if self._is_closing:
            self._close(None)
        elif self._waits_for_room:
            self._waits_for_room = False
            self._transport.change(READABLE)

    def _close(self, error: Exception | None) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._transport.close()
            self._loop.call_soon(self._protocol.connection_lost, error)

"""The sockets of all clients, watched by an epoll of our own inside the event loop.

asyncio spends about 3 us on each event of each socket, and about 4 us to add or remove a watcher. Here an
event costs a look-up and a call, and a change one system call. The loop sees a single descriptor, that of
the epoll, and calls once for everything that is ready. Since requests come in while others are answered, the
epoll is asked again before the loop gets its turn, but only so often: timers and threads wait for the loop.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from select import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, epoll
from typing import Final

READABLE: Final = EPOLLIN
WRITABLE: Final = EPOLLOUT
GONE: Final = EPOLLHUP | EPOLLERR
"""Told whether it was asked for or not."""

EVENTS_MAX: Final = 256
ROUNDS_MAX: Final = 4


class Poller:
    """Watches sockets for one event loop."""

    __slots__ = ("_epoll", "_handlers", "_loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        loop.add_reader(self._epoll.fileno(), self._drain)

    def add(self, descriptor: int, handler: Callable[[int], None], events: int) -> None:
        """Call `handler` with what happens to a socket, as long as it does."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, events)

    def change(self, descriptor: int, events: int) -> None:
        """Watch for other events."""
        self._epoll.modify(descriptor, events)

    def remove(self, descriptor: int) -> None:
        """Watch a socket no more. It must not be closed yet."""
        del self._handlers[descriptor]
        self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Watch nothing more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _drain(self) -> None:
        poll, handlers = self._epoll.poll, self._handlers
        for _ in range(ROUNDS_MAX):
            events = poll(0, EVENTS_MAX)
            if not events:
                return
            for descriptor, mask in events:
                handler = handlers.get(descriptor)
                # Another one's handler may have closed it meanwhile.
                if handler is not None:
                    handler(mask)

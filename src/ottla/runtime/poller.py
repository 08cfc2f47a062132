"""The event loop's selector, which serves the sockets of clients itself.

asyncio spends about 3 us on each event of each socket, and about 4 us to add or remove a watcher. For
clients that is too much. So the loop gets a selector of ours. What asyncio registers it treats as any
selector does. What is registered by `add` never reaches asyncio: `select` calls the handler right away. An
event then costs a look-up and a call, and a change of what is watched costs one system call.

A handler may use the loop as it likes: what it schedules runs in the same turn, after `select` has returned.

`gather` is for work that is cheaper the more of it comes together: it is put off until the loop would have to
wait for something to do, since then nothing more can come, or until a moment that is late enough.
"""

import asyncio
import selectors
from collections.abc import Callable, Mapping
from select import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, epoll
from time import monotonic_ns
from typing import Any, Final

from ottla.runtime.log_lines import repeated_lines
from ottla.world.network import GONE, READABLE, WRITABLE

# The events of the network have the numbers that the kernel gives them, so none has to be translated.
assert (READABLE, WRITABLE, GONE) == (EPOLLIN, EPOLLOUT, EPOLLHUP | EPOLLERR)

EVENTS_MAX: Final = 256

_lines: Final = repeated_lines("ottla.poller")


class Poller(selectors.BaseSelector):
    """Watches everything for one event loop."""

    def __init__(self) -> None:
        self._epoll = epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._keys: dict[int, selectors.SelectorKey] = {}
        # What to do when there is nothing else, or at the latest when.
        self._gathered: list[tuple[Callable[[], None], int]] = []

    # The sockets of clients

    def add(self, descriptor: int, handler: Callable[[int], None], events: int) -> None:
        """Call `handler` with what happens to a socket, as long as it does."""
        self._epoll.register(descriptor, events)
        self._handlers[descriptor] = handler

    def change(self, descriptor: int, events: int) -> None:
        """Watch for other events."""
        self._epoll.modify(descriptor, events)

    def remove(self, descriptor: int) -> None:
        """Watch a socket no more. It must not be closed yet."""
        del self._handlers[descriptor]
        self._epoll.unregister(descriptor)

    def discard(self, descriptor: int) -> None:
        """Watch a socket no more, if it was watched. It must not be closed yet."""
        if descriptor in self._handlers:
            self.remove(descriptor)

    def gather(self, then: Callable[[], None], at_latest_ns: int) -> None:
        """Call `then` once, when there is nothing else to do, or at this moment of the monotonic clock."""
        self._gathered.append((then, at_latest_ns))

    # What asyncio uses

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve the clients that are ready, and return what else is."""
        handlers = self._handlers
        ready: list[tuple[selectors.SelectorKey, int]] = []
        try:
            if self._gathered:
                events = self._poll_gathering(timeout)
            else:
                events = self._epoll.poll(timeout, EVENTS_MAX)
        except InterruptedError:
            return ready
        for descriptor, mask in events:
            handler = handlers.get(descriptor)
            if handler is not None:
                try:
                    handler(mask)
                except Exception as error:
                    # One client's trouble must not end the loop of all.
                    _lines.fail("serving a client failed", repr(error), error)
            elif descriptor in self._keys:
                ready.append((self._keys[descriptor], _events_of(mask)))
            # Else another one's handler has closed it meanwhile.
        return ready

    def _poll_gathering(self, timeout: float | None) -> list[tuple[int, int]]:
        """Poll, and end the gathering before there is a wait."""
        events = self._epoll.poll(0, EVENTS_MAX)
        is_idle = not events and timeout != 0
        now_ns = monotonic_ns()
        gathered, self._gathered = self._gathered, []
        for then, at_latest_ns in gathered:
            if not is_idle and now_ns < at_latest_ns:
                self._gathered.append((then, at_latest_ns))
                continue
            try:
                then()
            except Exception as error:
                _lines.fail("gathered work failed", repr(error), error)
        # Without a wait, since asyncio chose the timeout before any of them may have scheduled something.
        return events

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file for asyncio."""
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} is registered already")
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        self._epoll.register(descriptor, _mask_of(events))
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Watch a file no more."""
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys.pop(descriptor)
        self._epoll.unregister(descriptor)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file for other events, or with other data."""
        old = self._keys[fileobj if isinstance(fileobj, int) else fileobj.fileno()]
        if events != old.events:
            self._epoll.modify(old.fd, _mask_of(events))
        key = old._replace(events=events, data=data)
        self._keys[old.fd] = key
        return key

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return what asyncio watches, by descriptor."""
        return self._keys

    def close(self) -> None:
        """Watch nothing more."""
        self._keys.clear()
        self._handlers.clear()
        self._epoll.close()


class ServingLoop(asyncio.SelectorEventLoop):
    """An event loop whose `poller` serves clients."""

    def __init__(self) -> None:
        self.poller = Poller()
        super().__init__(self.poller)
        self.set_exception_handler(_tell)


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tell of a callback that failed, as asyncio does but not without end: a peer may have caused it."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        _lines.fail(f"a callback failed because of {type(error).__name__}", context["message"], error)
    else:
        loop.default_exception_handler(context)


def _mask_of(events: int) -> int:
    mask = EPOLLIN if events & selectors.EVENT_READ else 0
    return mask | EPOLLOUT if events & selectors.EVENT_WRITE else mask


def _events_of(mask: int) -> int:
    """An error or a hang-up makes a file both readable and writable: the next read or write will see it."""
    events = selectors.EVENT_WRITE if mask & ~EPOLLIN else 0
    return events | selectors.EVENT_READ if mask & ~EPOLLOUT else events

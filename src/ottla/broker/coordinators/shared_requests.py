"""Requests to other brokers that several transactions share.

To each broker one request is under way at a time, and what comes meanwhile shares the next. So a busy
coordinator sends few requests with much in each.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.runtime.connections.link import Link

Asked = TypeVar("Asked")


class Sharing(NamedTuple, Generic[Asked]):
    """How requests of a kind are shared."""

    # What an answer names. A request has it once.
    key_of: Callable[[Asked], Hashable]
    make_request: Callable[[Sequence[Asked]], Any]
    # Gets the id of the broker, what was asked there, and the response or `Unanswered`.
    settle: Callable[[int, Sequence[Asked], Any], None]


class SharedRequests(Generic[Asked]):
    """The requests of a kind to all other brokers."""

    def __init__(self, peer: Callable[[int], Link], sharing: Sharing[Asked]) -> None:
        """`peer` makes a connection to a broker."""
        self._peer = peer
        self._sharing = sharing
        self._queues: dict[int, _Queue[Asked]] = {}

    def add(self, broker_id: int, asked: Asked) -> None:
        """Ask a broker, at once or with the next request."""
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(broker_id, self._peer(broker_id), self._sharing)
        queue.add(asked)

    def close(self) -> None:
        """Stop. What was asked is settled as unanswered."""
        queues, self._queues = self._queues, {}
        for queue in queues.values():
            queue.peer.close()


class _Queue(Generic[Asked]):
    """What one broker is asked."""

    def __init__(self, broker_id: int, peer: Link, sharing: Sharing[Asked]) -> None:
        self.peer = peer
        self._broker_id = broker_id
        self._sharing = sharing
        self._waiting: list[Asked] = []
        self._is_asking = False

    def add(self, asked: Asked) -> None:
        self._waiting.append(asked)
        if not self._is_asking:
            self._send()

    def _send(self) -> None:
        by_key: dict[Hashable, Asked] = {}
        key_of = self._sharing.key_of
        self._waiting = [one for one in self._waiting if by_key.setdefault(key_of(one), one) is not one]
        self._is_asking = True
        sent = tuple(by_key.values())

        def answered(response: Any) -> None:
            self._is_asking = False
            self._sharing.settle(self._broker_id, sent, response)
            if self._waiting and not self._is_asking:
                self._send()

        self.peer.ask(self._sharing.make_request(sent), answered)

"""Which requests are under way to whom: one at a time for each destination, with time-outs and back-off.

A response counts only while its request is the one under way. A change of state forgets all of them: what
was asked for in the old state must not be taken for an answer in the new one.
"""

from typing import NamedTuple

from ottla.quorum.raft.effects import Destination


class _Connection(NamedTuple):
    destination: Destination
    # The request under way, or None while backing off.
    correlation_id: int | None
    until_ms: int


class Connections:
    """The requests of one replica."""

    def __init__(self, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._by_node: dict[int, _Connection] = {}
        self._last_correlation_id = 0

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Say whether a request may be sent."""
        connection = self._by_node.get(node_id)
        return connection is None or now_ms >= connection.until_ms

    def is_backing_off(self, node_id: int, now_ms: int) -> bool:
        connection = self._by_node.get(node_id)
        return connection is not None and connection.correlation_id is None and now_ms < connection.until_ms

    def has_timed_out(self, node_id: int, now_ms: int) -> bool:
        """Say whether a request got no answer in time, and no other was sent since."""
        connection = self._by_node.get(node_id)
        return (
            connection is not None and connection.correlation_id is not None and now_ms >= connection.until_ms
        )

    def ready_ms(self, node_id: int, now_ms: int) -> int:
        """Return when the next request may be sent."""
        connection = self._by_node.get(node_id)
        return now_ms if connection is None else max(now_ms, connection.until_ms)

    def find_under_way(self, now_ms: int) -> int | None:
        """Return when the first of the requests that are under way will have timed out, or None."""
        until = [
            connection.until_ms
            for connection in self._by_node.values()
            if connection.correlation_id is not None and now_ms < connection.until_ms
        ]
        return min(until, default=None)

    def sent(self, destination: Destination, now_ms: int) -> int:
        """Take note that a request is being sent. Returns its correlation id."""
        assert self.is_ready(destination.node_id, now_ms), f"a request to {destination} is under way"
        self._last_correlation_id += 1
        until_ms = now_ms + self._request_timeout_ms
        self._by_node[destination.node_id] = _Connection(destination, self._last_correlation_id, until_ms)
        return self._last_correlation_id

    def take(self, correlation_id: int) -> Destination | None:
        """End the request that is answered. Returns whom it was sent to, or None if nobody waits for it."""
        for node_id, connection in self._by_node.items():
            if connection.correlation_id == correlation_id:
                del self._by_node[node_id]
                return connection.destination
        return None

    def back_off(self, destination: Destination, now_ms: int) -> None:
        """Send nothing there for a while, because the last request was of no use."""
        self._by_node[destination.node_id] = _Connection(destination, None, now_ms + self._retry_backoff_ms)

    def forget(self, node_id: int) -> None:
        self._by_node.pop(node_id, None)

    def forget_all(self) -> None:
        self._by_node.clear()

"""The way of this node's replica to the other replicas of the quorum: one connection to each."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ottla.quorum.raft.effects import Destination
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import NotServed, PeerLost
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.vote import VoteRequest

LINKS_MAX: Final = 100
"""Connections to more addresses than that are not kept. A quorum has fewer nodes that are asked."""

_PRE_VOTE_FROM: Final = 2


class QuorumMessenger:
    """Sends the requests of a replica. Implements `Messenger`."""

    def __init__(self, make_link: Callable[[str, int], Link]) -> None:
        self._make_link = make_link
        self._links: dict[tuple[str, int], Link] = {}
        self._is_closed = False

    def send(
        self,
        destination: Destination,
        request: Any,
        answered: Callable[[Any], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Send a request in the newest version that both nodes know. After `close` nothing is sent."""
        if self._is_closed:
            return
        is_pre_vote = isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote
        self._link_to(destination.host, destination.port).ask(
            request,
            partial(_take, answered, failed),
            version_min=_PRE_VOTE_FROM if is_pre_vote else 0,
        )

    def close(self) -> None:
        """Close all connections. Requests that fail by that may lead to others, which nobody needs."""
        self._is_closed = True
        for link in self._links.values():
            link.close()

    def _link_to(self, host: str, port: int) -> Link:
        link = self._links.get((host, port))
        if link is None:
            if len(self._links) >= LINKS_MAX:
                self._links.pop(next(iter(self._links))).close()
            link = self._links[host, port] = self._make_link(host, port)
        return link


def _take(answered: Callable[[Any], None], failed: Callable[[ErrorCode], None], answer: Any) -> None:
    match answer:
        case NotServed():
            failed(ErrorCode.UNSUPPORTED_VERSION)
        case PeerLost(is_refused=True):
            failed(ErrorCode.BROKER_NOT_AVAILABLE)
        case PeerLost():
            failed(ErrorCode.NETWORK_EXCEPTION)
        case _:
            answered(answer)

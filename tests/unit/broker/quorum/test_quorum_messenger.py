"""The way of a replica to the others of its quorum."""

from collections.abc import Callable
from typing import Any

from ottla.broker.quorum.quorum_messenger import QuorumMessenger
from ottla.quorum.raft.effects import Destination
from ottla.runtime.connections.peer import PeerLost
from ottla.wire.messages.api_versions import ApiVersionsRequest


class FakeLink:
    """A link that never answers, and fails what was asked when it is closed."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Any], None]] = []

    def ask(self, _request: Any, answered: Callable[[Any], None], *, version_min: int = 0) -> None:
        assert version_min == 0
        self.asked.append(answered)

    def close(self) -> None:
        for answered in self.asked:
            answered(PeerLost("closed"))


def test_a_request_that_fails_when_the_connections_are_closed_leads_to_no_other() -> None:
    links: dict[str, FakeLink] = {}

    def make_link(host: str, _port: int) -> Any:
        return links.setdefault(host, FakeLink())

    messenger = QuorumMessenger(make_link)
    failed = []

    def ask_another(code: object) -> None:
        failed.append(code)
        messenger.send(Destination(3, "c", 1), ApiVersionsRequest(), failed.append, failed.append)

    messenger.send(Destination(1, "a", 1), ApiVersionsRequest(), failed.append, ask_another)
    messenger.send(Destination(2, "b", 1), ApiVersionsRequest(), failed.append, ask_another)
    messenger.close()

    assert len(failed) == 2
    assert sorted(links) == ["a", "b"]

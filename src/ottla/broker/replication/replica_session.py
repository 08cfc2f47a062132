"""The follower's side of a fetch session (KIP-227): a request names only what has changed since the last one.

The leader keeps what it got for each partition. A partition is named again when what the follower wants
of it differs, and is forgotten when the follower wants nothing of it for a while. After any doubt the next
request names everything.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.broker.fetch.fetch_session import INITIAL_EPOCH, NO_SESSION
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

_EPOCH_MAX: Final = 0x7FFFFFFF

Key = tuple[Uuid, int]


class ReplicaSession:
    """What the leader knows, and how the next request continues from that."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self._told: dict[Key, FetchPartition] = {}

    def plan(
        self, wanted: Mapping[Key, FetchPartition]
    ) -> tuple[tuple[FetchTopic, ...], tuple[ForgottenTopic, ...]]:
        """Return what a request has to name, and to forget, for the leader to know what is wanted."""
        if self.epoch == INITIAL_EPOCH:
            self._told = dict(wanted)
            return _topics(wanted.items()), ()
        told = self._told
        changed = [(key, ask) for key, ask in wanted.items() if told.get(key) is not ask]
        forgotten: list[Key] = []
        if len(told) + len(changed) > len(wanted):
            forgotten = [key for key in told if key not in wanted]
            for key in forgotten:
                del told[key]
        told.update(changed)
        return _topics(changed), _forgotten(forgotten)

    def take(self, response: FetchResponse) -> bool:
        """Take note of a response. False: it says nothing of partitions, because the session is over."""
        if response.error_code is not ErrorCode.NONE:
            self.restart(is_gone=response.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return False
        if response.session_id == NO_SESSION:
            self.restart(is_gone=True)
        elif self.epoch == INITIAL_EPOCH:
            self.id, self.epoch = response.session_id, 1
        else:
            self.epoch = self.epoch + 1 if self.epoch < _EPOCH_MAX else 1
        return True

    def restart(self, is_gone: bool = False) -> None:
        """Begin again. The next request ends this session, unless the leader has lost it."""
        self.epoch = INITIAL_EPOCH
        if is_gone:
            self.id = NO_SESSION


def _topics(asks: Iterable[tuple[Key, FetchPartition]]) -> tuple[FetchTopic, ...]:
    topics: dict[Uuid, list[FetchPartition]] = {}
    for (topic_id, _), ask in asks:
        topics.setdefault(topic_id, []).append(ask)
    return tuple(FetchTopic(topic_id=topic_id, partitions=tuple(asks)) for topic_id, asks in topics.items())


def _forgotten(keys: Iterable[Key]) -> tuple[ForgottenTopic, ...]:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, number in keys:
        topics.setdefault(topic_id, []).append(number)
    return tuple(
        ForgottenTopic(topic_id=topic_id, partitions=tuple(numbers)) for topic_id, numbers in topics.items()
    )

"""A fetch session with one broker (KIP-227): only what changes is sent, and only what has news comes back.

    (id 0, epoch 0)   everything, and please open a session
    (id, epoch n)     what changed since epoch n - 1; epochs count up and go from 2^31 - 1 to 1
    (id, epoch 0)     everything again in a new session; the old one is closed
    (id, epoch -1)    close

It is pure: `next_request` builds, `accept` takes the answer. When a request was lost nobody knows whether the
broker saw it, so `lost` starts over. A broker without room for sessions answers with id 0: then every request
lists everything, which is right, only longer.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.topology import Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

_INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1


class Asked(NamedTuple):
    """What one request says about the session and its partitions."""

    session_id: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten: tuple[ForgottenTopic, ...]


class _Known(NamedTuple):
    topic_id: Uuid
    partition: FetchPartition


class FetchSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self.session_id = 0
        self._epoch = _INITIAL_EPOCH
        self._by_id: bool | None = None
        self._known: dict[TopicPartition, _Known] = {}

    def next_request(
        self, wanted: Mapping[TopicPartition, FetchPartition], topology: Topology, by_id: bool
    ) -> Asked:
        """Return what to send so that the session reads just the `wanted` partitions."""
        if self._by_id is not None and self._by_id is not by_id:
            # A session names its topics either by id or by name, all the time.
            self.lost()
        self._by_id = by_id
        full = self._epoch == _INITIAL_EPOCH
        before = {} if full else self._known
        self._known = {
            where: _Known(topology.topics[where.topic].topic_id, partition)
            for where, partition in wanted.items()
        }
        changed = {where: known for where, known in self._known.items() if before.get(where) != known}
        gone = {
            where: known.topic_id
            for where, known in before.items()
            if where not in self._known or self._known[where].topic_id != known.topic_id
        }
        return Asked(self.session_id, self._epoch, _topics(changed), _forgotten(gone))

    def accept(self, answer: FetchResponse) -> bool:
        """Take an answer. Returns whether it counts; if not, the session starts over."""
        if answer.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = 0
            self.lost()
            return False
        if answer.error_code is not ErrorCode.NONE:
            self.lost()
            return False
        if self._epoch == _INITIAL_EPOCH:
            self.session_id = answer.session_id
            self._epoch = 1 if answer.session_id else _INITIAL_EPOCH
        elif answer.session_id != self.session_id:
            # The broker closed the session with this answer, or mixed it up with another's.
            self.session_id = 0
            self.lost()
            return answer.session_id == 0
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def lost(self) -> None:
        """Start over with the next request: what the broker knows is uncertain."""
        self._epoch = _INITIAL_EPOCH
        self._known = {}


def _topics(partitions: Mapping[TopicPartition, _Known]) -> tuple[FetchTopic, ...]:
    by_topic: dict[tuple[str, Uuid], list[FetchPartition]] = {}
    for where, known in partitions.items():
        by_topic.setdefault((where.topic, known.topic_id), []).append(known.partition)
    return tuple(
        FetchTopic(topic=topic, topic_id=topic_id, partitions=tuple(items))
        for (topic, topic_id), items in by_topic.items()
    )


def _forgotten(partitions: Mapping[TopicPartition, Uuid]) -> tuple[ForgottenTopic, ...]:
    by_topic: dict[tuple[str, Uuid], list[int]] = {}
    for where, topic_id in partitions.items():
        by_topic.setdefault((where.topic, topic_id), []).append(where.partition)
    return tuple(
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=tuple(numbers))
        for (topic, topic_id), numbers in by_topic.items()
    )

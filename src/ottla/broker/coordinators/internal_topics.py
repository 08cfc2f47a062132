"""The internal topics of streams groups: created for the member whose heartbeat found that they are missing.

A heartbeat does not wait for them: it tells the member that topics are missing, and a later one finds them.
What could not be created is not tried again for two heartbeats, and members learn why in the meantime.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from ottla.broker.logs.partition import INTERNAL_TOPICS
from ottla.broker.serving.context import RequestContext
from ottla.coordination.group.streams.internal_topics import InternalTopic
from ottla.coordination.group.streams.topology import all_topic_names
from ottla.model.topic_names import find_topic_name_fault
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.streams_group_heartbeat import Topology
from ottla.world.clock import Clock

FAILURES_MAX: Final = 1000
"""Members name the topics, so the failures that are kept are limited."""
_TIMEOUT_MS: Final = 30_000
_CLUSTER_DEFAULT: Final = -1
_NEWEST_VERSION: Final = api_of(ApiKey.CREATE_TOPICS).versions.last


class InternalTopics:
    """What is being created, and what has failed lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._in_flight: set[str] = set()
        self._failures: dict[str, tuple[str, int]] = {}
        """Why a topic could not be created, and until when that counts, in monotonic time."""

    def create(self, topics: Mapping[str, InternalTopic], context: RequestContext, pause_ms: int) -> None:
        """Have topics created in the name of a client, unless that is under way or has just failed."""
        failed = self.failures(topics)
        wanted = [
            topic for name, topic in topics.items() if name not in failed and name not in self._in_flight
        ]
        if not wanted:
            return
        names = [topic.name for topic in wanted]
        self._in_flight.update(names)
        ask = CreateTopicsRequest(topics=tuple(map(_creatable, wanted)), timeout_ms=_TIMEOUT_MS)
        answer = context.node.controller.ask(ask, context.caller(_NEWEST_VERSION))
        answer.when_done(partial(self._created, names, pause_ms), partial(self._failed, names, pause_ms))

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Return why topics could not be created lately."""
        now_ms = self._clock.monotonic_ms()
        found = {name: self._failures[name] for name in names if name in self._failures}
        return {name: why for name, (why, until_ms) in found.items() if until_ms > now_ms}

    def _created(self, names: list[str], pause_ms: int, response: CreateTopicsResponse) -> None:
        self._in_flight.difference_update(names)
        for topic in response.topics:
            if topic.error_code is not ErrorCode.NONE:
                self._note(topic.name, topic.error_message or topic.error_code.name, pause_ms)

    def _failed(self, names: list[str], pause_ms: int, error: BaseException) -> None:
        self._in_flight.difference_update(names)
        for name in names:
            self._note(name, str(error), pause_ms)

    def _note(self, name: str, why: str, pause_ms: int) -> None:
        now_ms = self._clock.monotonic_ms()
        self._failures.pop(name, None)
        self._failures[name] = (why, now_ms + pause_ms)
        if len(self._failures) > FAILURES_MAX:
            del self._failures[next(iter(self._failures))]


def find_topology_fault(topology: Topology) -> str | None:
    """Say which topics a topology must not have, or None if there are none."""
    names = all_topic_names(topology)
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    invalid = [name for name in names if find_topic_name_fault(name) is not None]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or _CLUSTER_DEFAULT,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in topic.configs),
    )

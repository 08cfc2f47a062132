"""What a shard of the group coordinator asks of the coordinator."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ottla.coordination.group.settings import (
    ConsumerIntervals,
    GroupSettings,
    ShareIntervals,
    StreamsIntervals,
)
from ottla.coordination.group.share.persister import StatePersister
from ottla.coordination.runtime.decision import Answer, Decision, Refuse, ignore
from ottla.coordination.runtime.timers import Timers
from ottla.model.uuid import Uuid

R = TypeVar("R")


class TopicFacts(NamedTuple):
    """What the coordinator must know of a topic."""

    name: str
    topic_id: Uuid
    partition_count: int


class Topics(Protocol):
    """The topics of the cluster, as the newest metadata has them."""

    def find_by_name(self, name: str) -> TopicFacts | None:
        """Return the topic of this name."""

    def find_by_id(self, topic_id: Uuid) -> TopicFacts | None:
        """Return the topic with this id."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all topics."""

    def racks(self, topic_id: Uuid) -> Sequence[Sequence[str]]:
        """Return, for each partition of a topic, the racks of its replicas' brokers that have one."""

    def version(self) -> int:
        """Return the offset of the metadata log up to which this is known."""


class Environment(Protocol):
    """One for each shard."""

    settings: GroupSettings
    timers: Timers
    topics: Topics
    share_state: StatePersister

    def consumer_intervals(self, group_id: str) -> ConsumerIntervals:
        """Return the times of a consumer group: its own where it has set them, otherwise the node's."""

    def streams_intervals(self, group_id: str) -> StreamsIntervals:
        """Return the times of a streams group: its own where it has set them, otherwise the node's."""

    def share_intervals(self, group_id: str) -> ShareIntervals:
        """Return the times of a share group: its own where it has set them, otherwise the node's."""

    def new_member_suffix(self) -> str:
        """Return a random id, for a new member."""

    def member_lost(self, group_id: str, member_id: str, why: str, after_ms: int) -> None:
        """Take note that a member is about to be removed, because it sent nothing for so long."""

    def submit(
        self, decide: Callable[[], Decision[R]], answer: Answer[R] = ignore, refuse: Refuse = ignore
    ) -> None:
        """Write what a timer's action or an effect decides, if the shard still serves.

        `answer` gets the reply when the records are committed; `refuse` gets the reason if they are not.
        """


def sees_everything(_topic: str) -> bool:
    """Say that a client may describe a topic, as where there are no access rules."""
    return True


class Client(NamedTuple):
    """Who sent a request."""

    client_id: str
    host: str
    version: int
    """The version of the request."""
    sees: Callable[[str], bool] = sees_everything
    """Whether the client may describe a topic. A regular expression matches no others."""

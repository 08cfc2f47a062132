"""What the node gives to a group coordinator, and what each of its shards gets of that."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ottla.coordination.group.environment import Topics
from ottla.coordination.group.settings import (
    ConsumerIntervals,
    GroupSettings,
    ShareIntervals,
    StreamsIntervals,
)
from ottla.coordination.group.share.persister import StatePersister
from ottla.coordination.runtime.decision import Answer, Decision, Refuse, ignore
from ottla.coordination.runtime.shards import Shards
from ottla.coordination.runtime.timers import Timers
from ottla.world.clock import Clock

R = TypeVar("R")


class GroupHost(Protocol):
    """What the node that runs a group coordinator gives to it."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def topics(self) -> Topics:
        """The topics of the cluster."""

    @property
    def share_state(self) -> StatePersister:
        """The share coordinators of the cluster."""

    def new_member_suffix(self) -> str:
        """Return a random id, for a new member."""

    def share_intervals(self, group_id: str) -> ShareIntervals:
        """Return the times of a share group: its own where it has set them, otherwise the node's."""

    def consumer_intervals(self, group_id: str) -> ConsumerIntervals:
        """Return the times of a consumer group: its own where it has set them, otherwise the node's."""

    def streams_intervals(self, group_id: str) -> StreamsIntervals:
        """Return the times of a streams group: its own where it has set them, otherwise the node's."""

    def member_lost(self, group_id: str, member_id: str, why: str, after_ms: int) -> None:
        """Take note that a member is about to be removed, because it sent nothing for so long."""

    def wake(self, deadline_ms: int) -> None:
        """Have `GroupCoordinator.fire_timers` called at this monotonic time, or earlier."""


class GroupShardEnvironment:
    """What one shard may ask for. Implements `Environment`."""

    def __init__(self, settings: GroupSettings, host: GroupHost, shards: Shards[Any], partition: int) -> None:
        self.settings = settings
        self.topics = host.topics
        self.timers = Timers(host.clock, host.wake)
        self.new_member_suffix = host.new_member_suffix
        self.consumer_intervals = host.consumer_intervals
        self.streams_intervals = host.streams_intervals
        self.share_intervals = host.share_intervals
        self.share_state = host.share_state
        self.member_lost = host.member_lost
        self._shards = shards
        self._partition = partition

    def submit(
        self, decide: Callable[[], Decision[R]], answer: Answer[R] = ignore, refuse: Refuse = ignore
    ) -> None:
        """Write what a timer's action or an effect decides, if the shard still serves."""
        self._shards.submit(self._partition, decide, answer, refuse)

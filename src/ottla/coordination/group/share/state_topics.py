"""Which partitions of a share group have state at the share coordinator.

Before a partition can be assigned, the share coordinator must have a state for it. The group's record has
three lists: topics whose state is being initialized, topics that have state, and topics whose state is being
deleted. Nothing here changes: each change makes the lists that the next record will hold.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.environment import Topics
from ottla.model.uuid import Uuid

UNKNOWN_NAME = "<UNKNOWN>"
"""What Kafka writes for the name of a topic that is gone."""


class NamedPartitions(NamedTuple):
    """Partitions of a topic, and the name that it had."""

    name: str
    partitions: frozenset[int]


TopicStates = Mapping[Uuid, NamedPartitions]


@dataclass(frozen=True, slots=True)
class StateTopics:
    """The three lists of one group."""

    initializing: TopicStates = field(default_factory=dict)
    initialized: TopicStates = field(default_factory=dict)
    deleting: frozenset[Uuid] = frozenset()

    def find_missing(
        self, topic_names: Iterable[str], topics: Topics, retries: bool
    ) -> dict[Uuid, NamedPartitions]:
        """Return the partitions of these topics that have no state yet.

        With `retries`, those whose initialization was begun count as well: it has taken too long.
        """
        known = self.initialized if retries else _combined(self.initialized, self.initializing)
        missing = {}
        for name in topic_names:
            facts = topics.find_by_name(name)
            if facts is None:
                continue
            have = known[facts.topic_id].partitions if facts.topic_id in known else frozenset()
            if len(have) < facts.partition_count:
                wanted = frozenset(range(facts.partition_count)) - have
                missing[facts.topic_id] = NamedPartitions(name, wanted)
        return missing

    def with_initializing(self, begun: TopicStates) -> "StateTopics":
        """Return the lists once the initialization of these has begun. They are not deleted any more."""
        initializing = _combined(self.initializing, begun)
        return replace(self, initializing=initializing, deleting=self.deleting - initializing.keys())

    def with_initialized(self, done: Partitions, topics: Topics) -> "StateTopics":
        """Return the lists once these have state."""
        named = {topic: NamedPartitions(name_of(topic, topics), numbers) for topic, numbers in done.items()}
        return StateTopics(
            _without(self.initializing, done), _combined(self.initialized, named), self.deleting
        )

    def without_initializing(self, failed: Partitions) -> "StateTopics":
        """Return the lists once the initialization of these has failed."""
        return replace(self, initializing=_without(self.initializing, failed))

    def with_deleting(self, topic_ids: Iterable[Uuid]) -> "StateTopics":
        """Return the lists once the state of these topics is being deleted."""
        gone = frozenset(topic_ids)
        return StateTopics(
            {topic: state for topic, state in self.initializing.items() if topic not in gone},
            {topic: state for topic, state in self.initialized.items() if topic not in gone},
            self.deleting | gone,
        )

    def without(self, topic_ids: Iterable[Uuid]) -> "StateTopics":
        """Return the lists without these topics, which are gone."""
        gone = frozenset(topic_ids)
        return self.with_deleting(gone & self.topic_ids()).without_deleting(gone)

    def topic_ids(self) -> frozenset[Uuid]:
        """Return all topics that are in one of the lists."""
        return frozenset((*self.initializing, *self.initialized, *self.deleting))

    def find_deletable(self, topics: Topics) -> dict[Uuid, frozenset[int]]:
        """Return all partitions whose states have to be deleted before the group can be.

        That includes those whose deletion has begun before: it may have failed. The share coordinators delete
        the states of topics that are gone by themselves, and refuse to be asked for it.
        """
        combined = _combined(self.initialized, self.initializing)
        deletable = {}
        for topic in sorted(combined.keys() | self.deleting):
            facts = topics.find_by_id(topic)
            if facts is not None:
                is_begun = topic in self.deleting
                deletable[topic] = (
                    frozenset(range(facts.partition_count)) if is_begun else combined[topic].partitions
                )
        return deletable

    def without_deleting(self, topic_ids: Iterable[Uuid]) -> "StateTopics":
        """Return the lists once the state of these topics is deleted."""
        return replace(self, deleting=self.deleting.difference(topic_ids))


def name_of(topic_id: Uuid, topics: Topics) -> str:
    """Return the name of a topic as records have it."""
    facts = topics.find_by_id(topic_id)
    return UNKNOWN_NAME if facts is None else facts.name


def _combined(one: TopicStates, other: TopicStates) -> dict[Uuid, NamedPartitions]:
    combined = dict(one)
    for topic, (name, partitions) in other.items():
        if topic in combined:
            partitions = combined[topic].partitions | partitions
        combined[topic] = NamedPartitions(name, partitions)
    return combined


def _without(states: TopicStates, gone: Partitions) -> dict[Uuid, NamedPartitions]:
    left = {}
    for topic, (name, partitions) in states.items():
        rest = partitions - gone.get(topic, frozenset())
        if rest:
            left[topic] = NamedPartitions(name, rest)
    return left

"""From a topology and the topics that exist: how many tasks there are, and which internal topics are missing.

1. All source topics must exist.
2. A repartition topic has as many partitions as its topology says. If it says nothing, it gets the most that
   any subtopology which writes to it reads.
3. Topics of a copartition group must have the same number of partitions. Repartition topics follow.
4. A changelog topic has one partition for each task of its subtopology.

The outcome of 2 and 3 may depend on the order in which subtopologies are looked at. Kafka takes them from a
hash map. They are looked at in that order here too: a group whose internal topics one of them has created
must not find, when the other one takes over, that they have the wrong number of partitions.

The texts of the statuses are Kafka's, because programs and people look for them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.coordination.group.environment import Topics
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.streams.status import StatusCode
from ottla.coordination.group.streams.topology import Topology, source_names
from ottla.coordination.runtime.key_partition import java_string_hash
from ottla.wire.coordinator_records.streams_group import CopartitionGroup, Subtopology, TopicInfo
from ottla.wire.error_code import ErrorCode

_TOPICS_NAMED_MAX: Final = 3


class InternalTopic(NamedTuple):
    """A repartition or changelog topic, with the number of partitions that it must have."""

    name: str
    partitions: int
    replication_factor: int
    """0 for the cluster's default."""
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ConfiguredSubtopology:
    """A subtopology for which the number of tasks is known."""

    task_count: int
    source_topics: frozenset[str]
    repartition_sink_topics: frozenset[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    state_changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have state that standby tasks can copy."""
        return bool(self.state_changelog_topics)


class Problem(NamedTuple):
    """Why a topology cannot run yet."""

    code: StatusCode
    detail: str


@dataclass(frozen=True)
class ConfiguredTopology:
    """A topology as it fits the topics that exist."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """In the order of their ids; None if the number of tasks is not known."""
    missing: Mapping[str, InternalTopic] = field(default_factory=dict)
    """Internal topics that have to be created."""
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all topics are there and fit."""
        return self.problem is None


class _Unfit(Exception):
    """The topics that exist do not fit the topology."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(code, detail)


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Fit a topology to the topics that exist. Raises `Refused` if no topics can ever fit it."""
    try:
        _check_sources(topology, topics)
        counts = _Counts(topology, topics)
        counts.decide()
        configured = {
            one: counts.configured(topology.subtopologies[one]) for one in sorted(topology.subtopologies)
        }
        missing = _find_missing(topology, configured, topics)
    except _Unfit as unfit:
        return ConfiguredTopology(topology.epoch, None, {}, unfit.problem)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {_summarize(missing)}"
        problem = Problem(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, configured, missing, problem)


def _check_sources(topology: Topology, topics: Topics) -> None:
    missing = sorted(
        {
            name
            for subtopology in topology.subtopologies.values()
            for name in subtopology.source_topics
            if topics.find_by_name(name) is None
        }
    )
    if missing:
        raise _Unfit(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_summarize(missing)} are missing.")


def _find_missing(
    topology: Topology, configured: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> dict[str, InternalTopic]:
    needed: dict[str, InternalTopic] = {}
    for subtopology in configured.values():
        needed.update(subtopology.repartition_source_topics)
        needed.update(subtopology.state_changelog_topics)
    for name in sorted(topology.required_topics):
        facts = topics.find_by_name(name)
        expected = None if facts is None else needed.pop(name, None)
        if facts is not None and expected is not None and facts.partition_count != expected.partitions:
            detail = (
                f"Existing topic {name} has different number of partitions: "
                f"expected {expected.partitions}, found {facts.partition_count}"
            )
            raise _Unfit(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return dict(sorted(needed.items()))


class _Counts:
    """How many partitions internal topics have, or will have."""

    def __init__(self, topology: Topology, topics: Topics) -> None:
        self._subtopologies = [topology.subtopologies[one] for one in _hash_order(topology.subtopologies)]
        self._topics = topics
        self._decided: dict[str, int] = {}
        repartitions = [topic for one in self._subtopologies for topic in one.repartition_source_topics]
        self._fixed = {topic.name: topic.partitions for topic in repartitions if topic.partitions != 0}
        self._repartitions = {topic.name for topic in repartitions}

    def decide(self) -> None:
        """Decide for all of them. Raises `_Unfit` or `Refused`."""
        self._decide_repartitions()
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                self._align(_names_of(subtopology, group))
        for subtopology in self._subtopologies:
            count = self._task_count(subtopology)
            self._decided.update((topic.name, count) for topic in subtopology.state_changelog_topics)

    def configured(self, subtopology: Subtopology) -> ConfiguredSubtopology:
        """Return a subtopology with what was decided."""
        return ConfiguredSubtopology(
            self._task_count(subtopology),
            frozenset(subtopology.source_topics),
            frozenset(subtopology.repartition_sink_topics),
            {topic.name: self._internal(topic) for topic in subtopology.repartition_source_topics},
            {topic.name: self._internal(topic) for topic in subtopology.state_changelog_topics},
        )

    def _find(self, name: str) -> int | None:
        facts = self._topics.find_by_name(name)
        return self._decided.get(name) if facts is None else facts.partition_count

    def _count(self, name: str) -> int:
        count = self._find(name)
        assert count is not None, "source topics exist, and repartition topics are decided first"
        return count

    def _task_count(self, subtopology: Subtopology) -> int:
        counts = [self._count(name) for name in source_names(subtopology)]
        if not counts:
            message = f"No source topics found for subtopology {subtopology.subtopology_id}"
            raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        return max(counts)

    def _internal(self, topic: TopicInfo) -> InternalTopic:
        partitions = topic.partitions or self._decided[topic.name]
        if partitions < 1:
            message = f"Topic {topic.name} must have at least one partition."
            raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        configs = {config.key: config.value for config in topic.topic_configs}
        return InternalTopic(topic.name, partitions, topic.replication_factor, tuple(sorted(configs.items())))

    # Repartition topics

    def _decide_repartitions(self) -> None:
        counts = dict(self._fixed)
        sinks = [(one, sink) for one in self._subtopologies for sink in one.repartition_sink_topics]
        # A repartition topic may depend on another one, so this may take several rounds.
        while unknown := [(one, sink) for one, sink in sinks if sink not in counts]:
            for subtopology, sink in unknown:
                count = self._most_read(subtopology, counts)
                if count is not None:
                    counts[sink] = count
            if all(sink not in counts for _, sink in unknown):
                message = (
                    "Failed to compute number of partitions for all repartition topics. "
                    "There may be loops in the topology that cannot be resolved."
                )
                raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        if not self._repartitions <= counts.keys():
            message = (
                "Failed to compute number of partitions for all repartition topics, because "
                "a repartition source topic is never used as a sink topic."
            )
            raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        self._decided.update(counts)

    def _most_read(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        found = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
        found += [self._find(name) for name in subtopology.source_topics]
        return max((count for count in found if count is not None), default=None)

    # Copartition groups

    def _align(self, names: set[str]) -> None:
        """Give the repartition topics of a copartition group the number of partitions that all must have."""
        if not names:
            return
        flexible = {name: self._count(name) for name in sorted(names & self._repartitions)}
        given = {name: self._count(name) for name in sorted(names - self._repartitions)}
        if given:
            count = _same(given, given)
        elif self._fixed:
            # As in Kafka, all repartition topics with a fixed count are compared, not only the group's.
            count = _same({name: self._count(name) for name in sorted(self._fixed)}, flexible)
        else:
            count = max(flexible.values())
        for name, found in flexible.items():
            if name in self._fixed and found != count:
                detail = (
                    f"Number of partitions [{found}] of repartition topic [{name}] "
                    f"doesn't match number of partitions [{count}] of the source topic."
                )
                raise _Unfit(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
            self._decided[name] = count


def _hash_order(keys: Collection[str]) -> list[str]:
    """Return keys in the order in which Java's HashMap has them: by buckets, of which there are enough."""
    buckets = 16
    while len(keys) > 0.75 * buckets:
        buckets *= 2

    def bucket(key: str) -> int:
        value = java_string_hash(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & buckets - 1

    return sorted(keys, key=bucket)


def _names_of(subtopology: Subtopology, group: CopartitionGroup) -> set[str]:
    return {subtopology.source_topics[position] for position in group.source_topics} | {
        subtopology.repartition_source_topics[position].name for position in group.repartition_source_topics
    }


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    first, *others = counts.values()
    if any(other != first for other in others):
        named = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        detail = f"Following topics do not have the same number of partitions: [{{{named}}}]"
        raise _Unfit(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return first


def _summarize(names: Iterable[str]) -> str:
    all_names = list(names)
    more = len(all_names) - _TOPICS_NAMED_MAX
    shown = ", ".join(all_names[:_TOPICS_NAMED_MAX])
    return f"{shown} and {more} additional topics" if more > 0 else shown

"""Topologies of Kafka Streams applications, made up."""

import random
from collections.abc import Sequence

from ottla.wire.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
    Topology,
)


def changelog(name: str) -> TopicInfo:
    """Return a changelog topic."""
    configs = (KeyValue(key="cleanup.policy", value="compact"),)
    return TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=configs)


def repartition(name: str, partitions: int = 0) -> TopicInfo:
    """Return a repartition topic."""
    return TopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=())


def subtopology(number: int | str, *sources: str, **fields: object) -> Subtopology:
    """Return a part of a topology."""
    given: dict[str, object] = {
        "source_topic_regex": (),
        "state_changelog_topics": (),
        "repartition_sink_topics": (),
        "repartition_source_topics": (),
        "copartition_groups": (),
        **fields,
    }
    return Subtopology(subtopology_id=str(number), source_topics=sources, **given)  # type: ignore[arg-type]


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    """Return a topology."""
    return Topology(epoch=epoch, subtopologies=subtopologies)


def counting(group_id: str, source: str) -> Topology:
    """Return the topology of an application that groups records by another key and counts them."""
    between = f"{group_id}-by-key-repartition"
    return topology(
        subtopology(0, source, repartition_sink_topics=(between,)),
        subtopology(
            1,
            repartition_source_topics=(repartition(between),),
            state_changelog_topics=(changelog(f"{group_id}-counts-changelog"),),
        ),
    )


def random_topology(rng: random.Random, group_id: str, names: Sequence[str]) -> Topology:
    """Return a topology of up to three subtopologies, each of which may read what another writes."""
    parts: list[Subtopology] = []
    between: list[str] = []
    for number in range(rng.randint(1, 3)):
        read = [name for name in between if rng.random() < 0.7]
        sources = rng.sample(list(names), rng.randint(0 if read else 1, min(2, len(names))))
        repartitions = tuple(
            repartition(name, rng.choice((0, 0, 0, 2)))
            for name in (read if rng.random() < 0.95 else ["lost"])
        )
        groups: tuple[CopartitionGroup, ...] = ()
        if len(sources) + len(repartitions) > 1 and rng.random() < 0.4:
            groups = (
                CopartitionGroup(
                    source_topics=tuple(range(len(sources))),
                    source_topic_regex=(),
                    repartition_source_topics=tuple(range(len(repartitions))),
                ),
            )
        sink = f"{group_id}-{number}-repartition"
        is_sink = rng.random() < 0.5
        parts.append(
            subtopology(
                number,
                *sources,
                repartition_source_topics=repartitions,
                repartition_sink_topics=(sink,) if is_sink else (),
                state_changelog_topics=(changelog(f"{group_id}-{number}-changelog"),)
                if rng.random() < 0.6
                else (),
                copartition_groups=groups,
            )
        )
        if is_sink:
            between.append(sink)
    return topology(*parts)

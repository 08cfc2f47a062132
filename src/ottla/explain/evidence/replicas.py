"""Who leads partitions, and which of their replicas are in sync and alive, as the cluster says it now."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.client.errors import ClientError
from ottla.explain.access import Access
from ottla.model.ids import TopicPartition


class ReplicaStates(NamedTuple):
    """The replicas of a partition, by the ids of their nodes."""

    leader: int
    """-1 if there is none."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


async def read_replicas(access: Access, topics: Collection[str]) -> Mapping[TopicPartition, ReplicaStates]:
    """Return the replicas of all partitions of topics, as far as they may be described."""
    try:
        found = (await access.admin.topics.describe_many(sorted(topics))).succeeded if topics else {}
    except ClientError:
        return {}
    return {
        TopicPartition(name, one.partition): ReplicaStates(
            one.leader, one.replicas, one.in_sync_replicas, one.offline_replicas
        )
        for name, topic in found.items()
        for one in topic.partitions
    }

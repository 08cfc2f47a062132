"""Metadata records of partitions: their replicas, leaders and in-sync replicas."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, message, wire


@message(api_key=3, versions="0-2", flexible="0+")
class PartitionRecord:
    """Record the whole state of a partition.

    v1 adds the directory of each replica, v2 the eligible leader replicas.
    """

    partition_id: i32 = wire("0+", default=-1)
    topic_id: Uuid = wire("0+")
    replicas: tuple[i32, ...] = wire("0+")
    isr: tuple[i32, ...] = wire("0+")
    removing_replicas: tuple[i32, ...] = wire("0+")
    adding_replicas: tuple[i32, ...] = wire("0+")
    leader: i32 = wire("0+", default=-1)
    leader_recovery_state: i8 = wire("0+", default=0, tag=0)
    leader_epoch: i32 = wire("0+", default=-1)
    partition_epoch: i32 = wire("0+", default=-1)
    directories: tuple[Uuid, ...] = wire("1+", default=())
    eligible_leader_replicas: tuple[i32, ...] | None = wire("2+", default=None, tag=1)
    last_known_elr: tuple[i32, ...] | None = wire("2+", default=None, tag=2)


@message(api_key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """Record a change of a partition; what is left out stays as it is.

    Leader -2 is no change, -1 is no leader. Replay raises the partition epoch always, and the leader epoch
    whenever the leader is given, even if it is the same. v1 adds directories, v2 eligible leader replicas.
    """

    partition_id: i32 = wire("0+", default=-1)
    topic_id: Uuid = wire("0+")
    isr: tuple[i32, ...] | None = wire("0+", default=None, tag=0)
    leader: i32 = wire("0+", default=-2, tag=1)
    replicas: tuple[i32, ...] | None = wire("0+", default=None, tag=2)
    removing_replicas: tuple[i32, ...] | None = wire("0+", default=None, tag=3)
    adding_replicas: tuple[i32, ...] | None = wire("0+", default=None, tag=4)
    leader_recovery_state: i8 = wire("0+", default=-1, tag=5)
    directories: tuple[Uuid, ...] | None = wire("1+", default=None, tag=8)
    eligible_leader_replicas: tuple[i32, ...] | None = wire("2+", default=None, tag=6)
    last_known_elr: tuple[i32, ...] | None = wire("2+", default=None, tag=7)


@message(api_key=28, versions="0", flexible="0+")
class ClearElrRecord:
    """Record that a topic's eligible leader replicas are forgotten, or those of all when unnamed."""

    topic_name: str = wire("0+")

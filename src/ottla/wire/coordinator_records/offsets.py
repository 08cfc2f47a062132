"""The committed offsets that groups keep in `__consumer_offsets`."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, i64, message, wire


@message(api_key=0, versions="0")
class LegacyOffsetCommitKey:
    """The key of a committed offset in its oldest form: read, never written."""

    group: str = wire("0")
    topic: str = wire("0")
    partition: i32 = wire("0")


@message(api_key=0, versions="0")
class LegacyOffsetCommitValue:
    """Record a committed offset in its oldest form: read, never written."""

    offset: i64 = wire("0")
    metadata: str = wire("0")
    commit_timestamp: i64 = wire("0")


@message(api_key=1, versions="0")
class OffsetCommitKey:
    """The key of a committed offset: a group and a partition."""

    group: str = wire("0")
    topic: str = wire("0")
    partition: i32 = wire("0")


@message(api_key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """Record the offset that a group has committed for a partition.

    v4 is written, with the topic's id where it is known; v1 only where the client set an expiry time.
    v3 adds the leader epoch.
    """

    offset: i64 = wire("0+")
    leader_epoch: i32 = wire("3+", default=-1, ignorable=True)
    metadata: str = wire("0+")
    commit_timestamp: i64 = wire("0+")
    expire_timestamp: i64 = wire("1", default=-1, ignorable=True)
    topic_id: Uuid = wire("4+", default=ZERO_UUID, tag=0, ignorable=True)

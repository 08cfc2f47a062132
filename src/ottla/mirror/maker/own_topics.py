"""The topics that MirrorMaker 2 keeps for itself: made if they are not there, and read from start to end."""

import logging
from collections.abc import AsyncIterator, Collection
from typing import Final, NamedTuple

from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError
from ottla.client.fetching import IsolationLevel, read_range, visible_batches
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.mirror.maker.formats import UnreadableRecord, decode_source_offset
from ottla.model.ids import TopicPartition
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.codec import Headers
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger("ottla.mirror")

_COMPACTED: Final = {"cleanup.policy": "compact"}


class KeptRecord(NamedTuple):
    """A record of such a topic."""

    key: bytes | None
    value: bytes | None
    headers: Headers


async def make_topic(admin: Admin, name: str, partitions: int, replication_factor: int | None) -> None:
    """Make a compacted topic, unless it is there."""
    new = NewTopic(name, partitions=partitions, replication_factor=replication_factor, configs=_COMPACTED)
    try:
        (await admin.topics.create_many([new])).check()
    except BrokerError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def partitions_of(cluster: Cluster, name: str) -> tuple[TopicPartition, ...]:
    """Return the partitions of a topic; none if it does not exist."""
    view = (await cluster.refresh([name])).topics.get(name)
    return () if view is None else tuple(TopicPartition(name, number) for number in view.partitions)


async def made_partitions(cluster: Cluster, name: str) -> tuple[TopicPartition, ...]:
    """Return the partitions of a topic that exists. A broker that has not heard of it yet is asked again."""

    async def once() -> tuple[TopicPartition, ...]:
        if not (found := await partitions_of(cluster, name)):
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} is not known yet")
        return found

    return await cluster.retry(once)


async def read_committed(
    cluster: Cluster, partitions: Collection[TopicPartition]
) -> AsyncIterator[KeptRecord]:
    """Read what is committed, up to the end as it is now.

    A transaction that is open below the end is waited for: it may be about to say where to go on.
    """
    starts = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    stable = await list_offsets(cluster, dict.fromkeys(partitions, LATEST), IsolationLevel.READ_COMMITTED)
    for where in partitions:
        start, end = starts[where].offset, ends[where].offset
        if stable[where].offset < end:
            _logger.warning("waiting for a transaction that is open in %s", where)
        async for piece in read_range(cluster, where, start, end, isolation=IsolationLevel.READ_COMMITTED):
            for batch in visible_batches(piece, IsolationLevel.READ_COMMITTED):
                for offset, _, key, value, headers in iter_batch_record_tuples(batch):
                    if start <= offset < end:
                        yield KeptRecord(key, value, headers)


async def read_positions(
    cluster: Cluster, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return where copying goes on, for partitions of the source of which something was copied."""
    positions: dict[TopicPartition, int] = {}
    async for record in read_committed(cluster, partitions):
        try:
            found = decode_source_offset(record.key, record.value)
        except UnreadableRecord:
            continue
        if found is None:
            continue
        where, last_offset = found
        if last_offset is None:
            positions.pop(where, None)
        else:
            positions[where] = last_offset + 1
    return positions

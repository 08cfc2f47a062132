"""The topics that MirrorMaker 2 keeps for itself: made if they are not there, and read from start to end."""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError
from ottla.client.fetching import IsolationLevel, read_range, visible_batches
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.mirror.maker.formats import UnreadableRecord, decode_source_offset
from ottla.mirror.maker.names import Names
from ottla.model.ids import TopicPartition
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.codec import Headers
from ottla.wire.error_code import ErrorCode

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


async def read_topic(cluster: Cluster, name: str) -> AsyncIterator[KeptRecord]:
    """Read what is committed, up to the end as it is now.

    A transaction that is open below the end is waited for: it may be about to say where to go on.
    """
    view = (await cluster.refresh([name])).topics.get(name)
    partitions = () if view is None else tuple(TopicPartition(name, number) for number in view.partitions)
    starts = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    for where in partitions:
        start, end = starts[where].offset, ends[where].offset
        async for piece in read_range(cluster, where, start, end, isolation=IsolationLevel.READ_COMMITTED):
            for batch in visible_batches(piece, IsolationLevel.READ_COMMITTED):
                for offset, _, key, value, headers in iter_batch_record_tuples(batch):
                    if start <= offset < end:
                        yield KeptRecord(key, value, headers)


async def read_positions(cluster: Cluster, names: Names) -> dict[TopicPartition, int]:
    """Return where copying goes on, for partitions of the source of which something was copied."""
    positions: dict[TopicPartition, int] = {}
    async for record in read_topic(cluster, names.source_offsets):
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

"""Offsets by time and by place: what ListOffsets answers, for many partitions at a time.

    found = await list_offsets(cluster, {TopicPartition("payments", 0): EARLIEST})

A timestamp in milliseconds finds the first record at or after it, or nothing where no record is so late. With
READ_COMMITTED the latest offset is the last stable one. Leaders are followed, and what can be tried again is.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import IsolationLevel
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3

_CONSUMER: Final = -1
# The first version that knows the place, for places that came later.
_FIRST_VERSION: Final = {MAX_TIMESTAMP: 7}


class FoundOffset(NamedTuple):
    """An offset, the timestamp of its record (-1 for a place) and the leader epoch (-1 if not known)."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    request_timeout_ms: int = 30_000,
) -> dict[TopicPartition, FoundOffset]:
    """Look up each partition by a timestamp, EARLIEST, LATEST or MAX_TIMESTAMP. None found: left out."""
    found: dict[TopicPartition, FoundOffset] = {}
    left = dict(times)

    async def once() -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for where in left:
            by_leader.setdefault((await cluster.leader(where)).leader, []).append(where)
        rounds = [
            _ask_leader(
                cluster, node_id, {where: left[where] for where in some}, isolation, request_timeout_ms
            )
            for node_id, some in by_leader.items()
        ]
        failure: BaseException | None = None
        for answer in await asyncio.gather(*rounds, return_exceptions=True):
            if isinstance(answer, BaseException):
                failure = answer
                continue
            for where, result in answer.items():
                if isinstance(result, BrokerError):
                    failure = result if failure is None or not result.retriable else failure
                    continue
                left.pop(where)
                if result.offset >= 0:
                    found[where] = result
        if failure is not None:
            if isinstance(failure, ClientError) and failure.retriable:
                await cluster.refresh({where.topic for where in left})
            raise failure

    if left:
        await cluster.retry(once)
    return found


async def _ask_leader(
    cluster: Cluster,
    node_id: int,
    times: Mapping[TopicPartition, int],
    isolation: IsolationLevel,
    request_timeout_ms: int,
) -> dict[TopicPartition, FoundOffset | BrokerError]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for where, timestamp in times.items():
        view = cluster.topology.leader_of(where)
        part = ListOffsetsPartition(
            partition_index=where.partition,
            current_leader_epoch=-1 if view is None else view.leader_epoch,
            timestamp=timestamp,
        )
        topics.setdefault(where.topic, []).append(part)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=isolation,
        timeout_ms=request_timeout_ms,
        topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
    )
    connection = await cluster.connection(node_id)
    version = connection.version_for(ListOffsetsRequest)
    for timestamp in times.values():
        if version < _FIRST_VERSION.get(timestamp, 0):
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {connection.address} cannot look up {timestamp}",
            )
    answer = await connection.ask(request, version)
    results: dict[TopicPartition, FoundOffset | BrokerError] = {}
    for topic in answer.topics:
        for part in topic.partitions:
            where = TopicPartition(topic.name, part.partition_index)
            if where not in times:
                continue
            if part.error_code is ErrorCode.NONE:
                results[where] = FoundOffset(part.offset, part.timestamp, part.leader_epoch)
            else:
                results[where] = BrokerError(part.error_code, f"no offset of {where} could be looked up")
    return results

"""What tests of mirrors ask both clusters: what partitions have, and where groups are."""

import asyncio
import time
from collections.abc import Callable, Collection

from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.consumer import Consumer, TopicPartition
from ottla.client.errors import ClientError
from ottla.client.fetching import read_range
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.client.security import cluster_for
from ottla.records.batch import LEADER_EPOCH_OFFSET, iter_batches

WAIT_S = 240

Row = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""Key, value, headers and timestamp."""


def until(holds: Callable[[], bool], explain: Callable[[], str] = str) -> None:
    """Wait until something holds. Clusters may be away meanwhile. `explain` says why it does not hold."""
    deadline = time.monotonic() + WAIT_S
    error: ClientError | None = None
    while True:
        try:
            if holds():
                return
            error = None
        except ClientError as raised:
            error = raised
        assert time.monotonic() < deadline, f"it did not come to hold in time ({error!r}). {explain()}"
        time.sleep(0.1)


async def content(bootstrap: str, where: TopicPartition) -> tuple[int, int, bytes]:
    """Return where a partition starts and ends, and its batches without their leader epochs."""
    cluster = cluster_for(AdminSettings.of({"bootstrap.servers": bootstrap}), retry_timeout_ms=10_000)
    await cluster.start()
    try:
        start = (await list_offsets(cluster, {where: EARLIEST}))[where].offset
        end = (await list_offsets(cluster, {where: LATEST}))[where].offset
        found = bytearray()
        async for piece in read_range(cluster, where, start, end):
            for batch in iter_batches(piece.records):
                view = batch.view
                found += bytes(view[:LEADER_EPOCH_OFFSET]) + bytes(view[LEADER_EPOCH_OFFSET + 4 :])
        return start, end, bytes(found)
    finally:
        await cluster.close()


async def ends(bootstrap: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return where partitions end."""
    async with Admin(bootstrap) as admin:
        found = (await admin.offsets.latest(partitions)).check()
        return {where: item.offset for where, item in found.items()}


def are_equal(source: str, target: str, where: TopicPartition) -> bool:
    """Say whether a partition is an exact copy."""
    return asyncio.run(content(source, where)) == asyncio.run(content(target, where))


async def rows(bootstrap: str, where: TopicPartition) -> list[Row]:
    """Return all committed records of a partition; none if it does not exist."""
    found: list[Row] = []
    async with Consumer(
        bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
    ) as consumer:
        if where not in (await consumer.partitions_for(where.topic) or ()):
            return found
        end = (await consumer.end_offsets([where]))[where]
        consumer.assign([where])
        while await consumer.position(where) < end:
            found += [
                (record.key, record.value, tuple(record.headers), record.timestamp_ms)
                for record in await consumer.poll(500)
            ]
    return found


def rows_of(bootstrap: str, topic: str, partition: int = 0) -> list[Row]:
    """Return all committed records of a partition."""
    return asyncio.run(rows(bootstrap, TopicPartition(topic, partition)))


def rows_are_equal(source: str, where: TopicPartition, target: str, copy: TopicPartition) -> bool:
    """Say whether a copy has the same committed records in the same order."""
    return asyncio.run(rows(source, where)) == asyncio.run(rows(target, copy))


async def read_values(bootstrap: str, where: TopicPartition, offset: int) -> list[bytes | None]:
    """Return the values that a reader of committed records finds from an offset on."""
    values: list[bytes | None] = []
    async with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        end = (await consumer.end_offsets([where]))[where]
        consumer.assign([where])
        consumer.seek(where, offset)
        while await consumer.position(where) < end:
            values += [record.value for record in await consumer.poll(500)]
    return values


async def commit(bootstrap: str, group: str, where: TopicPartition, offset: int) -> None:
    """Commit for a group without members."""
    async with Admin(bootstrap) as admin:
        (await admin.group_offsets.alter(group, {where: offset})).check()


async def committed(bootstrap: str, group: str, where: TopicPartition) -> int | None:
    """Return what a group has committed."""
    async with Admin(bootstrap) as admin:
        found = (await admin.group_offsets.list(group)).get(where)
        return None if found is None else found.offset

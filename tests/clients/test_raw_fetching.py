"""Raw batches and offsets by time, from Ottla and from Apache Kafka alike."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from tests.clients.served_topics import until

from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange
from ottla.client.fetching import FetchLimits, IsolationLevel, fetch_once, read_range, visible_batches
from ottla.client.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from ottla.client.producer import Producer
from ottla.client.properties import parse_address
from ottla.model.ids import TopicPartition
from ottla.records.batch_records import iter_batch_records
from ottla.wire.error_code import ErrorCode


async def _write(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap, transactional_id=f"writer of {topic}") as producer:
        for number in range(6):
            producer.begin_transaction()
            for step in range(10):
                await producer.send(topic, b"%d.%d" % (number, step), timestamp_ms=1000 * number + step)
            await producer.flush()
            await (producer.commit_transaction() if number % 2 else producer.abort_transaction())


@asynccontextmanager
async def _open(bootstrap: str) -> AsyncIterator[Cluster]:
    cluster = Cluster([parse_address(bootstrap)])
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


async def _values(
    cluster: Cluster, where: TopicPartition, stop: int, isolation: IsolationLevel
) -> list[bytes]:
    limits = FetchLimits(partition_max_bytes=300)
    return [
        record.value or b""
        async for piece in read_range(cluster, where, 0, stop, isolation=isolation, limits=limits)
        for batch in visible_batches(piece, isolation)
        for record in iter_batch_records(batch)
        if record.offset >= piece.fetch_offset
    ]


def test_a_range_is_read_whole_and_without_what_was_aborted(bootstrap: str) -> None:
    where = TopicPartition(f"raw-{uuid4()}", 0)

    async def read() -> None:
        await _write(bootstrap, where.topic)
        async with _open(bootstrap) as cluster:

            async def find_end() -> int:
                found = await list_offsets(cluster, {where: LATEST}, IsolationLevel.READ_COMMITTED)
                return found[where].offset

            end = 66  # Sixty records and six markers. The last may come after its commit was answered.
            await until(find_end, end)
            seen = await _values(cluster, where, end, IsolationLevel.READ_COMMITTED)
            assert seen == [b"%d.%d" % (number, step) for number in (1, 3, 5) for step in range(10)]
            everything = await _values(cluster, where, end, IsolationLevel.READ_UNCOMMITTED)
            assert everything == [b"%d.%d" % (number, step) for number in range(6) for step in range(10)]

    asyncio.run(read())


def test_offsets_are_found_by_time_and_by_place(bootstrap: str) -> None:
    where = TopicPartition(f"raw-{uuid4()}", 0)

    async def look() -> None:
        async with Producer(bootstrap) as producer:
            for number in range(50):
                await producer.send(where.topic, b"", timestamp_ms=1000 * number)
        async with _open(bootstrap) as cluster:
            assert (await list_offsets(cluster, {where: EARLIEST}))[where].offset == 0
            assert (await list_offsets(cluster, {where: LATEST}))[where].offset == 50
            assert (await list_offsets(cluster, {where: 20_001}))[where][:2] == (21, 21_000)
            assert (await list_offsets(cluster, {where: MAX_TIMESTAMP}))[where][:2] == (49, 49_000)
            assert await list_offsets(cluster, {where: 49_001}) == {}

    asyncio.run(look())


def test_an_offset_that_is_not_there_is_told(bootstrap: str) -> None:
    where = TopicPartition(f"raw-{uuid4()}", 0)

    async def read() -> None:
        await _write(bootstrap, where.topic)
        async with _open(bootstrap) as cluster:
            answer = await fetch_once(cluster, {where: 1000})
            assert answer[where].error_code is ErrorCode.OFFSET_OUT_OF_RANGE
            with pytest.raises(OffsetOutOfRange, match="at 1000") as raised:
                async for _ in read_range(cluster, where, 1000, 2000):
                    pass
            assert raised.value.offsets == {where: 1000}

    asyncio.run(read())

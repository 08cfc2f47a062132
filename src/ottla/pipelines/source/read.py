"""The rows of one range of a partition, as Arrow batches."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange
from ottla.client.fetching import (
    DEFAULT_LIMITS,
    FetchedPartition,
    FetchLimits,
    IsolationLevel,
    read_range,
    visible_batches,
)
from ottla.client.list_offsets import EARLIEST
from ottla.pipelines.columns.decode import RecordColumns, decode_columns
from ottla.pipelines.link import Link
from ottla.pipelines.source.offsets import DataLoss, find_offsets
from ottla.pipelines.source.plan import OffsetRange


class ReadTerms(NamedTuple):
    """How to read: what a task needs of the options."""

    isolation: IsolationLevel
    include_headers: bool
    fail_on_data_loss: bool
    poll_timeout_ms: int
    partition_fetch_bytes: int


class PollTimedOut(Exception):
    """Records that were there when the batch was planned did not come."""


Decode = Callable[[Any], list[Any]]


def read_rows(
    link: Link, piece: OffsetRange, terms: ReadTerms, schema: Any, decode: Decode | None = None
) -> Iterator[Any]:
    """Yield the rows of a range as record batches of `schema`."""
    fetching = _pieces(link.cluster, piece, terms)
    timeout_s = terms.poll_timeout_ms / 1000
    while True:
        try:
            fetched = link.run(_next(fetching, timeout_s))
        except TimeoutError:
            raise PollTimedOut(
                f"{piece.where} returned no record before offset {piece.stop_offset} for {timeout_s:g} s: "
                "check that its leader is running, or raise kafkaConsumer.pollTimeoutMs"
            ) from None
        if fetched is None:
            return
        batches = visible_batches(fetched, terms.isolation)
        for columns in decode_columns(batches, with_headers=terms.include_headers):
            # The first batch may begin before what was asked for.
            wanted = columns.between(fetched.fetch_offset, piece.stop_offset)
            if len(wanted.offsets):
                yield to_record_batch(wanted, piece, schema, decode)


async def _next(fetching: AsyncIterator[FetchedPartition], timeout_s: float) -> FetchedPartition | None:
    async with asyncio.timeout(timeout_s):
        return await anext(fetching, None)


async def _pieces(cluster: Cluster, piece: OffsetRange, terms: ReadTerms) -> AsyncIterator[FetchedPartition]:
    limits: FetchLimits = DEFAULT_LIMITS._replace(partition_max_bytes=terms.partition_fetch_bytes)
    start_offset = piece.start_offset
    while start_offset < piece.stop_offset:
        pieces = read_range(
            cluster, piece.where, start_offset, piece.stop_offset, isolation=terms.isolation, limits=limits
        )
        try:
            async for fetched in pieces:
                yield fetched
        except OffsetOutOfRange as error:
            if terms.fail_on_data_loss:
                raise DataLoss(str(error)) from error
            earliest = await find_offsets(cluster, [piece.where], EARLIEST, terms.isolation)
            # A log that begins before what was asked for ends before it as well: nothing is left to read.
            begin = earliest[piece.where]
            start_offset = begin if begin > start_offset else piece.stop_offset
        else:
            return


def to_record_batch(
    columns: RecordColumns, piece: OffsetRange, schema: Any, decode: Decode | None = None
) -> Any:
    """Arrange columns as Spark's Kafka source has them: key, value, topic, partition, offset, time, type.

    Behind them are headers, and what `decode` makes of the values.
    """
    count = len(columns.offsets)
    arrays = [
        columns.keys,
        columns.values,
        pa.repeat(pa.scalar(piece.where.topic), count),
        pa.array(np.full(count, piece.where.partition, dtype=np.int32)),
        pa.array(columns.offsets),
        # Spark counts microseconds.
        pa.array(columns.timestamps_ms * 1000).cast(schema.field("timestamp").type),
        pa.array(columns.timestamp_types.astype(np.int32)),
    ]
    if columns.headers is not None:
        arrays.append(columns.headers.cast(schema.field("headers").type))
    if decode is not None:
        arrays[1], *decoded = decode(columns.values)
        arrays += decoded
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

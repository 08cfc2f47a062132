"""Batches fill, linger, leave in order, and come back in order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.producer.accumulator import Accumulator, SendBufferFull
from ottla.model.ids import TopicPartition

WHERE = TopicPartition("t", 0)


def _run(body: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await body()

    return asyncio.run(main())


def _accumulator(batch_bytes: int = 1000, buffer_bytes: int = 10_000) -> Accumulator:
    return Accumulator(batch_bytes, 0.01, buffer_bytes, lambda: None)


def _append(accumulator: Accumulator, value: bytes, size_bytes: int = 100, now_s: float = 0.0) -> None:
    accumulator.append(WHERE, 1, None, value, (), size_bytes, now_s)


def test_a_batch_takes_records_while_there_is_room() -> None:
    async def body() -> None:
        accumulator = _accumulator(batch_bytes=361)
        for number in range(5):
            _append(accumulator, b"%d" % number)
        assert [len(batch.records) for batch in accumulator.queued(WHERE)] == [3, 2]

    _run(body)


def test_a_batch_leaves_when_it_lingered_or_is_full_or_somebody_flushes() -> None:
    async def body() -> None:
        accumulator = _accumulator(batch_bytes=261)
        _append(accumulator, b"a")
        assert not list(accumulator.ready(0.005))
        assert accumulator.next_due_s(0.005) == pytest.approx(0.01)
        assert list(accumulator.ready(0.011))
        accumulator.flushing = 1
        assert list(accumulator.ready(0.005))
        accumulator.flushing = 0
        _append(accumulator, b"b")
        assert list(accumulator.ready(0.005)), "it is full"

    _run(body)


def test_batches_that_come_back_keep_their_order_across_the_wrap_of_sequences() -> None:
    async def body() -> None:
        accumulator = _accumulator(batch_bytes=161)
        for number in range(4):
            _append(accumulator, b"%d" % number)
        batches = [accumulator.take(WHERE) for _ in range(3)]
        for batch, sequence in zip(batches, (2**31 - 2, 2**31 - 1, 0), strict=True):
            batch.base_sequence = sequence
        for place in (2, 0, 1):
            accumulator.put_back(batches[place])
        assert [batch.records[0].value for batch in accumulator.queued(WHERE)] == [b"0", b"1", b"2", b"3"]

    _run(body)


def test_nothing_joins_a_batch_that_was_sent_before() -> None:
    async def body() -> None:
        accumulator = _accumulator()
        _append(accumulator, b"a")
        batch = accumulator.take(WHERE)
        batch.attempts = 1
        accumulator.put_back(batch)
        _append(accumulator, b"b")
        assert [len(item.records) for item in accumulator.queued(WHERE)] == [1, 1]

    _run(body)


def test_sending_waits_for_room_and_gives_up_in_the_end() -> None:
    async def body() -> None:
        accumulator = _accumulator(buffer_bytes=150)
        _append(accumulator, b"a")
        with pytest.raises(SendBufferFull, match=r"raise buffer\.memory"):
            await accumulator.wait_for_room(100, timeout_s=0.01)
        waiting = asyncio.create_task(accumulator.wait_for_room(100, timeout_s=60))
        await asyncio.sleep(0)
        accumulator.release(accumulator.take(WHERE))
        await waiting

    _run(body)


def test_old_batches_expire_from_the_front() -> None:
    async def body() -> None:
        accumulator = _accumulator(batch_bytes=161)
        _append(accumulator, b"old", now_s=1.0)
        _append(accumulator, b"new", now_s=5.0)
        assert [batch.records[0].value for batch in accumulator.expired(before_s=2.0)] == [b"old"]
        assert len(accumulator) == 1

    _run(body)

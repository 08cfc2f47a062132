"""Batches fill, linger, leave in order, and come back in order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer.accumulator import Accumulator, SendBufferFull
from ottla.client.producer.batch import Batch, SentRecord
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

WHERE = TopicPartition("t", 0)


def _run(body: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await body()

    return asyncio.run(main())


class _Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def _accumulator(
    batch_bytes: int = 1000, buffer_bytes: int = 10_000, clock: _Clock | None = None
) -> Accumulator:
    return Accumulator(batch_bytes, 0.01, buffer_bytes, lambda: None, clock or _Clock())


def _append(accumulator: Accumulator, value: bytes, size_bytes: int = 100) -> Batch:
    return accumulator.append(WHERE, 1, None, value, (), size_bytes)


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
        assert [batch.records[0][3] for batch in accumulator.queued(WHERE)] == [b"0", b"1", b"2", b"3"]

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
        assert accumulator.take_room(100)
        _append(accumulator, b"a")
        with pytest.raises(SendBufferFull, match=r"raise buffer\.memory"):
            await accumulator.wait_for_room(100, timeout_s=0.01)
        waiting = asyncio.create_task(accumulator.wait_for_room(100, timeout_s=60))
        await asyncio.sleep(0)
        accumulator.release(accumulator.take(WHERE))
        await waiting

    _run(body)


async def _waiting(accumulator: Accumulator, size_bytes: int, timeout_s: float = 60) -> asyncio.Task[None]:
    task = asyncio.create_task(accumulator.wait_for_room(size_bytes, timeout_s))
    await asyncio.sleep(0)
    return task


def test_one_who_stops_waiting_for_room_leaves_it_to_the_others() -> None:
    async def body() -> None:
        for yields in range(3):
            accumulator = _accumulator(buffer_bytes=100)
            assert accumulator.take_room(100)
            first, second = await _waiting(accumulator, 100), await _waiting(accumulator, 100)
            accumulator.give_back(100)
            for _ in range(yields):
                await asyncio.sleep(0)
            if first.done():
                accumulator.give_back(100)
            else:
                # The room was handed over already, but the first does not know of it yet.
                first.cancel()
            await asyncio.wait_for(second, 10)
            assert accumulator.used_bytes == 100

    _run(body)


def test_a_batch_that_is_done_makes_room_for_as_many_as_fit() -> None:
    async def body() -> None:
        accumulator = _accumulator(buffer_bytes=100)
        assert accumulator.take_room(100)
        small = [await _waiting(accumulator, 40) for _ in range(3)]
        accumulator.give_back(100)
        await asyncio.sleep(0)
        assert [task.done() for task in small] == [True, True, False]
        assert not accumulator.take_room(10), "others came before"
        accumulator.give_back(40)
        await asyncio.wait_for(small[2], 10)
        assert accumulator.used_bytes == 80

    _run(body)


def test_nobody_waits_for_room_in_a_producer_that_is_closed() -> None:
    async def body() -> None:
        accumulator = _accumulator(buffer_bytes=100)
        assert accumulator.take_room(100)
        waiting = await _waiting(accumulator, 40)
        accumulator.close(ClientError("closed"))
        with pytest.raises(ClientError, match="closed"):
            await asyncio.wait_for(waiting, 10)
        accumulator.give_back(100)
        with pytest.raises(ClientError, match="closed"):
            await accumulator.wait_for_room(40, timeout_s=10)

    _run(body)


def test_a_batch_gives_back_what_it_took_however_often_it_is_split() -> None:
    async def body() -> None:
        accumulator = _accumulator()
        for size_bytes in (101, 57, 33, 87, 11):
            assert accumulator.take_room(size_bytes)
            _append(accumulator, b"v", size_bytes)
        first, second = accumulator.take(WHERE).split()
        for batch in (*first.split(), *second.split()):
            accumulator.put_back(batch)
        batches = [accumulator.take(WHERE) for _ in range(4)]
        assert [len(batch.records) for batch in batches] == [1, 1, 1, 2]
        assert batches == sorted(batches, key=lambda batch: batch.ordinal)
        for batch in batches:
            accumulator.release(batch)
        assert accumulator.used_bytes == 0

    _run(body)


def test_old_batches_expire_from_the_front() -> None:
    async def body() -> None:
        clock = _Clock()
        accumulator = _accumulator(batch_bytes=161, clock=clock)
        clock.now_s = 1.0
        _append(accumulator, b"old")
        clock.now_s = 5.0
        _append(accumulator, b"new")
        assert [batch.records[0][3] for batch in accumulator.expired(before_s=2.0)] == [b"old"]
        assert len(accumulator) == 1

    _run(body)


def _sent(accumulator: Accumulator, count: int) -> list[SentRecord]:
    return [
        SentRecord(batch, len(batch.records) - 1, number)
        for number in range(count)
        for batch in [_append(accumulator, b"%d" % number)]
    ]


def test_every_record_of_a_batch_that_landed_gets_its_own_offset() -> None:
    async def body() -> None:
        sent = _sent(accumulator := _accumulator(), 3)
        waiting = [asyncio.create_task(record.result()) for record in sent]
        await asyncio.sleep(0)
        assert not any(record.is_done for record in sent)
        accumulator.take(WHERE).landed(40, -1)
        metadata = [await task for task in waiting]
        assert [(item.offset, item.timestamp_ms) for item in metadata] == [(40, 0), (41, 1), (42, 2)]

    _run(body)


def test_the_brokers_time_is_told_where_it_sets_one_and_no_offset_where_it_gives_none() -> None:
    async def body() -> None:
        [record] = _sent(accumulator := _accumulator(), 1)
        accumulator.take(WHERE).landed(-1, 77)
        assert (await record)[2:] == (-1, 77)

    _run(body)


def test_one_who_stops_waiting_takes_nobody_along() -> None:
    async def body() -> None:
        first, second = _sent(accumulator := _accumulator(), 2)
        impatient, patient = asyncio.create_task(first.result()), asyncio.create_task(second.result())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
        accumulator.take(WHERE).landed(0, -1)
        assert (await patient).offset == 1

    _run(body)


def test_records_of_a_split_batch_wait_for_the_half_they_went_to() -> None:
    async def body() -> None:
        sent = _sent(accumulator := _accumulator(), 5)
        waiting = [asyncio.create_task(record.result()) for record in sent]
        await asyncio.sleep(0)
        batch = accumulator.take(WHERE)
        batch.base_sequence = 2**31 - 1
        first, second = batch.split()
        assert [[record[0] for record in half.records] for half in (first, second)] == [[0, 1], [0, 1, 2]]
        assert [half.base_sequence for half in (first, second)] == [2**31 - 1, 1]
        assert not any(record.is_done for record in sent)
        second.fail(BrokerError(ErrorCode.INVALID_RECORD, "refused"))
        quarter, other_quarter = first.split()
        other_quarter.landed(8, -1)
        quarter.landed(7, -1)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [getattr(item, "offset", str(item)) for item in results] == [
            7,
            8,
            *["refused: INVALID_RECORD"] * 3,
        ]

    _run(body)


def test_a_record_that_is_held_on_to_keeps_no_bytes() -> None:
    async def body() -> None:
        _sent(accumulator := _accumulator(), 3)
        batch = accumulator.take(WHERE)
        batch.landed(0, -1)
        assert batch.records == []

    _run(body)

"""Single stories of producers: memory, two calls at once, and calls that were cut off."""

import asyncio

import pytest
from tests.simulation.clients.cutting import Stage
from tests.simulation.clients.test_hard_times import tell

from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.client.producer.accumulator import SendBufferFull
from ottla.client.producer.transactions import WrongTransactionState
from ottla.model.ids import TopicPartition


def test_records_that_need_no_answer_take_no_more_memory_than_others() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        async with Producer(
            stage.bootstrap,
            acks="0",
            linger_ms=0,
            buffer_memory=100_000,
            max_block_ms=5_000,
            request_timeout_ms=60_000,
            delivery_timeout_ms=100_000,
        ) as producer:
            await producer.send_and_wait(topic, b"first")
            here, there = stage.loop.machine.host, stage.node.machine.host
            stage.network.cut(here, there)
            stage.network.cut(there, here)
            taken_bytes = await _fill(producer, topic)
            stage.network.mend_all()
            await producer.send(topic, b"last")
            await producer.flush()
            # What is on its way in the network, what the connection keeps, and the buffer.
            assert taken_bytes < 1_000_000
        await asyncio.sleep(5)
        values = await stage.values(topic)
        assert (values[0], values[-1]) == (b"first", b"last")
        assert len(values) == taken_bytes // 10_000 + 2

    tell(story)


async def _fill(producer: Producer, topic: str) -> int:
    """Send until the buffer is full. Returns how many bytes were taken."""
    for number in range(1_000):
        try:
            await producer.send(topic, bytes(10_000))
        except SendBufferFull:
            return number * 10_000
    return 10_000_000


def test_a_second_commit_does_not_end_the_next_transaction() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        async with Producer(stage.bootstrap, linger_ms=0, transactional_id="t") as producer:
            producer.begin_transaction()
            await producer.send(topic, b"1")
            began = asyncio.Event()

            async def commit_and_go_on() -> None:
                await producer.commit_transaction()
                producer.begin_transaction()
                began.set()
                await producer.send_and_wait(topic, b"2")
                await producer.send_and_wait(topic, b"3")
                await producer.abort_transaction()

            first = asyncio.create_task(commit_and_go_on())
            second = asyncio.create_task(producer.commit_transaction())
            await first
            with pytest.raises(WrongTransactionState):
                await second
        assert await stage.values(topic) == [b"1"]

    tell(story)


def test_a_transaction_is_not_committed_without_offsets_that_were_cut_off() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        where = TopicPartition(topic, 0)
        async with Producer(stage.bootstrap, linger_ms=0, transactional_id="t") as producer:
            producer.begin_transaction()
            await producer.send_and_wait(topic, b"1")
            stage.network.cut(stage.loop.machine.host, stage.node.machine.host)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await producer.send_offsets_to_transaction({where: 7}, "g")
            stage.network.mend_all()
            with pytest.raises(ClientError, match="send_offsets_to_transaction"):
                await producer.commit_transaction()
            # The call may be made again, or the transaction given up.
            await producer.send_offsets_to_transaction({where: 7}, "g")
            await producer.commit_transaction()
            assert await stage.committed("g", topic) == [7]

    tell(story)

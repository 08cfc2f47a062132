"""Our producer and a group of our consumers go on while their broker is killed and started again.

Nothing is lost, nothing is doubled or out of order in the log, and nothing that was committed is handled
again. RESTARTS=20 makes it longer.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.ottla_node import OttlaNode

from ottla.client.consumer import Consumer, TopicPartition
from ottla.client.errors import ClientError
from ottla.client.producer import Producer

RESTARTS = int(os.environ.get("RESTARTS", "3"))
PARTITIONS = 3
RECORDS_BETWEEN = 600
TOPIC = "payments"
_QUICK_SESSIONS: dict[str, Any] = {"heartbeat_interval_ms": 200, "session_timeout_ms": 10_000}


class Ledger:
    """What the members have handled, and what the group has committed."""

    def __init__(self) -> None:
        self.handled: dict[TopicPartition, dict[int, bytes]] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.repeated = 0

    def handle(self, where: TopicPartition, offset: int, value: bytes) -> None:
        assert offset >= self.committed.get(where, 0), f"{where} offset {offset} was committed before"
        done = self.handled.setdefault(where, {})
        assert offset <= len(done), f"{where} offset {offset} came, but {len(done)} is due"
        self.repeated += offset in done
        assert done.setdefault(offset, value) == value

    @property
    def count(self) -> int:
        return sum(map(len, self.handled.values()))


async def _member(bootstrap: str, protocol: str, ledger: Ledger, stop: asyncio.Event) -> None:
    async with Consumer(
        bootstrap,
        group_id="billing",
        group_protocol=protocol,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **({} if protocol == "consumer" else _QUICK_SESSIONS),
    ) as consumer:
        consumer.subscribe([TOPIC])
        while not stop.is_set():
            records = await consumer.poll(200, max_records=50)
            for record in records:
                ledger.handle(record.where, record.offset, record.value)
            positions = consumer.positions() if records else {}
            try:
                await consumer.commit(positions)
            except ClientError:
                # The group moved on, or the broker is away: what was handled may come again.
                continue
            ledger.committed |= {where: item.offset for where, item in positions.items()}


async def _produce(node: OttlaNode) -> dict[int, list[bytes]]:
    sent: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    async with Producer(node.bootstrap, linger_ms=0, batch_size=500) as producer:
        number = 0
        for _ in range(RESTARTS):
            for step in range(RECORDS_BETWEEN):
                number += 1
                partition = number % PARTITIONS
                value = b"%d" % number
                await producer.send(TOPIC, value, partition=partition)
                sent[partition].append(value)
                if step == RECORDS_BETWEEN // 2:
                    await asyncio.to_thread(node.kill)
                    await asyncio.to_thread(node.start)
        await producer.flush()
    return sent


@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param("classic", marks=pytest.mark.thorough(guard="tests/simulation/groups/test_groups.py")),
        "consumer",
    ],
)
@pytest.mark.timeout(60 + 60 * RESTARTS)
def test_nothing_is_lost_doubled_or_reordered(tmp_path: Path, protocol: str) -> None:
    settings = {"num.partitions": str(PARTITIONS), "group.initial.rebalance.delay.ms": "0"}
    ledger = Ledger()

    async def run(node: OttlaNode) -> dict[int, list[bytes]]:
        stop = asyncio.Event()
        members = [asyncio.create_task(_member(node.bootstrap, protocol, ledger, stop)) for _ in range(2)]
        sent = await _produce(node)
        while ledger.count < RESTARTS * RECORDS_BETWEEN and not any(task.done() for task in members):
            await asyncio.sleep(0.05)
        stop.set()
        await asyncio.gather(*members)
        return sent

    with OttlaNode(tmp_path, settings) as node:
        sent = asyncio.run(run(node))
    for partition, values in sent.items():
        handled = ledger.handled[TopicPartition(TOPIC, partition)]
        assert [handled[offset] for offset in sorted(handled)] == values
    # At most one round of one member is in the air whenever the broker goes.
    assert ledger.repeated <= RESTARTS * 2 * 50

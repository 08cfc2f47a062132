"""The workers of the payments example: each alert is handled once, with retries and dead letters."""

import asyncio
import json
from collections import Counter
from typing import Any

from examples.payments import workers
from tests.clients.served_topics import make_topic

from ottla.client.consumer import Consumer, TopicPartition
from ottla.client.producer import Producer


def test_alerts_are_handled_once_or_become_dead_letters(ottla_bootstrap: str) -> None:
    handled: Counter[int] = Counter()
    tries: Counter[int] = Counter()

    async def handle(alert: dict[str, Any]) -> None:
        number = alert["id"]
        tries[number] += 1
        if number == 7:
            raise workers.Unusable
        if number == 8 or (number == 9 and tries[number] == 1):
            raise ConnectionError
        handled[number] += 1

    async def run() -> list[bytes]:
        await asyncio.to_thread(make_topic, ottla_bootstrap, "alerts", 2)
        await workers.prepare(ottla_bootstrap)
        async with Producer(ottla_bootstrap) as producer:
            for number in range(40):
                await producer.send("alerts", json.dumps({"id": number}))
            await producer.send("alerts", b"no JSON")
        stop = asyncio.Event()
        working = [asyncio.create_task(workers.work(ottla_bootstrap, handle, stop)) for _ in range(3)]
        async with asyncio.timeout(100), Consumer(ottla_bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(workers.DEAD, 0)])
            dead: list[bytes] = []
            while len(handled) < 38 or len(dead) < 3:
                dead += [record.value for record in await consumer.poll(200)]
        stop.set()
        await asyncio.gather(*working)
        return dead

    dead = asyncio.run(run())
    assert sorted(dead) == sorted([b'{"id": 7}', b'{"id": 8}', b"no JSON"])
    assert handled == Counter({number: 1 for number in range(40) if number not in (7, 8)})
    assert (tries[7], tries[8], tries[9]) == (1, 3, 2)

"""A cluster as a console meets it: topics of all sorts, records of all sorts, groups of all kinds."""

import asyncio
import json
from typing import Final

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition

START_MS: Final = 1_790_000_000_000
HOSTILE: Final = (
    b"<script>document.title='run'</script>",
    b'"><img src=x onerror="document.title=\'run\'">',
    b"\x1b]0;title\x07\x1b[2J terminal",
    "\u202egnp.exe \u200bhidden".encode(),
    b"\xff\xfe\x00 not utf-8 \x80",
    b"{{ 7 * 7 }}${7*7}<%= 7*7 %>",
    b'{"html": "<b>bold</b>", "big": 9007199254740993, "exact": 1.10}',
    b"javascript:alert(1)",
    b"",
)
"""What must be shown as what it is, and nothing else."""


async def fill(bootstrap: str) -> None:
    """Fill a node that is fresh."""
    async with Admin(bootstrap) as admin:
        sizes = {"shop.orders": 3, "shop.payments": 2, "shop.refunds": 1, "hostile": 1}
        for name, partitions in sizes.items():
            await admin.topics.create(name, partitions=partitions, configs={"retention.ms": "-1"})
        await admin.topics.create("shop.customers", partitions=1, configs={"cleanup.policy": "compact"})
        await _write(bootstrap)
        await _read(bootstrap, admin)


async def _write(bootstrap: str) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(300):
            order = {
                "order": 9_007_199_254_740_993 + number,
                "customer": f"c-{number % 17}",
                "items": [{"sku": f"sku-{number % 7}", "price": "19.90"}],
                "paid": number % 3 == 0,
            }
            await producer.send(
                "shop.orders",
                json.dumps(order).encode(),
                key=f"c-{number % 17}".encode(),
                timestamp_ms=START_MS + number * 1000,
                headers=(("source", b"web"), ("trace", b"\x00\x01")),
            )
        for number in range(40):
            await producer.send(
                "shop.payments", f"payment {number} of 19.90 EUR".encode(), key=b"%d" % number
            )
        await producer.send("shop.customers", None, key=b"c-1")
        await producer.send("shop.refunds", b"x" * 200_000, key=b"large")
        for number, value in enumerate(HOSTILE):
            await producer.send(
                "hostile",
                value,
                key=value,
                headers=((value.decode("latin-1"), value),),
                timestamp_ms=START_MS + number,
            )


async def _read(bootstrap: str, admin: Admin) -> None:
    async with Consumer(bootstrap, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["shop.orders"])
        seen = 0
        while seen < 120:
            seen += len(await consumer.poll(max_records=120 - seen))
        await consumer.commit()
    await admin.group_offsets.alter("<script>group</script>/a b", {TopicPartition("hostile", 0): 3})
    await admin.group_offsets.alter("shipping", {TopicPartition("shop.payments", 0): 5})


if __name__ == "__main__":
    import sys

    asyncio.run(fill(sys.argv[1]))

"""`ottla bench`: how fast a cluster is, as this client sees it.

It makes a topic of its own, writes, reads, and removes the topic again. The figures are those of this client
on this machine: they say whether a cluster works as it should, and not how fast it could be.
"""

import time
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import run_client, with_admin
from ottla.cli.numbers import PARTITIONS, RECORDS, VALUE_BYTES
from ottla.cli.output import json_option, progress, show_one
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_STEP: Final = 1_000
_LATENCIES: Final = 200


@click.command()
@cluster_options
@json_option
@click.option("--records", type=RECORDS, default=50_000, show_default=True, help="How many.")
@click.option("--size", "size_bytes", type=VALUE_BYTES, default=100, show_default=True, help="Bytes each.")
@click.option("--partitions", type=PARTITIONS, default=1, show_default=True, help="Of the topic.")
@click.option(
    "--acks",
    type=click.Choice(("all", "1")),
    default="all",
    show_default=True,
    help="Which replicas must have a record before it is acknowledged.",
)
def bench(
    properties: dict[str, str], as_json: bool, records: int, size_bytes: int, partitions: int, acks: str
) -> None:
    """Measure a cluster: records written and read per second, and the latency of one record."""
    topic = f"ottla-bench-{time.time_ns()}"
    with_admin(properties, lambda admin: _create(admin, topic, partitions))
    try:
        figures = run_client(lambda: _measure(properties, topic, records, size_bytes, acks))
    finally:
        with_admin(properties, lambda admin: _delete(admin, topic))
    show_one(figures, as_json)


async def _create(admin: "Admin", topic: str, partitions: int) -> None:
    from ottla.cli.admin.settling import until_served

    await admin.topics.create(topic, partitions=partitions)
    await until_served(admin, topic, partitions)


async def _delete(admin: "Admin", topic: str) -> None:
    from ottla.cli.admin.settling import until_gone

    await admin.topics.delete(topic)
    await until_gone(admin, [topic])


async def _measure(
    properties: dict[str, str], topic: str, records: int, size_bytes: int, acks: str
) -> dict[str, Any]:
    write_s = await _write(properties, topic, records, size_bytes, acks)
    read_s = await _read(properties, topic, records)
    latencies_ms = await _latencies(properties, topic, size_bytes, acks)
    return {
        "records": records,
        "size_bytes": size_bytes,
        "acks": acks,
        "written_per_second": round(records / write_s),
        "written_mb_per_second": round(records * size_bytes / write_s / 1e6, 2),
        "read_per_second": round(records / read_s),
        "read_mb_per_second": round(records * size_bytes / read_s / 1e6, 2),
        "write_ms_median": round(latencies_ms[len(latencies_ms) // 2], 2),
        "write_ms_99_percent": round(latencies_ms[len(latencies_ms) * 99 // 100], 2),
    }


async def _write(properties: dict[str, str], topic: str, records: int, size_bytes: int, acks: str) -> float:
    from ottla.client.producer import Producer

    value = b"x" * size_bytes
    async with Producer(properties={"linger.ms": "5", **properties, **_acks(acks)}) as producer:
        started = time.perf_counter()
        with progress(records, "writing") as bar:
            for number in range(records):
                await producer.send(topic, value)
                if number % _STEP == _STEP - 1:
                    bar.update(_STEP)
            await producer.flush()
            bar.update(records % _STEP)
        return time.perf_counter() - started


async def _read(properties: dict[str, str], topic: str, records: int) -> float:
    from ottla.client.consumer import Consumer

    async with Consumer(properties={**properties, "enable.auto.commit": "false"}) as consumer:
        partitions = await consumer.partitions_for(topic)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        started = time.perf_counter()
        count = 0
        with progress(records, "reading") as bar:
            while count < records:
                found = len(await consumer.poll(timeout_ms=1000))
                count += found
                bar.update(found)
        return time.perf_counter() - started


async def _latencies(properties: dict[str, str], topic: str, size_bytes: int, acks: str) -> list[float]:
    """Write records one by one, and return how long each took, in order of duration."""
    import asyncio

    from ottla.client.producer import Producer

    took_ms = []
    async with Producer(properties={**properties, **_acks(acks), "linger.ms": "0"}) as producer:
        for _ in range(_LATENCIES):
            started = time.perf_counter()
            await (await producer.send(topic, b"x" * size_bytes))
            took_ms.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(0)
    return sorted(took_ms)


def _acks(acks: str) -> dict[str, str]:
    return {"acks": acks, "enable.idempotence": "true" if acks == "all" else "false"}

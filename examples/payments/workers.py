"""Workers for the alerts: each alert is looked at by one of them, with retries and dead letters.

    python -m examples.payments.workers 127.0.0.1:9092

The topic `alerts` is used as a queue: any number of workers share its records, however few partitions it has.
An alert that cannot be handled now goes back to the queue. One that can never be handled, or that failed too
often, goes to the topic `dlq.alerts`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ottla import AcknowledgeType, Admin, ResourceType, ShareConsumer
from ottla.errors import BrokerError

GROUP: Final = "alert-workers"
DEAD: Final = "dlq.alerts"
GROUP_CONFIGS: Final = {
    "share.auto.offset.reset": "earliest",
    "share.delivery.count.limit": "3",
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.copy.record.enable": "true",
}


class Unusable(Exception):
    """An alert that nobody can handle, however often it is tried."""


Handle = Callable[[dict[str, Any]], Awaitable[None]]


async def prepare(bootstrap: str) -> None:
    """Make the topic of dead letters, and set up the group. It does no harm to do this again."""
    async with Admin(bootstrap) as admin:
        try:
            await admin.topics.create(
                DEAD, partitions=1, configs={"errors.deadletterqueue.group.enable": "true"}
            )
        except BrokerError as error:
            if error.error_code.name != "TOPIC_ALREADY_EXISTS":
                raise
        await admin.configs.alter(ResourceType.GROUP, GROUP, GROUP_CONFIGS)


async def work(bootstrap: str, handle: Handle, stop: asyncio.Event) -> None:
    """Handle alerts until `stop` is set. What was begun is acknowledged before this returns."""
    async with ShareConsumer(
        bootstrap,
        group_id=GROUP,
        share_acknowledgement_mode="explicit",
        share_acquire_mode="record_limit",
        max_poll_records=10,
    ) as consumer:
        consumer.subscribe(["alerts"])
        while not stop.is_set():
            for record in await consumer.poll(timeout_ms=200):
                consumer.acknowledge(record, await _outcome(handle, record.value))
            await consumer.commit()


async def _outcome(handle: Handle, value: bytes) -> AcknowledgeType:
    try:
        await handle(json.loads(value))
    except (Unusable, ValueError):
        return AcknowledgeType.REJECT
    except Exception:
        # Whatever it is, somebody may have more luck later.
        return AcknowledgeType.RELEASE
    return AcknowledgeType.ACCEPT


async def _print(alert: dict[str, Any]) -> None:
    print(f"{alert['id']}: {alert['reasons']}", flush=True)


async def main(bootstrap: str) -> None:
    """Run three workers until Ctrl-C."""
    await prepare(bootstrap)
    stop = asyncio.Event()
    await asyncio.gather(*(work(bootstrap, _print, stop) for _ in range(3)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

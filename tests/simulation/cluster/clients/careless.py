"""Clients that do not care: what they write with acks=1 or acks=0 may be lost, also after it was committed.

Their topics have one in-sync replica at the least, elect a replica that lacks records if no other is left,
and complete segments all the time. So much of what is written here is not synced when the power fails, and
logs differ more often and farther than those of others. What is kept in the end is the same on all replicas,
and all that a log knows follows from it. Nothing else is promised.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from ottla import Admin, Producer
from ottla.client.errors import BrokerError, ClientError
from ottla.wire.error_code import ErrorCode

PLAIN: Final = "careless"
COMPACTED: Final = "careless-latest"
_COMMON: Final = {
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "true",
    "segment.ms": "300",
}
TOPICS: Final = {
    # Nobody syncs it before a segment is complete, so power cuts take most of it.
    PLAIN: {**_COMMON, "ottla.acks.all.sync": "false"},
    COMPACTED: {
        **_COMMON,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    },
}


def is_careless(topic: str) -> bool:
    """Say whether what is written to a topic may be lost."""
    return topic.startswith(PLAIN)


async def create_careless_topics(admin: Admin) -> None:
    """Create what is written to here."""
    for topic, configs in TOPICS.items():
        try:
            await admin.topics.create(topic, partitions=1, configs=configs)
        except BrokerError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


async def write_carelessly(bootstrap: str, rng: Random, is_over: Callable[[], bool]) -> None:
    """Write with few acknowledgements: small values and some of several pages, which a power cut tears."""
    while not is_over():
        # One that numbers its batches is among them. Compaction has to keep the last of these.
        acks = rng.choice(("1", "1", "0", "all"))
        try:
            async with Producer(
                bootstrap,
                acks=acks,
                linger_ms=0,
                delivery_timeout_ms=2_000,
                max_block_ms=2_000,
                request_timeout_ms=1_000,
                retry_backoff_ms=50,
            ) as producer:
                for number in range(rng.randrange(1, 20)):
                    if is_over():
                        return
                    value = None if rng.random() < 0.2 else b"%d" % number * rng.choice((1, 1, 9_000))
                    topic = rng.choice((PLAIN, PLAIN, COMPACTED))
                    await producer.send_and_wait(topic, value, key=b"%d" % (number % 3), partition=0)
                    await asyncio.sleep(rng.uniform(0, 0.03))
        except ClientError:
            await asyncio.sleep(0.1)

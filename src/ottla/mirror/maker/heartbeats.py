"""Heartbeats: a record a second says that a direction is served. Mirrored, they show the way topics come."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.mirror.maker.formats import encode_heartbeat
from ottla.mirror.maker.names import HEARTBEATS
from ottla.mirror.maker.own_topics import make_topic

_logger = logging.getLogger("ottla.mirror")
_PAUSE_S: Final = 5.0


async def beat(
    admin: Admin,
    properties: Mapping[str, str],
    direction: tuple[str, str],
    interval_s: float,
    replication_factor: int | None,
) -> None:
    """Write heartbeats of a direction, from a source to a target, to the cluster of `admin`, without end."""
    while True:
        try:
            await make_topic(admin, HEARTBEATS, 1, replication_factor)
            async with Producer(properties=dict(properties)) as producer:
                while True:
                    now_ms = surroundings.now_ms()
                    key, value = encode_heartbeat(*direction, now_ms)
                    await producer.send(HEARTBEATS, value, key=key, partition=0, timestamp_ms=now_ms)
                    await producer.flush()
                    await asyncio.sleep(interval_s)
        except ClientError as error:
            _logger.warning("cannot write heartbeats of %s to %s: %s", *direction, error)
            await asyncio.sleep(_PAUSE_S)

"""Making copies writable: the source is gone, or is to be left.

What was not copied is lost for the target. It is counted from what the source says, or, if nobody can ask it
any more, from what the mirror saw last.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigResource
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError
from ottla.mirror.following import SOURCE_CONFIG
from ottla.mirror.mirroring import STATUS_TOPIC
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType


@dataclass(frozen=True, slots=True)
class FailedOver:
    """One partition that is writable now. `lost` is None if the end of the source was never seen."""

    where: TopicPartition
    end_offset: int
    lost: int | None
    aborted: int
    """Transactions that were open, and were aborted: their coordinator is in the source."""


class NoMirror(ClientError):
    """A topic that is no mirror."""


async def read_statuses(properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what mirrors said last about themselves, by source."""
    newest: dict[bytes, dict[str, Any]] = {}
    async with Consumer(
        properties={**properties, "allow.auto.create.topics": "false", "auto.offset.reset": "earliest"}
    ) as consumer:
        partitions = await consumer.partitions_for(STATUS_TOPIC)
        if not partitions:
            return []
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any([await consumer.position(where) < ends[where] for where in partitions]):
            for record in await consumer.poll(1000):
                if record.value is not None:
                    newest[record.key] = json.loads(record.value)
    return sorted(newest.values(), key=lambda status: str(status["source"]))


async def mirrored_topics(admin: Admin) -> dict[str, str]:
    """Return the topics of a cluster that are mirrors, with their sources."""
    names = [item.name for item in await admin.topics.list()]
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = await admin.configs.describe_many(resources, keys=(SOURCE_CONFIG,))
    return {
        resource.name: value
        for resource, configs in described.succeeded.items()
        if SOURCE_CONFIG in configs and (value := configs[SOURCE_CONFIG].value)
    }


async def fail_over(
    admin: Admin, topics: Collection[str], statuses: Collection[Mapping[str, Any]]
) -> list[FailedOver]:
    """Make topics writable, all that are mirrors unless some are named. Returns what became of each."""
    mirrors = await mirrored_topics(admin)
    for name in topics:
        if name not in mirrors:
            raise NoMirror(f"topic {name!r} is not a mirror; `ottla mirror status` lists the mirrors")
    chosen = sorted(topics or mirrors)
    for name in chosen:
        await admin.configs.alter(ResourceType.TOPIC, name, {SOURCE_CONFIG: None})
    partitions = [
        where
        for description in (await admin.topics.describe_many(chosen)).check().values()
        for where in description.topic_partitions
    ]
    aborted = await _abort_open(admin, partitions)
    ends = (await admin.offsets.latest(partitions)).check()
    seen = {
        TopicPartition(part["topic"], part["partition"]): part["source_end"]
        for status in statuses
        for part in status["partitions"]
    }
    return [
        FailedOver(
            where,
            ends[where].offset,
            # The markers of aborted transactions are no records of the source.
            max(0, seen[where] - (ends[where].offset - aborted[where])) if seen.get(where, -1) >= 0 else None,
            aborted[where],
        )
        for where in partitions
    ]


async def _abort_open(admin: Admin, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """End the transactions that nobody else will end. Readers of committed records would wait for ever."""
    counts = dict.fromkeys(partitions, 0)
    for where, producers in (await admin.transactions.producers(partitions)).check().items():
        for producer in producers:
            if producer.transaction_start_offset is not None:
                await admin.transactions.abort(where, producer)
                counts[where] += 1
    return counts

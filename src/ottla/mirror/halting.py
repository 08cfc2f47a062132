"""Exact copies that stop until an operator decides: their source is not what they were copied from.

A copy remembers the id of the topic that it is made from, and the partitions whose source has lost what was
copied. Both are configs of the copy. So every mirror knows them, also after a restart, and they are
gone when the copy is deleted. A mirror that went on by itself would append what does not belong there.
"""

from collections.abc import Collection, Mapping
from typing import Final

from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import ClientError
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.config_kinds import ConfigSource, ResourceType

SOURCE_CONFIG: Final = "ottla.mirror.source"
TOPIC_ID_CONFIG: Final = "ottla.mirror.source.topic.id"
HALTED_CONFIG: Final = "ottla.mirror.halted.partitions"
ALL_CONFIGS: Final = (SOURCE_CONFIG, TOPIC_ID_CONFIG, HALTED_CONFIG)

HAS_LOST: Final = "the source has lost records"
WHAT_NOW: Final = (
    "Delete the copy to begin again, fail over to keep it, or let `ottla mirror resume` go on at its end"
)


class NoMirror(ClientError):
    """A topic that is no mirror."""


def reason_of_loss(source: object) -> str:
    """Say why a partition stays stopped whose source ended before its copy."""
    return f"{HAS_LOST} of {source} that were copied. {WHAT_NOW}"


def reason_against_source(name: str, current: Uuid | None, ours: Mapping[str, str]) -> str | None:
    """Say why no partition of a copy goes on. `current` is the id of the topic in the source, if any."""
    if current is None:
        return (
            f"the source has no topic {name!r} any more, or does not show it. "
            "Delete the copy, or fail over to keep it"
        )
    remembered = ours.get(TOPIC_ID_CONFIG)
    if not remembered or current == ZERO_UUID or remembered == str(current):
        return None
    return (
        f"topic {name!r} of the source was deleted and made again: it is not the one that was copied. "
        f"{WHAT_NOW}"
    )


def halted_partitions(ours: Mapping[str, str]) -> frozenset[int]:
    """Return the partitions of a copy that do not go on by themselves."""
    numbers = ours.get(HALTED_CONFIG, "").split(",")
    return frozenset(int(number) for number in numbers if number.strip().isdecimal())


async def halt(target: Admin, copy: str, partition: int) -> None:
    """Keep in the target that a partition has to wait for an operator."""
    await target.configs.alter(ResourceType.TOPIC, copy, append={HALTED_CONFIG: str(partition)})


async def resume(target: Admin, topics: Collection[str]) -> None:
    """Let copies go on at their ends, whatever the source is now."""
    mirrors = await mirrored_topics(target)
    check_mirrors(topics, mirrors)
    for name in topics:
        await target.configs.alter(
            ResourceType.TOPIC, name, dict.fromkeys((TOPIC_ID_CONFIG, HALTED_CONFIG), None)
        )


def check_mirrors(topics: Collection[str], mirrors: Collection[str]) -> None:
    """Refuse names of topics that are no mirrors."""
    for name in topics:
        if name not in mirrors:
            raise NoMirror(f"topic {name!r} is not a mirror; `ottla mirror status` lists the mirrors")


async def mirrored_topics(admin: Admin) -> dict[str, str]:
    """Return the topics of a cluster that are mirrors, with their sources."""
    own = await own_configs(admin, [item.name for item in await admin.topics.list()], (SOURCE_CONFIG,))
    return {name: source for name, configs in own.items() if (source := configs.get(SOURCE_CONFIG))}


async def own_configs(
    admin: Admin, topics: Collection[str], keys: Collection[str] | None = None
) -> dict[str, dict[str, str]]:
    """Return what was set on topics themselves. Topics that are not there are left out."""
    if not topics:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    described = await admin.configs.describe_many(resources, keys=keys)
    return {
        name: {
            key: item.value
            for key, item in configs.items()
            if item.source is ConfigSource.TOPIC and item.value is not None
        }
        for (_, name), configs in described.succeeded.items()
    }

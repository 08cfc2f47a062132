"""One topic: its partitions with offsets and sizes, who reads it, and its configs with what they mean."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ottla.client.admin.configs import Config
from ottla.client.admin.topics import PartitionDescription, TopicDescription
from ottla.client.errors import ClientError
from ottla.console.looks.topics import read_sizes
from ottla.explain.access import Access
from ottla.wire.config_kinds import ConfigSource, ResourceType

_SOURCES = {
    ConfigSource.TOPIC: "set on this topic",
    ConfigSource.DYNAMIC_BROKER: "set on the broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "set on all brokers",
    ConfigSource.STATIC_BROKER: "the file of the broker",
    ConfigSource.DEFAULT: "the default",
    ConfigSource.GROUP: "set on this group",
}


class PartitionLine(NamedTuple):
    """A partition. Offsets and sizes are None where nobody could say them."""

    partition: int
    leader: int | None
    replicas: Sequence[int]
    in_sync: Sequence[int]
    first_offset: int | None
    next_offset: int | None
    size_bytes: int | None

    @property
    def records(self) -> int | None:
        """Offsets from the first to the next one."""
        if self.first_offset is None or self.next_offset is None:
            return None
        return self.next_offset - self.first_offset

    @property
    def missing(self) -> list[int]:
        """The replicas that are not in sync."""
        return [node for node in self.replicas if node not in self.in_sync]


class ConfigLine(NamedTuple):
    """A config, where its value comes from, and what it means."""

    name: str
    value: str | None
    is_set: bool
    is_sensitive: bool
    source: str
    meaning: str | None


@dataclass(frozen=True)
class TopicLook:
    """One topic."""

    description: TopicDescription
    partitions: Sequence[PartitionLine]
    configs: Sequence[ConfigLine]
    configs_trouble: str | None

    @property
    def records(self) -> int | None:
        """Offsets of all partitions."""
        counts = [line.records for line in self.partitions]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all partitions, of one copy each."""
        sizes = [line.size_bytes for line in self.partitions if line.size_bytes is not None]
        return sum(sizes) if sizes else None


async def look_at_topic(access: Access, name: str) -> TopicLook:
    """Read all that a page of a topic shows but for its readers."""
    description = await access.admin.topics.describe(name)
    wheres = description.topic_partitions
    starts, ends, sizes, (configs, trouble) = await asyncio.gather(
        access.admin.offsets.earliest(wheres),
        access.admin.offsets.latest(wheres),
        read_sizes(access, wheres),
        _configs(access, name),
    )
    lines = [
        _partition(
            part,
            starts.succeeded[where].offset if where in starts.succeeded else None,
            ends.succeeded[where].offset if where in ends.succeeded else None,
            sizes.get(where),
        )
        for part, where in zip(description.partitions, wheres, strict=True)
    ]
    return TopicLook(description, lines, configs, trouble)


def _partition(
    part: PartitionDescription, first: int | None, after: int | None, size: int | None
) -> PartitionLine:
    return PartitionLine(
        part.partition,
        part.leader if part.leader >= 0 else None,
        part.replicas,
        part.in_sync_replicas,
        first,
        after,
        size,
    )


async def _configs(access: Access, name: str) -> tuple[list[ConfigLine], str | None]:
    try:
        found = await access.admin.configs.describe(ResourceType.TOPIC, name, documentation=True)
    except ClientError as error:
        # A visitor may see a topic, and not its configs.
        return [], str(error)
    return [config_line(config) for _, config in sorted(found.items())], None


def config_line(config: Config) -> ConfigLine:
    """Return a config as people read it."""
    return ConfigLine(
        config.name,
        None if config.is_sensitive else config.value,
        config.source in (ConfigSource.TOPIC, ConfigSource.GROUP),
        config.is_sensitive,
        _SOURCES.get(config.source, config.source.name.lower().replace("_", " ")),
        _meanings().get(config.name) or config.documentation,
    )


@cache
def _meanings() -> dict[str, str]:
    """Return what configs of topics mean, as the reference says it: brokers may be silent on it."""
    from ottla.metadata.configs.topic import TopicConfig

    return {key.name: key.doc for key in TopicConfig.keys.values()}

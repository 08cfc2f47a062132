"""Links by MirrorMaker 2's properties, so that a file of it can be used as it is.

What MirrorMaker needs for itself (its workers, tasks, other topics) is passed over. A property is looked up
for the direction (`A->B.topics`), then for all (`topics`), as MirrorMaker does.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

from ottla.client.fetching import IsolationLevel
from ottla.client.properties import CommonSettings, property_name
from ottla.client.properties_file import UnusableProperties, usable_properties
from ottla.mirror.link import Link, UnusableLink
from ottla.mirror.maker.names import Names
from ottla.mirror.maker.options import (
    DEFAULT_CONFIGS_EXCLUDE,
    DEFAULT_GROUPS_EXCLUDE,
    DEFAULT_TOPICS_EXCLUDE,
    MakerOptions,
)

_POLICIES: Final = "org.apache.kafka.connect.mirror."
_IDENTITY: Final = "IdentityReplicationPolicy"
_DEFAULT: Final = "DefaultReplicationPolicy"


def read_links(properties: Mapping[str, str], *, is_exact: bool = False) -> list[Link]:
    """Return the links that are enabled. Raises `UnusableLink` where a file has none."""
    aliases = _items(properties.get("clusters", ""))
    links = [
        _Direction(properties, source, target).link(is_exact)
        for source in aliases
        for target in aliases
        if source != target and _Direction(properties, source, target).is_enabled
    ]
    if not links:
        raise UnusableLink("no direction is enabled: set `clusters=A,B` and `A->B.enabled=true`")
    return links


class _Direction:
    """What a file says about one direction."""

    def __init__(self, properties: Mapping[str, str], source: str, target: str) -> None:
        self._properties = properties
        self._source = source
        self._target = target

    @property
    def is_enabled(self) -> bool:
        return self._properties.get(f"{self._source}->{self._target}.enabled", "false").lower() == "true"

    def link(self, is_exact: bool) -> Link:
        names = self._names()
        refreshed_s = [self._seconds("refresh.topics", 600)]
        if not is_exact:
            refreshed_s += [self._seconds("sync.topic.configs", 600), self._seconds("sync.topic.acls", 600)]
        return Link(
            source_name=self._source,
            source=self._client(self._source),
            target=self._client(self._target),
            target_alias=self._target,
            topics=self._pattern("topics", ".*"),
            groups=self._pattern("groups", ".*"),
            prefix="" if names.is_identity else self._source + names.separator,
            replication_factor=int(self._text("replication.factor", "-1")),
            refresh_s=min(refreshed_s),
            maker=None if is_exact else self._options(names),
        )

    def _names(self) -> Names:
        policy = self._text("replication.policy.class", _DEFAULT).removeprefix(_POLICIES)
        if policy not in (_DEFAULT, _IDENTITY):
            raise UnusableLink(
                f"replication.policy.class is {policy}, which is not known here: use {_POLICIES}{_DEFAULT} "
                f"or {_POLICIES}{_IDENTITY}"
            )
        separator = self._text("replication.policy.separator", ".")
        if not separator:
            raise UnusableLink("replication.policy.separator is empty: give one, such as `.`")
        for_internal = self._is("replication.policy.internal.topic.separator.enabled", True)
        return Names(
            self._source, self._target, separator, separator if for_internal else ".", policy == _IDENTITY
        )

    def _options(self, names: Names) -> MakerOptions:
        back = _Direction(self._properties, self._target, self._source)
        has_checkpoints = self._is("emit.checkpoints.enabled", True)
        return MakerOptions(
            names=names,
            topics_exclude=self._pattern("topics.exclude", DEFAULT_TOPICS_EXCLUDE),
            groups_exclude=self._pattern("groups.exclude", DEFAULT_GROUPS_EXCLUDE),
            configs_exclude=self._pattern("config.properties.exclude", DEFAULT_CONFIGS_EXCLUDE),
            returning_topics=back._pattern("topics", ".*") if back.is_enabled else None,
            isolation=self._isolation(),
            from_latest=self._of_consumer("auto.offset.reset", "earliest") == "latest",
            syncs_topic_configs=self._is("sync.topic.configs.enabled", True),
            syncs_topic_acls=self._is("sync.topic.acls.enabled", True),
            mirrors_heartbeats=self._is("heartbeats.replication.enabled", True),
            emits_offset_syncs=self._is("emit.offset-syncs.enabled", True),
            offset_syncs_in_target=self._text("offset-syncs.topic.location", "source") == "target",
            heartbeats_s=self._emitted_s("emit.heartbeats", 1),
            returns_heartbeats=not back.is_enabled and back._emitted_s("emit.heartbeats", 1) is not None,
            checkpoints_s=self._emitted_s("emit.checkpoints", 60),
            group_offsets_s=self._seconds("sync.group.offsets", 60)
            if has_checkpoints and self._is("sync.group.offsets.enabled", False)
            else None,
            offsets_partitions=int(self._text("offset.storage.partitions", "25")),
            internal_replication_factor=self._factor("checkpoints.topic.replication.factor"),
            offsets_replication_factor=self._factor("offset.storage.replication.factor"),
        )

    def _isolation(self) -> IsolationLevel:
        # MirrorMaker 2 copies aborted records unless it is configured otherwise. Here it is the other way
        # round.
        level = self._of_consumer("isolation.level", "read_committed")
        return IsolationLevel[level.upper()]

    def _of_consumer(self, name: str, default: str) -> str:
        """Return a property of the consumer that reads the source."""
        keys = (
            f"{self._source}->{self._target}.consumer.{name}",
            f"{self._source}.consumer.{name}",
            f"consumer.{name}",
        )
        return next((self._properties[key] for key in keys if key in self._properties), default)

    def _text(self, name: str, default: str) -> str:
        direct = f"{self._source}->{self._target}.{name}"
        return self._properties.get(direct, self._properties.get(name, default)).strip()

    def _is(self, name: str, default: bool) -> bool:
        return self._text(name, str(default)).lower() == "true"

    def _seconds(self, name: str, default: float) -> float:
        return float(self._text(f"{name}.interval.seconds", str(default)))

    def _emitted_s(self, name: str, default: float) -> float | None:
        """Return how often something is written, or None if it is not."""
        return self._seconds(name, default) if self._is(f"{name}.enabled", True) else None

    def _factor(self, name: str) -> int | None:
        found = int(self._text(name, "-1"))
        return found if found > 0 else None

    def _pattern(self, name: str, default: str) -> str:
        """Return one pattern for a list of them. A default is a pattern already."""
        found = self._text(name, "")
        return "|".join(f"(?:{part})" for part in _items(found)) if found else default

    def _client(self, alias: str) -> dict[str, str]:
        """Return how a cluster is reached: what the file says of it, then what it says of all."""
        known = {property_name(item) for item in dataclasses.fields(CommonSettings)}
        given = {
            name: value
            for name, value in self._properties.items()
            if name.startswith(("ssl.", "sasl.", "security."))
        }
        prefix = f"{alias}."
        given |= {
            name.removeprefix(prefix): value
            for name, value in self._properties.items()
            if name.startswith(prefix)
        }
        if "bootstrap.servers" not in given:
            raise UnusableLink(f"{alias}.bootstrap.servers is missing")
        try:
            return usable_properties(given, known)
        except UnusableProperties as error:
            raise UnusableLink(f"{alias}: {error}") from error


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

"""What is mirrored: from where to where, which topics and groups. A value."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ottla.mirror.maker.options import MakerOptions


class UnusableLink(ValueError):
    """A link that cannot work, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction between two clusters. The patterns match whole names."""

    source_name: str
    source: Mapping[str, str] = field(repr=False)
    """How to reach the source, by Kafka's property names."""
    target: Mapping[str, str] = field(repr=False)
    target_alias: str = ""
    """What the target is called, if several links could be confused without it."""
    topics: str = ".*"
    groups: str = ".*"
    prefix: str = ""
    """Put before the names of topics in the target."""
    replication_factor: int = -1
    refresh_s: float = 5.0
    """How often topics, configs, access rules and groups are looked at."""
    maker: MakerOptions | None = None
    """How it works in MirrorMaker 2's way. Without it, copies are exact."""

    def __post_init__(self) -> None:
        for name, pattern in self._patterns():
            try:
                re.compile(pattern)
            except re.error as error:
                raise UnusableLink(f"{name} is not a regular expression: {pattern!r} ({error})") from error
        if not self.source_name:
            raise UnusableLink("the source has no name: give one, such as the name of its data centre")

    def _patterns(self) -> Iterator[tuple[str, str]]:
        yield from (("topics", self.topics), ("groups", self.groups))
        if self.maker is not None:
            yield "topics.exclude", self.maker.topics_exclude
            yield "groups.exclude", self.maker.groups_exclude
            yield "config.properties.exclude", self.maker.configs_exclude

    def wants_topic(self, name: str) -> bool:
        """Say whether a topic of the source is mirrored."""
        if self.maker is not None:
            return self.maker.wants_topic(name, self.topics)
        return not name.startswith("__") and re.fullmatch(self.topics, name) is not None

    def wants_group(self, name: str) -> bool:
        """Say whether the offsets of a group of the source follow."""
        if self.maker is not None and re.fullmatch(self.maker.groups_exclude, name):
            return False
        return re.fullmatch(self.groups, name) is not None

    def target_name(self, topic: str) -> str:
        """Return the name of the copy of a topic."""
        return self.prefix + topic if self.maker is None else self.maker.names.remote(topic)

"""What is mirrored: from where to where, which topics and groups. A value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


class UnusableLink(ValueError):
    """A link that cannot work, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction between two clusters. The patterns match whole names."""

    source_name: str
    source: Mapping[str, str] = field(repr=False)
    """How to reach the source, by Kafka's property names."""
    target: Mapping[str, str] = field(repr=False)
    topics: str = ".*"
    groups: str = ".*"
    prefix: str = ""
    """Put before the names of topics in the target."""
    replication_factor: int = -1
    refresh_s: float = 5.0
    """How often topics, configs, access rules and groups are looked at."""

    def __post_init__(self) -> None:
        for name, pattern in (("topics", self.topics), ("groups", self.groups)):
            try:
                re.compile(pattern)
            except re.error as error:
                raise UnusableLink(f"{name} is no regular expression: {pattern!r} ({error})") from error
        if not self.source_name:
            raise UnusableLink("the source has no name: give one, such as the name of its data centre")

    def wants_topic(self, name: str) -> bool:
        """Say whether a topic of the source is mirrored."""
        return not name.startswith("__") and re.fullmatch(self.topics, name) is not None

    def wants_group(self, name: str) -> bool:
        """Say whether the offsets of a group of the source follow."""
        return re.fullmatch(self.groups, name) is not None

    def target_name(self, topic: str) -> str:
        """Return the name of the copy of a topic."""
        return self.prefix + topic

"""What MirrorMaker 2 calls things: remote topics by its two replication policies, and its own topics.

DefaultReplicationPolicy puts the alias of the source before a name, so a name tells the way that a topic has
come, and a topic is never sent back to where it came from. IdentityReplicationPolicy keeps names, except
those of heartbeats.
"""

from dataclasses import dataclass
from typing import Final

HEARTBEATS: Final = "heartbeats"


@dataclass(frozen=True, slots=True)
class Names:
    """The names in one direction, from `source` to `target`."""

    source: str
    target: str
    separator: str = "."
    internal_separator: str = "."
    is_identity: bool = False

    def remote(self, topic: str) -> str:
        """Return the name in the target of a topic of the source."""
        if self.is_identity and not topic.endswith(HEARTBEATS):
            return topic
        return f"{self.source}{self.separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """Return the alias of the cluster that a topic came from, as its name has it."""
        if self.is_identity and not topic.endswith(HEARTBEATS):
            return self.source
        return self._first_part(topic)

    def upstream_of(self, topic: str) -> str | None:
        """Return what a topic is called in the cluster that it came from."""
        if self.is_identity and not topic.endswith(HEARTBEATS):
            return topic
        first = self._first_part(topic)
        return None if first is None else topic[len(first) + len(self.separator) :]

    def is_cycle(self, topic: str) -> bool:
        """Say whether a topic has been in the target already."""
        while (source := self.source_of(topic)) is not None:
            if source == self.target:
                return True
            upstream = self.upstream_of(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False

    def is_heartbeats(self, topic: str) -> bool:
        """Say whether a topic has heartbeats, of whichever cluster."""
        while (upstream := self.upstream_of(topic)) is not None and upstream != topic:
            topic = upstream
        return topic == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Say whether a topic is Kafka's or MirrorMaker's own."""
        suffix = f"{self.internal_separator}internal"
        return (
            topic.startswith(("__", "."))
            or (topic.startswith("mm2") and topic.endswith(suffix))
            or topic.endswith(f"{self.internal_separator}checkpoints{suffix}")
        )

    def offset_syncs(self, other: str) -> str:
        """Return where offset syncs lie in a cluster, `other` being the alias of the other one."""
        return self._internal(f"mm2-offset-syncs{self.internal_separator}{other}")

    @property
    def checkpoints(self) -> str:
        """Where checkpoints lie in the target."""
        return self._internal(f"{self.source}{self.internal_separator}checkpoints")

    @property
    def source_offsets(self) -> str:
        """Where positions in the source lie in the target. The separator does not change it."""
        return f"mm2-offsets.{self.source}.internal"

    def _internal(self, name: str) -> str:
        return f"{name}{self.internal_separator}internal"

    def _first_part(self, topic: str) -> str | None:
        # As Java splits: what is empty at the end does not count.
        first, separator, rest = topic.partition(self.separator)
        return first if separator and rest.replace(self.separator, "") else None

"""How a link works in MirrorMaker 2's way. Values, by what its properties say."""

import re
from dataclasses import dataclass
from typing import Final

from ottla.client.fetching import IsolationLevel
from ottla.mirror.maker.names import Names

DEFAULT_TOPICS_EXCLUDE: Final = r"mm2.*\.internal|.*\.replica|__.*"
DEFAULT_GROUPS_EXCLUDE: Final = r"console-consumer-.*|connect-.*|__.*"
DEFAULT_CONFIGS_EXCLUDE: Final = "|".join(
    (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    )
)


@dataclass(frozen=True, kw_only=True)
class MakerOptions:
    """What MirrorMaker 2 knows beyond topics, groups and names of clusters. Patterns match whole names."""

    names: Names
    topics_exclude: str = DEFAULT_TOPICS_EXCLUDE
    groups_exclude: str = DEFAULT_GROUPS_EXCLUDE
    configs_exclude: str = DEFAULT_CONFIGS_EXCLUDE
    returning_topics: str | None = None
    """With names that stay, the topics that the other direction mirrors: sent back, they would go round."""
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    from_latest: bool = False
    """Begin with what comes, where nothing was copied yet."""
    syncs_topic_configs: bool = True
    syncs_topic_acls: bool = True
    mirrors_heartbeats: bool = True
    emits_offset_syncs: bool = True
    offset_syncs_in_target: bool = False
    heartbeats_s: float | None = 1.0
    """How often heartbeats are written, or None for never."""
    returns_heartbeats: bool = True
    """Write heartbeats into the source as well. Mirrored, they show the way that topics come."""
    checkpoints_s: float | None = 60.0
    group_offsets_s: float | None = None
    """How often groups of the target without members get their translated offsets, or None for never."""
    offsets_partitions: int = 25
    internal_replication_factor: int | None = None
    offsets_replication_factor: int | None = None

    def wants_topic(self, name: str, pattern: str) -> bool:
        """Say whether a topic of the source is mirrored. A topic never goes back to where it has been."""
        wanted = re.fullmatch(pattern, name) and not re.fullmatch(self.topics_exclude, name)
        return bool(
            (wanted or (self.mirrors_heartbeats and self.names.is_heartbeats(name)))
            and not self.names.is_internal(name)
            and not self.names.is_cycle(name)
        )

    def goes_round(self, name: str) -> bool:
        """Say whether the other direction would send the records of a topic back, without end."""
        return (
            self.names.is_identity
            and self.returning_topics is not None
            and not self.names.is_heartbeats(name)
            and re.fullmatch(self.returning_topics, name) is not None
        )

    @property
    def offset_syncs_topic(self) -> str:
        """Where offset syncs lie, in the source or in the target."""
        names = self.names
        return names.offset_syncs(names.source if self.offset_syncs_in_target else names.target)

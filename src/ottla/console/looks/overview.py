"""The cluster at a glance: brokers, partitions that are in trouble, groups by their states."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.cluster import ClusterDescription
from ottla.console.looks.groups import GroupsSeen
from ottla.console.looks.topics import TopicLine


@dataclass(frozen=True)
class Totals:
    """Figures over all topics."""

    topics: int
    internal: int
    partitions: int
    leaderless: int
    short: int

    @property
    def is_fine(self) -> bool:
        """Whether all partitions have their leader and their replicas."""
        return not self.leaderless and not self.short


def totals_of(lines: Mapping[str, TopicLine]) -> Totals:
    """Add up what the list of topics says."""
    return Totals(
        sum(not line.is_internal for line in lines.values()),
        sum(line.is_internal for line in lines.values()),
        sum(line.partitions for line in lines.values()),
        sum(line.leaderless for line in lines.values()),
        sum(line.short for line in lines.values()),
    )


def group_counts(seen: GroupsSeen) -> list[tuple[str, str, int]]:
    """Return how many groups there are of each kind and state."""
    counts = Counter((group.type or "classic", group.state or "unknown") for group in seen.listed.values())
    return [(kind, state, count) for (kind, state), count in sorted(counts.items())]


def fenced(cluster: ClusterDescription) -> int:
    """Return how many brokers are registered, but do not serve."""
    return sum(broker.is_fenced for broker in cluster.brokers)

"""What the node's configuration says about the share coordinator."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """Kafka's configs of the share coordinator, with Kafka's defaults."""

    updates_per_snapshot: int = 500
    prune_interval_ms: int = 300_000
    cold_snapshot_interval_ms: int = 300_000

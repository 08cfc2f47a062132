"""What the node's configuration says about groups."""

from dataclasses import dataclass
from typing import NamedTuple


class ConsumerIntervals(NamedTuple):
    """The times of a consumer group, which each group may set for itself."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class StreamsIntervals(NamedTuple):
    """The times of a streams group and its copies of tasks, which each group may set for itself."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    standby_replicas: int = 0


class ShareIntervals(NamedTuple):
    """The times of a share group, which each group may set for itself."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's group configs, as far as the coordinator acts on them, with Kafka's defaults."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    classic_group_size_max: int = 2_147_483_647
    new_member_join_timeout_ms: int = 300_000
    offset_metadata_bytes_max: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    consumer_group_size_max: int = 2_147_483_647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The assignors that members may ask for; the first is used when nobody asks."""
    regex_refresh_interval_ms: int = 600_000
    may_upgrade: bool = True
    """Whether a classic group becomes a consumer group when a member of the new protocol joins it."""
    may_downgrade: bool = True
    """Whether a consumer group becomes a classic group when its last member of the new protocol leaves."""
    offsets_retention_check_interval_ms: int = 600_000
    streams_group_size_max: int = 2_147_483_647
    share_group_size_max: int = 200
    share_initialize_retry_interval_ms: int = 30_000
    """After how long the state of partitions is asked for again."""

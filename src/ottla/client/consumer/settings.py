"""The consumer's properties."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.consumer.assignors import ASSIGNORS, Assignor
from ottla.client.fetching import FetchLimits, IsolationLevel
from ottla.client.properties import LONG_MAX, CommonSettings, InvalidProperty, prop

# The strategies by the names that Java's properties files have for them.
_JAVA_NAMES: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
# What only one of the protocols has, and what to do with the other.
_OF_CLASSIC_GROUPS: Final = {
    "session_timeout_ms": "set consumer.session.timeout.ms for the group on the broker",
    "heartbeat_interval_ms": "set consumer.heartbeat.interval.ms for the group on the broker",
    "partition_assignment_strategy": "set group.remote.assignor",
}
_OF_CONSUMER_GROUPS: Final = {"group_remote_assignor": "set partition.assignment.strategy"}
# What only a member of a group has.
_OF_MEMBERS: Final = (
    *_OF_CLASSIC_GROUPS,
    *_OF_CONSUMER_GROUPS,
    "group_protocol",
    "max_poll_interval_ms",
    "auto_commit_interval_ms",
)
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(CommonSettings):
    """Kafka's consumer properties, as far as this client has them."""

    group_id: str | None = prop("The consumer group. Its members share the partitions.", None)
    group_instance_id: str | None = prop(
        "A name that stays the same when this member restarts. A quick restart then moves no partitions.",
        None,
    )
    group_protocol: str = prop(
        "The group protocol: classic, or consumer (KIP-848), in which the broker assigns the partitions.",
        "classic",
        choices=("classic", "consumer"),
    )
    group_remote_assignor: str | None = prop("The assignor on the broker: uniform or range.", None)
    partition_assignment_strategy: tuple[str, ...] = prop(
        "The assignors of a classic group, in order of preference: range, roundrobin, sticky, "
        "cooperative-sticky.",
        ("range", "cooperative-sticky"),
    )
    session_timeout_ms: int = prop(
        "A member that sends no heartbeat for this long is removed from the group.", 45_000, low=1
    )
    heartbeat_interval_ms: int = prop("The time between heartbeats.", 3_000, low=1)
    max_poll_interval_ms: int = prop(
        "A member that does not poll for this long leaves the group.", 300_000, low=1
    )
    max_poll_records: int = prop("The maximum number of records that one call returns.", 500, low=1)
    enable_auto_commit: bool = prop("Whether positions are committed automatically.", True)
    auto_commit_interval_ms: int = prop("The time between automatic commits.", 5_000, low=0)
    auto_offset_reset: str = prop(
        "Where to start without a committed offset: earliest, latest, none, or by_duration:PT24H.", "latest"
    )
    isolation_level: str = prop(
        "Whether records of open and aborted transactions are returned.",
        "read_uncommitted",
        choices=("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes: int = prop("A broker answers a fetch when it has this many bytes.", 1, low=0)
    fetch_max_wait_ms: int = prop(
        "A broker answers a fetch after this time even if it has fewer bytes.", 500, low=0
    )
    fetch_max_bytes: int = prop("The maximum number of bytes in one response.", 52_428_800, low=1)
    max_partition_fetch_bytes: int = prop(
        "The maximum number of bytes of one partition in one response.", 1_048_576, low=1
    )
    fetch_buffer_bytes: int = prop(
        "Fetching pauses while this many bytes wait to be polled. (Specific to Ottla.)",
        67_108_864,
        low=1,
        high=LONG_MAX,
    )
    check_crcs: bool = prop("Whether the checksum of every batch is checked.", True)
    client_rack: str = prop(
        "The rack of this client. It is sent to the group, and records come from a replica in this rack, if "
        "the brokers are set up for that.",
        "",
    )
    allow_auto_create_topics: bool = prop("Whether subscribing may create a topic.", True)
    exclude_internal_topics: bool = prop("Whether a pattern excludes internal topics.", True)
    default_api_timeout_ms: int = prop("How long calls that wait for brokers may take.", 60_000, low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.partition_assignment_strategy if name not in ASSIGNORS]
        if unknown:
            names = tuple(_JAVA_NAMES.get(name, name) for name in self.partition_assignment_strategy)
            object.__setattr__(self, "partition_assignment_strategy", names)
            unknown = [name for name in names if name not in ASSIGNORS]
        if unknown or not self.partition_assignment_strategy:
            raise InvalidProperty(
                f"partition.assignment.strategy has the unknown {', '.join(unknown)}: use "
                f"{', '.join(ASSIGNORS)}"
            )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidProperty("heartbeat.interval.ms must be less than session.timeout.ms")
        if self.group_instance_id is not None and self.group_id is None:
            raise InvalidProperty("group.instance.id needs a group.id")
        self.reset_policy  # noqa: B018 - reading it checks it

    @classmethod
    def _check_given(cls, values: Mapping[str, Any]) -> None:
        """Refuse what only the other protocol has, as Kafka's consumer does."""
        protocol = values.get("group_protocol", "classic")
        for field, instead in (_OF_CLASSIC_GROUPS if protocol == "consumer" else _OF_CONSUMER_GROUPS).items():
            if values.get(field) is not None:
                name = field.replace("_", ".")
                raise InvalidProperty(f"{name} has no effect with group.protocol={protocol}: {instead}")
        if values.get("enable_auto_commit") and values.get("group_id") is None:
            raise InvalidProperty("enable.auto.commit needs a group.id: without one, nothing is committed")
        super()._check_given(values)

    @classmethod
    def _without_effect(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from super()._without_effect(values)
        if values.get("group_id") is None:
            yield from ((name.replace("_", "."), "no group.id") for name in _OF_MEMBERS)
        elif values.get("enable_auto_commit") is False:
            yield "auto.commit.interval.ms", "enable.auto.commit=false"

    @property
    def assignors(self) -> tuple[Assignor, ...]:
        """Return the strategies in order of preference."""
        return tuple(ASSIGNORS[name] for name in self.partition_assignment_strategy)

    @property
    def isolation(self) -> IsolationLevel:
        """Return the isolation level as it travels."""
        return IsolationLevel[self.isolation_level.upper()]

    @property
    def limits(self) -> FetchLimits:
        """Return how much a fetch may bring."""
        return FetchLimits(
            self.fetch_max_bytes, self.max_partition_fetch_bytes, self.fetch_min_bytes, self.fetch_max_wait_ms
        )

    @property
    def reset_policy(self) -> str | int:
        """Return earliest, latest or none, or how many milliseconds to go back."""
        policy = self.auto_offset_reset
        if policy in ("earliest", "latest", "none"):
            return policy
        kind, _, text = policy.partition(":")
        if kind == "by_duration" and text and (found := _DURATION.fullmatch(text)) and found[0][1:]:
            parts = {name: float(value) for name, value in found.groupdict().items() if value}
            return int(
                parts.get("days", 0) * 86_400_000
                + parts.get("hours", 0) * 3_600_000
                + parts.get("minutes", 0) * 60_000
                + parts.get("seconds", 0) * 1_000
            )
        raise InvalidProperty(
            f"auto.offset.reset is {policy!r}: it must be earliest, latest, none, or by_duration:PnDTnHnMn.nS"
        )

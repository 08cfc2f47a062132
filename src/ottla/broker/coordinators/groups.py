"""The group coordinator on this node, and what it asks of the node."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.broker.coordinators.hosted_coordinator import HostedCoordinator
from ottla.broker.coordinators.internal_topics import InternalTopics
from ottla.broker.coordinators.known_topics import KnownTopics
from ottla.broker.coordinators.standing import Standing
from ottla.broker.deferred import Deferred
from ottla.coordination.group.consumer.assignors import find_assignor_name
from ottla.coordination.group.coordinator import GroupCoordinator
from ottla.coordination.group.environment import Topics
from ottla.coordination.group.kinds import GroupKind
from ottla.coordination.group.settings import (
    ConsumerIntervals,
    GroupSettings,
    ShareIntervals,
    StreamsIntervals,
)
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from ottla.metadata.image import MetadataImage
from ottla.records.attributes import Codec
from ottla.wire.coordinator_records.framing import GROUP_RECORDS
from ottla.wire.error_code import ErrorCode
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ottla.coordination.group.share.persister import StatePersister

TOPIC: Final = GROUP_RECORDS.topic
_MINUTE_MS: Final = 60_000
_GROUP_VERSION_WITH_CONSUMER_GROUPS: Final = 1
_STREAMS_VERSION_WITH_GROUPS: Final = 1
_SHARE_VERSION_WITH_SHARE_GROUPS: Final = 1
_INTERVALS_MAX: Final = 10_000


class Groups(HostedCoordinator[GroupCoordinator]):
    """The group coordinator of a node. Implements `GroupHost`."""

    records = GROUP_RECORDS

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self.topics: Topics = KnownTopics(broker.metadata)
        self._intervals: dict[str, ConsumerIntervals] = {}
        self._share_intervals: dict[str, ShareIntervals] = {}
        self._streams_intervals: dict[str, StreamsIntervals] = {}
        self._configured_protocols = frozenset(
            name.lower() for name in broker.config.group_coordinator_rebalance_protocols
        )
        self.internal_topics = InternalTopics(broker.clock)
        self._standing = Standing(broker, scheduler)
        super().__init__(broker, scheduler)

    def _make_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(group_settings(self._broker.config), self)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Follow who leads what, tell groups of their topics, let go of offsets of topics that are gone."""
        if delta.configs:
            self._intervals.clear()
            self._streams_intervals.clear()
            self._share_intervals.clear()
        super().metadata_changed(image, delta)
        if not delta.topics:
            return
        changed = {change.topic for change in delta.topics}
        self._broker.metadata.act(self.coordinator.topics_changed, changed, bool(delta.topics.created))
        deleted = [(topic.name, topic.id) for topic in delta.topics.deleted.values() if topic.name != TOPIC]
        if deleted:
            self.coordinator.topics_deleted(deleted)

    def metrics(self) -> "Iterable[Metric]":
        """Return the metrics of groups."""
        # Imported only here: a node without Prometheus does without it.
        from ottla.broker.coordinators.group_metrics import group_metrics

        return group_metrics(self.coordinator, self._broker.partitions)

    def confirm(self, group_id: str) -> Deferred[bool]:
        """Say whether no other node can have become the coordinator of a group by now."""
        number = self.coordinator.shards.partition_of(group_id)
        partition = None if number is None else self._broker.partitions.find(TOPIC, number)
        # Without it, the coordinator itself knows that the group is not here.
        return Deferred.of(True) if partition is None else self._standing.confirm(partition)

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether members may use the new protocol: it is configured, and the cluster has agreed on it."""
        return (
            GroupKind.CONSUMER.value in self._configured_protocols
            and self._broker.image.features.get(GROUP_VERSION, 0) >= _GROUP_VERSION_WITH_CONSUMER_GROUPS
        )

    @property
    def serves_streams_protocol(self) -> bool:
        """Whether there may be streams groups: they are configured, and the cluster has agreed on them."""
        return (
            GroupKind.STREAMS.value in self._configured_protocols
            and self._broker.image.features.get(STREAMS_VERSION, 0) >= _STREAMS_VERSION_WITH_GROUPS
        )

    @property
    def serves_share_protocol(self) -> bool:
        """Whether there may be share groups: the cluster has agreed on it."""
        return self._broker.image.features.get(SHARE_VERSION, 0) >= _SHARE_VERSION_WITH_SHARE_GROUPS

    # What the coordinator asks for

    @property
    def share_state(self) -> "StatePersister":
        """The share coordinators of the cluster."""
        return self._broker.share_persister

    def new_member_suffix(self) -> str:
        """Return a random id, for a new member."""
        return str(UUID(bytes=self._broker.random.randbytes(16), version=4))

    def consumer_intervals(self, group_id: str) -> ConsumerIntervals:
        """Return the times of a consumer group: its own where it has set them, otherwise the node's."""
        # Each heartbeat asks three times. To read a group's own configs takes 30 us, so the outcome is kept.
        known = self._intervals.get(group_id)
        if known is None:
            group_config = self._broker.configs.group(self._broker.image.group_config(group_id))
            if len(self._intervals) >= _INTERVALS_MAX:
                self._intervals.clear()
            known = self._intervals[group_id] = ConsumerIntervals(
                group_config.consumer_session_timeout_ms,
                group_config.consumer_heartbeat_interval_ms,
                group_config.consumer_assignment_interval_ms,
            )
        return known

    def streams_intervals(self, group_id: str) -> StreamsIntervals:
        """Return the times of a streams group: its own where it has set them, otherwise the node's."""
        known = self._streams_intervals.get(group_id)
        if known is None:
            group_config = self._broker.configs.group(self._broker.image.group_config(group_id))
            if len(self._streams_intervals) >= _INTERVALS_MAX:
                self._streams_intervals.clear()
            known = self._streams_intervals[group_id] = StreamsIntervals(
                group_config.streams_session_timeout_ms,
                group_config.streams_heartbeat_interval_ms,
                group_config.streams_assignment_interval_ms,
                group_config.streams_initial_rebalance_delay_ms,
                group_config.streams_num_standby_replicas,
            )
        return known

    def share_intervals(self, group_id: str) -> ShareIntervals:
        """Return the times of a share group: its own where it has set them, otherwise the node's."""
        known = self._share_intervals.get(group_id)
        if known is None:
            group_config = self._broker.configs.group(self._broker.image.group_config(group_id))
            if len(self._share_intervals) >= _INTERVALS_MAX:
                self._share_intervals.clear()
            known = self._share_intervals[group_id] = ShareIntervals(
                group_config.share_session_timeout_ms,
                group_config.share_heartbeat_interval_ms,
                group_config.share_assignment_interval_ms,
            )
        return known

    def member_lost(self, group_id: str, member_id: str, why: str, after_ms: int) -> None:
        """Write to the journal that a member is about to be removed from its group."""
        shard = self.coordinator.shards.find(group_id)
        if isinstance(shard, ErrorCode):
            return
        group: Any = shard.state.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if member is not None:
            self._broker.journal.member_lost(group_id, member_id, member.client_id, why, after_ms)

    def _codec(self) -> Codec:
        return Codec(self._broker.config.offsets_topic_compression_codec)


def group_settings(config: NodeConfig) -> GroupSettings:
    """Return what the configuration says about groups."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        classic_group_size_max=config.group_max_size,
        offset_metadata_bytes_max=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * _MINUTE_MS,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        consumer_group_size_max=config.group_consumer_max_size,
        consumer_assignors=_assignors(config.group_consumer_assignors),
        regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        streams_group_size_max=config.group_streams_max_size,
        share_group_size_max=config.group_share_max_size,
        share_initialize_retry_interval_ms=config.group_share_initialize_retry_interval_ms,
        may_upgrade=config.group_consumer_migration_policy.lower() in ("bidirectional", "upgrade"),
        may_downgrade=config.group_consumer_migration_policy.lower() in ("bidirectional", "downgrade"),
    )


def _assignors(configured: Iterable[str]) -> tuple[str, ...]:
    """Return the assignors by their own names. A node with one that is not known has not started."""
    names = [find_assignor_name(name) for name in configured]
    return tuple(dict.fromkeys(name for name in names if name is not None))

"""A partition of which this node has a replica: its log, and who leads it."""

from typing import TYPE_CHECKING, Final, Protocol

from ottla.model.ids import LeaderEpoch
from ottla.model.uuid import Uuid
from ottla.storage.append_info import AppendInfo, AppendOrigin
from ottla.storage.log import Log
from ottla.storage.verification import Verification
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.partitions import PartitionRecord

if TYPE_CHECKING:
    from ottla.broker.parked_fetches import ParkedFetch

INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
"""Topics of the coordinators. Clients may read them, but not write to them."""


class PartitionWatcher(Protocol):
    """Who acts on what happens to partitions."""

    def appended(self, partition: "Partition", size_bytes: int) -> None:
        """There is more to read. Told only while `partition.parked` is not empty."""

    def flush_is_due(self, partition: "Partition") -> None:
        """A segment was completed, or `flush.messages` is reached."""


class Partition:
    """One replica on this node. `key` is how requests name it: the topic's name or id, and the number."""

    __slots__ = (
        "acks_all_sync",
        "in_sync_replicas",
        "in_sync_replicas_min",
        "index",
        "is_internal",
        "is_leader",
        "leader_epoch",
        "leader_id",
        "log",
        "parked",
        "topic",
        "topic_id",
        "watcher",
    )

    def __init__(self, topic: str, topic_id: Uuid, index: int, log: Log, watcher: PartitionWatcher) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.watcher = watcher
        self.is_internal = topic in INTERNAL_TOPICS
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = LeaderEpoch(-1)
        self.in_sync_replicas = 0
        self.in_sync_replicas_min = 1
        # Whether a write with acks=all is answered only when it is on disk.
        self.acks_all_sync = True
        # Fetches that wait for records of this partition, in the order they came.
        self.parked: dict[ParkedFetch, None] = {}

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification: Verification | None = None,
        transaction_version: int = 2,
    ) -> AppendInfo:
        """Append as the leader. If it raises `AppendError` or `LogDirectoryOffline`, nothing was appended."""
        log = self.log
        info = log.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            verification=verification,
            transaction_version=transaction_version,
        )
        if not info.is_duplicate:
            if self.in_sync_replicas <= 1:
                log.update_high_watermark(log.log_end_offset)
            if self.parked:
                self.watcher.appended(self, len(records))
            if info.flush_is_due:
                self.watcher.flush_is_due(self)
        return info

    def follow(self, record: PartitionRecord, node_id: int) -> None:
        """Take over what the metadata says about leader and in-sync replicas."""
        self.is_leader = record.leader == node_id
        self.leader_id = record.leader
        self.in_sync_replicas = len(record.isr)
        if record.leader_epoch == self.leader_epoch:
            return
        self.leader_epoch = LeaderEpoch(record.leader_epoch)
        if self.is_leader:
            # The epoch starts here whether or not anything is written in it: a reader who asks where the
            # epoch before ended must learn it at once.
            self.log.assign_leader_epoch(self.leader_epoch, self.log.log_end_offset)
            if len(record.isr) == 1:
                self.log.update_high_watermark(self.log.log_end_offset)

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """Say whether this node may answer a client that knows of this leader epoch; -1 is no epoch."""
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    @property
    def has_enough_replicas(self) -> bool:
        """Say whether a write that all in-sync replicas must have may be accepted."""
        return self.in_sync_replicas >= self.in_sync_replicas_min

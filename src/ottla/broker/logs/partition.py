"""A partition of which this node has a replica: its log, its role, and the replicas that are in sync.

What `acks=all` waits for is not decided here: see `ottla.storage.syncing.committed`. The leader moves the
high watermark that it goes by. With one replica that is the log end. With several the followers' fetches
decide (`ottla.broker.logs.leading`).
"""

import sys
from dataclasses import replace
from enum import Enum
from typing import Final, Protocol

from ottla.broker.logs.leading import Leading, ReplicatingNode
from ottla.broker.logs.parked_fetch import ParkedFetch
from ottla.model.ids import LeaderEpoch, Offset
from ottla.model.uuid import Uuid
from ottla.storage.appending.append_info import AppendInfo, AppendOrigin
from ottla.storage.appending.append_mirrored import append_mirrored
from ottla.storage.appending.validation import ValidBatch, validate_client_batch
from ottla.storage.appending.verification import Verification
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.syncing import committed
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.partitions import PartitionRecord

INTERNAL_TOPICS: Final = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state", "__ottla_journal")
)
"""Topics of the coordinators and of the journal. Clients may read them, but not write to them."""

UNLISTED_TOPICS: Final = frozenset(("__ottla_journal",))
"""Topics that Kafka does not have. Clients that ask for all topics do not get them, but may name them."""


class Role(Enum):
    """What this node does for a partition."""

    LEADER = "takes writes and decides what is committed"
    FOLLOWER = "has a copy, and leads nothing"


class PartitionWatcher(Protocol):
    """Who acts on what happens to partitions."""

    @property
    def replicating(self) -> ReplicatingNode:
        """What the leader of a replicated partition needs of the node."""

    def appended(self, partition: "Partition", size_bytes: int) -> None:
        """There is more to read. Told only while `partition.parked` is not empty."""

    def appended_for_replicas(self, partition: "Partition", size_bytes: int) -> None:
        """Followers can read more. Told only while `partition.parked_replicas` is not empty."""

    def flush_is_due(self, partition: "Partition") -> None:
        """A segment was completed, or `flush.messages` is reached."""

    def damaged(self, partition: "Partition", offset: Offset) -> None:
        """Something is wrong with the log at `offset`. Told only if there are other replicas."""


class Partition:
    """One replica on this node. `key` is how requests name it: the topic's name or id, and the number."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "in_sync",
        "in_sync_replicas_min",
        "index",
        "is_copying_limited",
        "is_internal",
        "is_opening",
        "is_sending_limited",
        "leader_epoch",
        "leader_id",
        "leading",
        "log",
        "parked",
        "parked_replicas",
        "partition_epoch",
        "replicas",
        "role",
        "takes_writes",
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
        # Of batches that were appended, and of those that fetches were answered with.
        self.bytes_in = 0
        self.bytes_out = 0
        self.is_internal = topic in INTERNAL_TOPICS
        self.role = Role.FOLLOWER
        self.leader_id = -1
        self.leader_epoch = LeaderEpoch(-1)
        self.partition_epoch = -1
        # Ids of the nodes that have a replica, in the order of the assignment.
        self.replicas: tuple[int, ...] = ()
        # Ids of the nodes whose replicas are in sync, as the metadata has it.
        self.in_sync: frozenset[int] = frozenset()
        # What the leader of several replicas knows of the others. None if this is the only one, or follows.
        self.leading: Leading | None = None
        self.in_sync_replicas_min = 1
        # Whether its replication is throttled: what this node sends of it as leader, and copies as follower.
        self.is_sending_limited = False
        self.is_copying_limited = False
        # Whether batches wait behind one that is opened in a thread: whatever comes goes behind them.
        self.is_opening = False
        # Whether any producer may write: all that can be said beforehand speaks for it.
        self.takes_writes = False
        # Fetches that wait for records of this partition, in the order they came.
        self.parked: dict[ParkedFetch, None] = {}
        # The same of those that read up to the log end, in a partition with several replicas.
        self.parked_replicas: dict[ParkedFetch, None] = {}

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"

    @property
    def is_leader(self) -> bool:
        """Say whether this node leads the partition."""
        return self.role is Role.LEADER

    def append_batch(self, records: memoryview, now_ms: int) -> AppendInfo:
        """Append a batch of a producer without a transaction: what `append` does, with less to pass on."""
        log = self.log
        info = log.append_as_leader(records, leader_epoch=self.leader_epoch, now_ms=now_ms, opens_large=False)
        if not info.is_duplicate:
            self._appended(log, len(records), info)
        return info

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification: Verification | None = None,
        transaction_version: int = 2,
        opens_large: bool = True,
        valid: ValidBatch | None = None,
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
            opens_large=opens_large,
            valid=valid,
        )
        if not info.is_duplicate:
            self._appended(log, len(records), info)
        return info

    def append_mirrored(self, records: memoryview, now_ms: int) -> AppendInfo:
        """Append batches of another cluster, as the leader, at the offsets that they have there."""
        info = append_mirrored(self.log, records, self.leader_epoch, now_ms)
        self._appended(self.log, len(records), info)
        return info

    def append_letters(self, records: memoryview, now_ms: int) -> AppendInfo:
        """Append dead letters as the leader, however large: another topic has let their records in."""
        config = replace(self.log.config, max_message_bytes=sys.maxsize)
        valid = validate_client_batch(records, config, now_ms)
        return self.append(records, now_ms, valid=valid)

    def _appended(self, log: Log, size_bytes: int, info: AppendInfo) -> None:
        self.bytes_in += size_bytes
        leading = self.leading
        if leading is None:
            # It does not wait for the disk: see `committed`.
            log.update_high_watermark(log.log_end_offset)
            if self.parked:
                self.watcher.appended(self, size_bytes)
        else:
            leading.appended()
            if self.parked_replicas:
                self.watcher.appended_for_replicas(self, size_bytes)
        if info.flush_is_due:
            self.watcher.flush_is_due(self)

    def configure(self, config: LogConfig, in_sync_replicas_min: int) -> None:
        """Take over the settings of the topic."""
        if not committed.needs_disk(config):
            self.log.volume.promise_nothing()
        self.log.config = config
        self.in_sync_replicas_min = in_sync_replicas_min
        self._renew_takes_writes()

    def set_opening(self, is_opening: bool) -> None:
        """Take note that batches begin, or cease, to wait behind one that is opened."""
        self.is_opening = is_opening
        self._renew_takes_writes()

    def leave(self) -> None:
        """Take note that this node has no replica any more. Nobody may write to it by this object."""
        self._become(Role.FOLLOWER)
        self.leading = None
        self.takes_writes = False

    def follow(self, record: PartitionRecord, node_id: int) -> None:
        """Take over what the metadata says about leader and replicas. What is older than known is ignored."""
        if record.partition_epoch < self.partition_epoch:
            return
        was_leader, is_new_epoch = self.is_leader, record.leader_epoch > self.leader_epoch
        self.leader_id = record.leader
        self.replicas = record.replicas
        self.in_sync = frozenset(record.isr)
        self.partition_epoch = record.partition_epoch
        self.leader_epoch = LeaderEpoch(record.leader_epoch)
        self.log.when_damaged = self._damaged if len(record.replicas) > 1 else None
        self._become(Role.LEADER if record.leader == node_id else Role.FOLLOWER)
        self._renew_takes_writes()
        if self.role is Role.LEADER:
            self._lead(is_new_epoch, not was_leader)
        else:
            self.leading = None

    def _damaged(self, offset: Offset) -> None:
        self.watcher.damaged(self, offset)

    def _lead(self, begins_epoch: bool, is_new_leader: bool) -> None:
        log = self.log
        if begins_epoch:
            # The epoch starts here whether or not anything is written in it: a reader that asks where the
            # epoch before ended must learn it at once.
            log.assign_leader_epoch(self.leader_epoch, log.log_end_offset)
        if len(self.replicas) == 1 and len(self.in_sync) == 1:
            self.leading = None
            log.update_high_watermark(log.log_end_offset)
            return
        if self.leading is None:
            self.leading = Leading(self, self.watcher.replicating)
            begins_epoch = True
        self.leading.take_assignment(self.replicas, begins_epoch, is_new_leader)
        self.leading.maybe_advance()

    def take_in_sync(self, in_sync: frozenset[int], partition_epoch: int) -> None:
        """Take over in-sync replicas that the controller has agreed to. The metadata will say the same."""
        self.in_sync = in_sync
        self.partition_epoch = partition_epoch
        self._renew_takes_writes()

    def _become(self, role: Role) -> None:
        was_leader = self.role is Role.LEADER
        self.role = role
        if was_leader and role is not Role.LEADER:
            committed.lose_leadership(self.log)

    def _renew_takes_writes(self) -> None:
        self.takes_writes = (
            self.is_leader
            and self.has_enough_replicas
            and not self.is_internal
            and not self.is_opening
            and not self.log.config.is_mirror
        )

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """Say whether this node may answer a client that knows of this leader epoch; -1 is no epoch."""
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.role is Role.LEADER else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def check_reader(self, current_leader_epoch: int, reads_followers: bool) -> ErrorCode:
        """Say whether this node may answer somebody who may also read from a follower (KIP-392)."""
        error_code = self.check_leader(current_leader_epoch)
        if reads_followers and error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return ErrorCode.NONE
        return error_code

    @property
    def has_enough_replicas(self) -> bool:
        """Say whether a write that all in-sync replicas must have may be accepted."""
        return len(self.in_sync) >= self.in_sync_replicas_min

    @property
    def had_enough_replicas(self) -> bool:
        """Say whether enough replicas have what is committed now, whatever becomes of a pending change."""
        in_sync = self.in_sync if self.leading is None else self.leading.maximal_in_sync
        return len(in_sync) >= self.in_sync_replicas_min

"""A leader's view of its followers: who is in sync, and how far the high watermark may go.

A leader decides that a follower joins or leaves the in-sync replicas, but the controller has the last word:
a change is proposed by AlterPartition (see `in_sync_changes`) and holds when it is in the metadata. Meanwhile
nobody knows whether it was accepted. So the high watermark waits for the larger of both sets, the *maximal*
in-sync replicas: whichever turns out to be the one, all of its members have what is committed.

    a follower fetches    it may join, and the high watermark may move
    a follower is silent  `shrink` proposes to go on without it, after `replica.lag.time.max.ms`
    the metadata changes  what it says holds, and a proposal that it overtakes is void

The high watermark stays where it is while there are fewer in-sync replicas than `min.insync.replicas`
(KIP-966): otherwise eligible leaders could lack what consumers have seen.

Deviation: it does not pass what the leader itself has on disk, where `ottla.acks.all.sync` is true. Followers
ask for more only when they have synced what they got. So all in-sync replicas have on disk what is below the
high watermark, and a power cut takes nothing of it (see docs/internals/replication.md).
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.broker.logs.remote_replica import RemoteReplica
from ottla.model.ids import Offset
from ottla.storage.syncing import committed

if TYPE_CHECKING:
    from ottla.broker.logs.partition import Partition


SUSPICIOUS_REPEATS: Final = 5
"""A follower that has fetched the same so often in a row may have got damaged records."""


class Proposal(NamedTuple):
    """In-sync replicas that a leader has asked the controller for, with the epochs of their brokers."""

    in_sync: frozenset[int]
    members: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int
    is_growing: bool


class ReplicatingNode(Protocol):
    """What leading a partition needs of its node."""

    node_id: int
    appends: int
    in_sync_shrinks: int
    in_sync_expands: int

    @property
    def broker_epoch(self) -> int:
        """That of this broker."""

    @property
    def lag_ms_max(self) -> int:
        """How long a follower may be behind and still be in sync."""

    @property
    def monotonic_ms(self) -> Callable[[], int]:
        """Returns a time that never goes back."""

    def may_be_in_sync(self, broker_id: int, fetched_epoch: int | None) -> bool:
        """Say whether a broker serves, stays, and is the one that has fetched."""

    def is_older(self, broker_id: int, broker_epoch: int) -> bool:
        """Say whether a broker has registered again since it had this epoch."""

    def is_alive(self, broker_id: int) -> bool:
        """Say whether a broker serves."""

    def propose(self, leading: "Leading") -> None:
        """Have the controller asked for `leading.proposal`."""

    def high_watermark_moved(self, partition: "Partition") -> None:
        """Readers may see more than before."""

    def low_watermark_moved(self, partition: "Partition") -> None:
        """A follower has given up the head of its log."""


class Leading:
    """The followers of one partition, as long as this node leads it."""

    __slots__ = ("_awaits_sync", "_node", "epoch_start_offset", "followers", "partition", "proposal")

    def __init__(self, partition: "Partition", node: ReplicatingNode) -> None:
        self.partition = partition
        self._node = node
        self.followers: dict[int, RemoteReplica] = {}
        self.proposal: Proposal | None = None
        self.epoch_start_offset = Offset(0)
        # Whether the high watermark goes on when a sync of the log is done.
        self._awaits_sync = False

    def take_assignment(self, replicas: Iterable[int], begins_epoch: bool, is_new_leader: bool) -> None:
        """Take over what the metadata says. It overrides what was proposed before."""
        self.proposal = None
        node_id, in_sync = self._node.node_id, self.partition.in_sync
        before = self.followers
        self.followers = {one: before.get(one) or RemoteReplica(one) for one in replicas if one != node_id}
        if begins_epoch:
            now_ms = self._node.monotonic_ms()
            self.epoch_start_offset = end = self.partition.log.log_end_offset
            for follower in self.followers.values():
                follower.reset(now_ms, end, follower.broker_id in in_sync, is_new_leader)

    @property
    def maximal_in_sync(self) -> frozenset[int]:
        """All replicas that may be in sync, whatever becomes of the proposal."""
        in_sync = self.partition.in_sync
        return in_sync if self.proposal is None else in_sync | self.proposal.in_sync

    # Followers

    def is_older(self, broker_id: int, broker_epoch: int) -> bool:
        """Say whether a fetch is of a broker's last life. What it had then may be gone (KIP-903)."""
        return broker_epoch >= 0 and self._node.is_older(broker_id, broker_epoch)

    def note_fetch(
        self, follower: RemoteReplica, offset: int, log_start_offset: int, now_ms: int, broker_epoch: int
    ) -> None:
        """Take note of what a follower has by its fetch, and act on it."""
        partition = self.partition
        before, start_before = follower.log_end_offset, follower.log_start_offset
        follower.note_fetch(offset, log_start_offset, partition.log.log_end_offset, now_ms, broker_epoch)
        if self.proposal is None:
            if follower.broker_id not in partition.in_sync:
                self._maybe_expand(follower)
            elif offset < partition.log.high_watermark:
                # It has lost what it had, so it must not be elected. Deviation: Kafka gives it the lag time.
                self._propose(partition.in_sync - {follower.broker_id}, is_growing=False)
        if offset != before:
            self.maybe_advance()
        elif follower.repeats and follower.repeats % SUSPICIOUS_REPEATS == 0:
            # It may have got damaged records. Or it is held back, or other partitions filled its answers.
            partition.watcher.damaged(partition, Offset(offset))
        if log_start_offset != start_before:
            self._node.low_watermark_moved(partition)

    def low_watermark(self) -> int:
        """Return the largest log start offset that all replicas of living brokers have passed."""
        starts = [
            one.log_start_offset for one in self.followers.values() if self._node.is_alive(one.broker_id)
        ]
        return min([self.partition.log.log_start_offset, *starts])

    # The high watermark

    def appended(self) -> None:
        """Act on records that were appended here."""
        self._node.appends += 1
        log = self.partition.log
        # The high watermark needs it even if no producer waits for it.
        committed.begin_sync(log)
        if len(self.partition.in_sync) == 1:
            # Otherwise a follower's fetch decides, and that is yet to come.
            self.maybe_advance()

    def maybe_advance(self) -> bool:
        """Move the high watermark as far as all have the records who are, or are about to be, in sync."""
        partition = self.partition
        log = partition.log
        high_watermark, new = log.high_watermark, log.log_end_offset
        if high_watermark >= new or len(partition.in_sync) < partition.in_sync_replicas_min:
            return False
        maximal = self.maximal_in_sync
        for follower in self.followers.values():
            if follower.log_end_offset < new and (
                follower.broker_id in maximal or self._is_about_to_join(follower)
            ):
                new = Offset(follower.log_end_offset)
                if new <= high_watermark:
                    return False
        new = self._on_disk_up_to(new)
        if new <= high_watermark:
            return False
        log.update_high_watermark(new)
        self._node.high_watermark_moved(partition)
        return True

    def _on_disk_up_to(self, offset: Offset) -> Offset:
        """Return how far below `offset` the leader has all on disk. Have the rest seen to."""
        log = self.partition.log
        if not committed.is_on_disk(log, offset) and not self._awaits_sync:
            self._awaits_sync = True
            committed.when_on_disk(log, log.log_end_offset, self._synced)
        return committed.on_disk_up_to(log, offset)

    def _synced(self, error: Exception | None) -> None:
        self._awaits_sync = False
        if error is None and self.partition.leading is self:
            self.maybe_advance()

    def _is_about_to_join(self, follower: RemoteReplica) -> bool:
        """Say whether to wait for a follower that is nearly in sync: otherwise it might never get there."""
        end, now_ms = self.partition.log.log_end_offset, self._node.monotonic_ms()
        return follower.is_caught_up(end, now_ms, self._node.lag_ms_max) and self._node.may_be_in_sync(
            follower.broker_id, follower.broker_epoch
        )

    # The in-sync replicas

    def _maybe_expand(self, follower: RemoteReplica) -> None:
        """Propose that a follower joins, if it has all that is committed and the beginning of this epoch."""
        offset = follower.log_end_offset
        high_watermark = self.partition.log.high_watermark
        if (
            offset >= high_watermark
            and offset >= self.epoch_start_offset
            # With one replica, the high watermark does not wait for the disk.
            and self._on_disk_up_to(high_watermark) == high_watermark
            and self._node.may_be_in_sync(follower.broker_id, follower.broker_epoch)
        ):
            self._propose(self.partition.in_sync | {follower.broker_id}, is_growing=True)

    def maybe_shrink(self, now_ms: int) -> None:
        """Propose to go on without the followers that have not kept up."""
        in_sync = self.partition.in_sync
        if self.proposal is not None or len(in_sync) == 1:
            return
        end, lag_ms_max = self.partition.log.log_end_offset, self._node.lag_ms_max
        late = [
            follower.broker_id
            for follower in self.followers.values()
            if follower.broker_id in in_sync and not follower.is_caught_up(end, now_ms, lag_ms_max)
        ]
        if late:
            self._propose(in_sync.difference(late), is_growing=False)

    def _propose(self, in_sync: frozenset[int], is_growing: bool) -> None:
        partition, node = self.partition, self._node
        members = [(one, self._epoch_of(one)) for one in partition.replicas if one in in_sync]
        self.proposal = Proposal(
            in_sync, tuple(members), partition.leader_epoch, partition.partition_epoch, is_growing
        )
        node.propose(self)

    def _epoch_of(self, broker_id: int) -> int:
        if broker_id == self._node.node_id:
            return self._node.broker_epoch
        epoch = self.followers[broker_id].broker_epoch
        return -1 if epoch is None else epoch

    def accepted(self, in_sync: "Iterable[int]", partition_epoch: int) -> None:
        """Take over what the controller has made of the proposal.

        Fewer in-sync replicas hold only when the metadata says so. Before that it may say that more are asked
        for: what the leader committed on its own then, replicas could lack that are eligible to lead.

        Deviation: Kafka takes over all of it at once.
        """
        proposal, partition = self.proposal, self.partition
        assert proposal is not None, "there is one as long as an answer to it counts"
        if partition_epoch >= partition.partition_epoch:
            if proposal.is_growing:
                self._node.in_sync_expands += 1
            else:
                self._node.in_sync_shrinks += 1
        if partition_epoch > partition.partition_epoch and not proposal.is_growing:
            return
        self.proposal = None
        if partition_epoch < partition.partition_epoch:
            return
        partition.take_in_sync(frozenset(in_sync), partition_epoch)
        self.maybe_advance()

    def rejected(self) -> None:
        """Go back to what is committed: the proposal was certainly not accepted."""
        self.proposal = None
        self.maybe_advance()

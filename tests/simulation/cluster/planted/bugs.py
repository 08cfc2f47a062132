"""Bugs to plant in a cluster, one line each, to prove that the simulation finds such bugs."""

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.cluster.planted.state_bugs import STATE_BUGS
from tests.simulation.cluster.planted.wide_bugs import WIDE_BUGS
from tests.simulation.planting import Bug
from tests.simulation.raft.bugs import BUGS as QUORUM_BUGS
from tests.simulation.storage.bugs import BUGS as STORAGE_BUGS

from ottla.broker.apis.records.list_offsets import _is_behind
from ottla.broker.coordinators import markers
from ottla.broker.coordinators.markers import MarkerWriter
from ottla.broker.coordinators.shard_hosting import ShardHosting
from ottla.broker.coordinators.shard_log import PartitionShardLog
from ottla.broker.fetch import fetch_reading
from ottla.broker.fetch.fetch_session import FetchSession, FetchSessions, SessionPartition
from ottla.broker.logs import divergence
from ottla.broker.logs.leading import Leading
from ottla.broker.logs.partition import Partition
from ottla.broker.logs.remote_replica import RemoteReplica
from ottla.broker.replication.fetcher import Fetcher
from ottla.broker.replication.in_sync_changes import InSyncChanges
from ottla.broker.replication.replica_session import ReplicaSession
from ottla.broker.replication.replication import Replication
from ottla.coordination.group.offsets.committed_offsets import CommittedOffsets
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.transaction import decide, ending
from ottla.quorum.controller.partitions import alter_partition, leadership, partition_change
from ottla.runtime.closing import _LastSync
from ottla.storage import read, truncation
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import Producer, ProducerState
from ottla.storage.syncing import committed


def _getter(cls: type[Any], name: str) -> Callable[..., Any]:
    """Return the function behind a property."""
    getter: Callable[..., Any] = vars(cls)[name].fget
    return getter


_OWN: Final[dict[str, Bug]] = {
    # What is committed.
    "ack-without-replicas": Bug(
        "an acks=all write is acknowledged before the followers have it",
        committed.when_committed,
        "if log.high_watermark < offset:",
        "if False:",
    ),
    "ack-without-sync": Bug(
        "what only one replica has to have is acknowledged without a sync",
        committed.when_committed,
        "elif is_on_disk(log, offset):",
        "elif True:",
    ),
    "high-watermark-by-one-follower": Bug(
        "the high watermark moves as soon as one follower has a record",
        Leading.maybe_advance,
        "follower.broker_id in maximal or",
        "follower.broker_id == min(maximal) or",
    ),
    "high-watermark-is-the-log-end": Bug(
        "an append moves the high watermark at once",
        Leading.appended,
        "if len(self.partition.in_sync) == 1:",
        "if self.partition.log.update_high_watermark(self.partition.log.log_end_offset):",
    ),
    "high-watermark-passes-the-disk": Bug(
        "the high watermark does not wait for the disk of the leader",
        Leading.maybe_advance,
        "new = self._on_disk_up_to(new)",
        "pass",
    ),
    "minimal-in-sync": Bug(
        "a proposal to shrink counts before the controller has agreed",
        _getter(Leading, "maximal_in_sync"),
        "in_sync | self.proposal.in_sync",
        "self.proposal.in_sync",
    ),
    "follower-fetches-unsynced": Bug(
        "a follower fetches on before what it has is on disk",
        Fetcher._sync,
        "if committed.is_on_disk(log, log.log_end_offset):",
        "if True:",
    ),
    "waits-survive-the-leadership": Bug(
        "who waits for replicas is told of success when another leader is elected",
        committed.lose_leadership,
        "tell(LeadershipLost(str(log.topic_partition)))",
        "tell(None)",
    ),
    "too-few-replicas-are-enough": Bug(
        "a write is accepted whatever min.insync.replicas says",
        _getter(Partition, "has_enough_replicas"),
        "return len(self.in_sync) >= self.in_sync_replicas_min",
        "return True",
    ),
    # Followers.
    "keeps-what-differs": Bug(
        "a follower whose log differs does not cut it",
        Fetcher._truncate,
        "self._cut(partition, offset)",
        "self._cut(partition, log.log_end_offset)",
    ),
    "cuts-to-its-own-end": Bug(
        "a follower cuts at the leader's word alone, whatever its own epoch's end is",
        divergence.find_common_end,
        "return min(own.start_offset, end_offset, log_end)",
        "return min(end_offset, log_end)",
    ),
    "no-divergence": Bug(
        "a leader does not compare the last epoch of a follower",
        fetch_reading._find_divergence,
        "if end.epoch >= ask.last_fetched_epoch and end.start_offset >= ask.fetch_offset:",
        "if True:",
    ),
    "cuts-to-the-high-watermark": Bug(
        "a follower cuts its log at its high watermark when the leader changes (KIP-101)",
        Fetcher.add,
        "if log.leader_epochs.latest < 0 and log.log_end_offset > log.high_watermark:",
        "if log.log_end_offset > log.high_watermark:",
    ),
    "takes-answers-to-old-questions": Bug(
        "a follower takes an answer of the epoch before",
        Fetcher._take,
        "if ask.fetch_offset != log.log_end_offset:",
        "if False:",
    ),
    "forgets-the-session": Bug(
        "a follower goes on with a session that the leader has ended",
        ReplicaSession.restart,
        "self.epoch = INITIAL_EPOCH",
        "self.epoch = self.epoch + 1",
    ),
    "follower-beyond-its-log": Bug(
        "a follower takes the leader's high watermark for its own, though it does not have the records",
        Log.update_high_watermark,
        "if offset > self.log_end_offset:",
        "if False:",
    ),
    "fetcher-stops-when-refused": Bug(
        "a follower that was refused once never fetches again",
        Fetcher._rest,
        "followed.rests_until_ms = self._node.clock.monotonic_ms() + followed.backoff_ms",
        "followed.rests_until_ms = 1 << 60",
    ),
    "does-not-follow-a-new-leader": Bug(
        "a follower stays with the leader that it knows",
        Replication.follow,
        "if is_wanted and following[1:] == (one.leader_id, one.leader_epoch):",
        "if is_wanted:",
    ),
    "stops-without-sync": Bug(
        "a node that stops in order marks its directory without syncing the logs",
        _LastSync.run,
        "flush.run(self._ticket, self._log.volume.disk)",
        "pass",
    ),
    # In-sync replicas.
    "joins-without-what-is-committed": Bug(
        "a follower joins the in-sync replicas wherever it is",
        Leading._maybe_expand,
        "offset >= high_watermark\n",
        "True\n",
    ),
    "lost-records-stay-in-sync": Bug(
        "a follower that fetches below the high watermark stays in sync",
        Leading.note_fetch,
        "elif offset < partition.log.high_watermark:",
        "elif False:",
    ),
    "never-shrinks": Bug(
        "a follower that is silent stays in sync for ever",
        RemoteReplica.is_caught_up,
        "return self.log_end_offset == leader_end or now_ms - self.caught_up_ms <= lag_ms_max",
        "return True",
    ),
    "proposal-is-lost": Bug(
        "a proposal whose request failed is not made again",
        InSyncChanges._again,
        "self._scheduler.call_later(RETRY_MS, self._send)",
        "pass",
    ),
    "old-life-counts": Bug(
        "what a broker had before it was started again counts",
        alter_partition._check_members,
        "if member.broker_epoch not in (_ANY_EPOCH, brokers[member.broker_id].broker_epoch):",
        "if False:",
    ),
    "stale-proposal": Bug(
        "the controller takes a proposal that was made for older in-sync replicas",
        alter_partition._check_epochs,
        "if ask.partition_epoch < partition.partition_epoch:",
        "if False:",
    ),
    # Elections.
    "elects-anybody": Bug(
        "a replica is elected that is not in sync",
        partition_change._elect,
        "if terms.election is Election.UNCLEAN:",
        "if True:",
    ),
    "same-epoch-for-a-new-leader": Bug(
        "a new leader gets the epoch of the one before",
        partition_change.change_partition,
        "leader=leader if raises_epoch else NO_LEADER_CHANGE,",
        "leader=leader if raises_epoch and leader < 0 else NO_LEADER_CHANGE,",
    ),
    "elects-the-one-that-left": Bug(
        "the broker that leaves may be elected",
        leadership._can_lead,
        "if broker_id in change.gone:",
        "if False:",
    ),
    "reassignment-does-not-wait": Bug(
        "replicas are removed before the new ones are in sync",
        partition_change.complete_reassignment,
        "if not staying or not staying_isr or not set(adding) <= set(staying_isr):",
        "if not staying or not staying_isr:",
    ),
    "epoch-starts-with-the-first-write": Bug(
        "a new leader does not say where its epoch begins",
        Partition._lead,
        "log.assign_leader_epoch(self.leader_epoch, log.log_end_offset)",
        "pass",
    ),
    # Readers.
    "reads-what-is-not-committed": Bug(
        "a consumer reads up to the log end",
        read.limit_offset,
        "if limit is ReadLimit.LOG_END:",
        "if limit is not ReadLimit.LAST_STABLE:",
    ),
    "reads-open-transactions": Bug(
        "read_committed reads up to the high watermark",
        read.limit_offset,
        "return log.high_watermark if limit is ReadLimit.HIGH_WATERMARK else log.last_stable_offset",
        "return log.high_watermark",
    ),
    "stable-without-replicas": Bug(
        "the last stable offset passes a marker that followers do not have",
        _getter(ProducerState, "first_unstable_offset"),
        "if not self.unreplicated:",
        "if True:",
    ),
    "tells-an-old-high-watermark": Bug(
        "a new leader answers ListOffsets before it knows what is committed (KIP-207)",
        _is_behind,
        "if leading is None or log.high_watermark >= leading.epoch_start_offset:",
        "if True:",
    ),
    "session-tells-no-high-watermark": Bug(
        "a fetch session does not tell of a moved high watermark",
        SessionPartition.note,
        "if self.high_watermark != answer.high_watermark or",
        "if",
    ),
    "session-forgets-the-offset": Bug(
        "a fetch session keeps the offset that was asked for first",
        FetchSession.update,
        "known.ask = partition",
        "pass",
    ),
    "session-epoch-is-not-checked": Bug(
        "a repeated request of a fetch session is answered as if it were the next",
        FetchSessions.plan,
        "if session.epoch != ask.session_epoch:",
        "if False:",
    ),
    "any-leader-epoch": Bug(
        "a leader serves requests that are meant for an older epoch",
        Partition.check_leader,
        "if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:",
        "if False:",
    ),
    # Producers.
    "forgets-duplicates": Bug(
        "a batch that is sent again is appended again",
        Producer.find_duplicate,
        "if batch[0] == last_sequence and _sequence_before(last_sequence, batch[2]) == base_sequence:",
        "if False:",
    ),
    "any-sequence": Bug(
        "a gap in the sequence of a producer is accepted",
        ProducerState.check_batch,
        "elif base_sequence != _sequence_before(producer.last_sequence, -1):",
        "elif False:",
    ),
    "producers-survive-a-cut": Bug(
        "what is known of producers is not rebuilt when a log is cut",
        truncation.truncate_to,
        "log.producer_state = rebuild_producer_state(log, now_ms)",
        "pass",
    ),
    "old-producer-epoch": Bug(
        "a batch of a fenced producer is accepted",
        ProducerState.check_internal_batch,
        "check_epoch(producer_id, producer, epoch)",
        "pass",
    ),
    # Transactions.
    "marker-of-an-old-coordinator": Bug(
        "a marker of an older coordinator epoch is taken",
        ProducerState.check_marker,
        "if coordinator_epoch < producer.coordinator_epoch:",
        "if False:",
    ),
    "marker-is-not-repeated": Bug(
        "a marker that a leader did not take is not sent again",
        MarkerWriter._find_again,
        "again.append(one)",
        "pass",
    ),
    "markers-count-uncommitted": Bug(
        "a transaction is complete before its markers are committed",
        markers.when_markers_committed,
        "one.partition.log.when_committed(Offset(one.offset + 1), partial(settled, one))",
        "settled(one, None)",
    ),
    "partition-is-not-added": Bug(
        "a second partition takes the place of the first in a transaction",
        decide.decide_add_partitions,
        "partitions=transaction.partitions | partitions,",
        "partitions=partitions,",
    ),
    "commits-what-was-aborted": Bug(
        "an abort is carried out as a commit",
        decide.decide_end,
        "status = _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT",
        "status = _S.PREPARE_COMMIT",
    ),
    "fence-leaves-the-epoch": Bug(
        "a new instance of a producer gets the epoch of the one before",
        decide._raised,
        "return Outcome(_emptied(transaction, timeout_ms, now_ms, producer_epoch=epoch + 1))",
        "return Outcome(_emptied(transaction, timeout_ms, now_ms, producer_epoch=epoch))",
    ),
    "init-does-not-wait": Bug(
        "a new instance of a producer begins before the open transaction is ended",
        decide.decide_init,
        "if not transaction.status.is_idle:",
        "if False:",
    ),
    "any-epoch-ends": Bug(
        "whoever asks may end a transaction, with any epoch",
        ending.find_ending,
        "if match is EpochMatch.OTHER:",
        "if False:",
    ),
    "never-times-out": Bug(
        "a transaction that its client has left stays open",
        decide.has_timed_out,
        "and abs(now_ms - transaction.start_ms) > transaction.timeout_ms",
        "and False",
    ),
    # Coordinators.
    "loads-to-the-high-watermark": Bug(
        "a new coordinator loads what is committed as far as it knows, and no more",
        PartitionShardLog.batches,
        "while offset < log.log_end_offset:",
        "while offset < log.high_watermark:",
    ),
    "answers-before-replicas": Bug(
        "a coordinator answers before its record is committed",
        Shard._when_committed,
        "if self.written_offset <= self.committed_offset:",
        "if True:",
    ),
    "does-not-resign": Bug(
        "a coordinator serves on when another node leads its partition",
        ShardHosting._follow,
        "self._shards.resign(number, record.leader_epoch)",
        "pass",
    ),
    "does-not-reload": Bug(
        "a node that leads a partition again goes on with what it knew",
        ShardHosting._elect,
        "if current is not None and current.epoch >= epoch:",
        "if current is not None:",
    ),
    "offsets-without-the-marker": Bug(
        "offsets of a transaction count before it is committed",
        CommittedOffsets.replay,
        "if producer is None:",
        "if True:",
    ),
    "offsets-of-aborted-transactions": Bug(
        "offsets of an aborted transaction are committed",
        CommittedOffsets.replay_marker,
        "if committed:",
        "if True:",
    ),
}

OFF: Final[dict[str, str]] = {
    "takes-answers-to-old-questions": "who follows a log that was cut meanwhile has not asked yet",
    "elects-the-one-that-left": "the controller elects another one as soon as the broker is gone",
    "storage-expiry-of-open-transaction": "it takes a day, and a transaction ends after fifteen minutes",
    "storage-marker-of-old-coordinator": "it is marker-of-an-old-coordinator",
    "storage-truncation-keeps-producers": "it is producers-survive-a-cut",
    "storage-clean-stop-without-sync": "a node stops step by step, without this: see stops-without-sync",
    "storage-high-watermark-above-log-end": "it is follower-beyond-its-log",
    # Those of a voter whose log is damaged.
    **{
        f"quorum-{name}": "the metadata is not damaged here"
        for name in QUORUM_BUGS
        if name.startswith("damaged-voter-")
    },
}
"""Bugs that cannot be seen in a cluster, or are there twice, and why."""

BUGS: Final[dict[str, Bug]] = {
    name: bug
    for name, bug in (
        *_OWN.items(),
        *STATE_BUGS.items(),
        *WIDE_BUGS.items(),
        *((f"quorum-{name}", bug) for name, bug in QUORUM_BUGS.items()),
        *((f"storage-{name}", bug) for name, bug in STORAGE_BUGS.items()),
    )
    if name not in OFF
}

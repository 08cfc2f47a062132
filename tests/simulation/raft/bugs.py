"""Bugs to plant in the quorum, one line each, to prove that the simulation finds such bugs."""

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.planting import Bug

from ottla.broker.lifecycle import damaged_metadata
from ottla.quorum.raft import abstaining, changes, election, following, leading, servers, starting, voting
from ottla.quorum.raft.connections import Connections
from ottla.quorum.raft.election import Tally
from ottla.quorum.raft.metadata_log import MetadataLog, OffsetAndEpoch, QuorumStateFile
from ottla.quorum.raft.progress import Progress
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.snapshot_files import Download
from ottla.quorum.raft.voter_sets import ControlHistory, ReplicaKey


def _getter(cls: type[Any], name: str) -> Callable[..., Any]:
    """Return the function behind a property."""
    getter: Callable[..., Any] = vars(cls)[name].fget
    return getter


BUGS: Final[dict[str, Bug]] = {
    # Votes and epochs.
    "vote-not-synced": Bug(
        "epoch and vote are written without a sync",
        QuorumStateFile.write,
        "self._disk.write_file_atomically(self._path, "
        "encode_quorum_state(election, kraft_version, voter_ids))",
        "f = self._disk.open(self._path, create=True); f.truncate(0); "
        "f.write(0, (encode_quorum_state(election, kraft_version, voter_ids),))",
    ),
    "vote-not-persisted": Bug(
        "a vote is given before it is on disk",
        Replica._finish,
        "self.persist()",
        "self.persist() if self.state.voted is None or self.state.leader_id is not None else None",
    ),
    "epoch-not-persisted": Bug(
        "a new epoch without a vote or a leader is not remembered",
        Replica.persist,
        "if election != self._persisted:",
        "if election != self._persisted and (election.voted_id >= 0 or election.leader_id >= 0):",
    ),
    "leader-starts-as-candidate": Bug(
        "a leader that starts again forgets that it led",
        starting.initial_state,
        "if election.leader_id == me.node_id:",
        "if False:",
    ),
    "votes-twice": Bug(
        "a voter gives its vote to whoever asks",
        election.may_vote,
        "return voted.covers(candidate)",
        "return True",
    ),
    "votes-beside-a-leader": Bug(
        "a follower gives its vote though it knows the leader",
        voting._is_granted,
        "return is_pre_vote and is_up_to_date and not has_leader",
        "return is_up_to_date",
    ),
    "votes-whatever-the-log": Bug(
        "a voter does not compare the candidate's log with its own",
        OffsetAndEpoch.is_at_least,
        "return (self.epoch, self.offset) >= (other.epoch, other.offset)",
        "return True",
    ),
    "leader-gives-its-vote": Bug(
        "a leader says that another would be elected",
        voting._is_granted,
        "case Leader():\n            return False",
        "case Leader():\n            return True",
    ),
    "longer-log-wins": Bug(
        "logs are compared by offset, not by epoch first",
        OffsetAndEpoch.is_at_least,
        "return (self.epoch, self.offset) >= (other.epoch, other.offset)",
        "return (self.offset, self.epoch) >= (other.offset, other.epoch)",
    ),
    "vote-of-epoch-forgotten": Bug(
        "a prospective that gives up forgets its vote of the epoch",
        Replica.become_unattached,
        "voted=old.voted if is_same else None,",
        "voted=None,",
    ),
    "vote-forgotten-when-following": Bug(
        "a follower forgets its vote of the epoch",
        Replica.become_follower,
        "voted=old.voted if epoch == old.epoch else None,",
        "voted=None,",
    ),
    "half-is-a-majority": Bug(
        "half of the votes are enough",
        _getter(Tally, "majority"),
        "return len(self.voters) // 2 + 1",
        "return (len(self.voters) + 1) // 2",
    ),
    "pre-vote-bumps-the-epoch": Bug(
        "a prospective goes to a new epoch",
        Replica.become_prospective,
        "old.epoch,",
        "old.epoch + 1,",
    ),
    "any-directory-is-the-voter": Bug(
        "a node with a new disk counts as the voter it was",
        ReplicaKey.covers,
        "return self.directory_id == ZERO_UUID or self.directory_id == other.directory_id",
        "return True",
    ),
    "resigned-stays-in-its-epoch": Bug(
        "who has resigned asks in the epoch it led",
        leading.poll_resigned,
        "replica.become_unattached(resigned.epoch + 1, now)",
        "replica.become_unattached(resigned.epoch, now)",
    ),
    "no-election-timeout": Bug(
        "an unattached voter waits for ever",
        following.poll_unattached,
        "if may_stand and now.ms >= state.deadline_ms:",
        "if False:",
    ),
    "no-fetch-timeout": Bug(
        "a follower waits for its leader for ever",
        following.poll_follower,
        "if may_stand and now.ms >= state.deadline_ms:",
        "if False:",
    ),
    "removed-never-stands": Bug(
        "a leader whose removal is not committed cannot be elected again",
        _getter(Replica, "may_stand"),
        "return not is_committed and self.history.voters_before.is_voter(self.settings.me)",
        "return False",
    ),
    # A voter with a damaged log.
    "damaged-voter-votes": Bug(
        "a voter that has lost its log gives its vote",
        voting._is_granted,
        "if replica.abstains:",
        "if False:",
    ),
    "damaged-voter-stands": Bug(
        "a voter that has lost its log stands for election",
        _getter(Replica, "may_stand"),
        "if self.abstains:",
        "if False:",
    ),
    "damaged-voter-votes-at-once": Bug(
        "a voter that has lost its log votes again when it has something of the leader",
        abstaining.note_answer,
        "if replica.abstains and not records:",
        "if replica.abstains:",
    ),
    "damaged-voter-forgets-to-abstain": Bug(
        "a voter that starts again while it abstains is a voter like any other",
        Replica.load,
        "self.abstains = self._store.abstains()",
        "self.abstains = False",
    ),
    "damaged-voter-forgets-its-vote": Bug(
        "epoch and vote are set aside with the log",
        damaged_metadata.set_aside,
        "kept |= {QUORUM_STATE_FILE, ABSTAINING_FILE}",
        "kept |= {ABSTAINING_FILE}",
    ),
    # Committing.
    "leader-counts-itself-unsynced": Bug(
        "the leader counts what it has not synced",
        _getter(MetadataLog, "synced_offset"),
        "return min(self.log.recovery_point, self.log.log_end_offset)",
        "return self.log.log_end_offset",
    ),
    "follower-fetches-unsynced": Bug(
        "a follower fetches on before it has synced",
        following._must_sync_first,
        "return counts and replica.log.synced_offset < replica.log.end_offset",
        "return False",
    ),
    "commit-of-old-epoch": Bug(
        "records of earlier epochs are committed without one of this epoch",
        leading.maybe_commit,
        "if committed is None or committed <= leader.start_offset:",
        "if committed is None:",
    ),
    "commit-by-minority": Bug(
        "one voter too few is enough to commit",
        Progress.find_committed,
        "needed = len(self.voters) // 2 + 1",
        "needed = max(1, len(self.voters) // 2)",
    ),
    "commit-by-observers": Bug(
        "observers count as voters",
        Progress.find_committed,
        "for one in self.voters.values()",
        "for one in (*self.voters.values(), *self.observers.values())",
    ),
    "removed-leader-counts-itself": Bug(
        "a leader that was removed counts on",
        Progress.synced,
        "self.of(self.me).end_offset = offset",
        "self.voters.setdefault(self.me.node_id, self.of(self.me)).end_offset = offset",
    ),
    "high-watermark-beyond-log": Bug(
        "a follower takes the leader's high watermark though its log is shorter",
        following._append,
        "min(Offset(high_watermark), replica.log.end_offset)",
        "Offset(high_watermark)",
    ),
    "high-watermark-kept-by-leader": Bug(
        "a new leader goes on with the high watermark it knew",
        Replica._become_leader,
        "volatile_voters=volatile,",
        "volatile_voters=volatile, high_watermark=self.high_watermark,",
    ),
    # The log.
    "no-divergence-check": Bug(
        "the leader does not see that a follower's log departs from its own",
        MetadataLog.validate,
        "return Diverging(end) if end.epoch != epoch or end.offset < offset else Valid()",
        "return Diverging(end) if end.offset < offset else Valid()",
    ),
    "truncates-to-high-watermark": Bug(
        "a follower cuts off everything that it does not know to be committed",
        following._truncate,
        "offset = replica.log.find_truncation(diverging)",
        "offset = Offset(max(0, diverging.offset - 1))",
    ),
    "truncation-not-made": Bug(
        "a follower does not cut off what departs",
        MetadataLog.find_truncation,
        "return min(mine.offset, diverging.offset) if mine.epoch == diverging.epoch else mine.offset",
        "return self.end_offset",
    ),
    # Snapshots.
    "snapshot-always-offered": Bug(
        "the leader offers its snapshot to whoever fetches",
        MetadataLog.validate,
        "if offset == 0 and latest is not None:",
        "if latest is not None:",
    ),
    "snapshot-not-offered": Bug(
        "the leader does not see that a follower needs a snapshot",
        MetadataLog.validate,
        "offset < self.start_offset",
        "False",
    ),
    "snapshot-keeps-the-log": Bug(
        "a snapshot is loaded without dropping the log before it",
        MetadataLog._start_at,
        "self.log.truncate_fully_and_start_at(snapshot_id.end_offset, wall_ms)",
        "[]",
    ),
    "interrupted-snapshot-not-settled": Bug(
        "a start does not finish the loading of a snapshot",
        MetadataLog.settle,
        "if not begins_later and (log_epoch, self.end_offset) < (latest.epoch, latest.end_offset):",
        "if False:",
    ),
    "snapshot-without-voters": Bug(
        "who loads a snapshot keeps the voters it knew",
        following._load,
        "replica.history.restart_from(download.id.end_offset, snapshot.quorum)",
        "pass",
    ),
    "snapshot-unsynced": Bug(
        "a fetched snapshot is used before it is synced",
        Download.freeze,
        "self._file.sync()",
        "pass",
    ),
    # Voters.
    "voters-not-undone": Bug(
        "voters that are cut off with the log stay in force",
        following._truncate,
        "replica.history.truncate_to(replica.log.end_offset)",
        "pass",
    ),
    "voters-counted-when-committed": Bug(
        "a leader counts the old voters on after a change",
        Replica.append_control,
        "leader.progress.set_voters(self.voters)",
        "pass",
    ),
    "change-before-first-commit": Bug(
        "voters are changed before a record of the epoch is committed",
        changes._check_ready,
        "committed = leader.high_watermark",
        "committed = leader.high_watermark or replica.log.end_offset",
    ),
    "changes-overlap": Bug(
        "voters are changed before the last change is committed",
        changes._check_ready,
        "if offset is None or offset >= committed:",
        "if False:",
    ),
    "follower-ignores-voters": Bug(
        "a follower does not see who the voters are before it starts again",
        following._append,
        "replica.history.add(batch.base_offset, batch.records)",
        "pass",
    ),
    "removed-leader-leads-on": Bug(
        "a leader that was removed does not resign",
        changes.note_committed,
        "leader.is_resigning = True",
        "pass",
    ),
    "history-forgets-kraft-version": Bug(
        "a start does not read the control records of the log",
        starting.read_control_records,
        "replica.history.add(batch.base_offset, batch.records)",
        "pass",
    ),
    "history-order": Bug(
        "a truncation undoes one record of the voters too few",
        ControlHistory.truncate_to,
        "while entries and entries[-1][0] >= end_offset:",
        "while entries and entries[-1][0] > end_offset:",
    ),
    # Requests.
    "old-answers-count": Bug(
        "an answer is taken by whom it comes from, whatever was asked",
        Connections.take,
        "if connection.correlation_id == correlation_id:",
        "if connection.correlation_id is not None:",
    ),
    "lost-request-is-waited-for": Bug(
        "a request to the only server that is not answered is waited for",
        following._ask_bootstrap_server,
        "return connections.ready_ms(server.node_id, now.ms)",
        "return NEVER",
    ),
    "bootstrap-servers-only": Bug(
        "who has lost its leader asks none of the voters it knows",
        servers.servers,
        "*[one for one in others if one is not None and one[1:] not in configured]",
        "",
    ),
}

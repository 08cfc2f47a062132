"""This node as a voter of the metadata quorum: its log, its epoch, and whether it leads.

    UNATTACHED  -- campaign -->  LEADER  -- resign -->  UNATTACHED

A quorum has one voter so far, which wins every election. It still does what the leader of a larger quorum
does, in the same records, so that Apache Kafka can take over its directory and it can take over Apache
Kafka's. A new epoch is remembered in `quorum-state` before it is used, and its first record is a
LEADER_CHANGE. A record is committed when a majority has synced it, and a leader commits what it found in its
log by committing a record of its own epoch: so it takes over when its LEADER_CHANGE is committed.

The log is synced by `request_sync`, which calls back, or in this thread by `flush`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import Position
from ottla.model.ids import LeaderEpoch, Offset
from ottla.quorum.batches import BATCH_BYTES_MAX, encode_batch, encode_control_batch
from ottla.quorum.load import LoadedLog, read_batches
from ottla.quorum.quorum_protocols import (
    BatchTooLarge,
    CommittedRecords,
    PreparedAppend,
    QuorumListener,
    RequestSync,
)
from ottla.quorum.quorum_state import FILE as QUORUM_STATE_FILE
from ottla.quorum.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT
from ottla.quorum.voters import STATIC, VoterHistory, VoterIdentity, voter
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.wire.control_records import LeaderChangeMessage, LeaderChangeVoter
from ottla.world.disk import Disk


class OtherVoters(MetadataError):
    """The directory belongs to a quorum with other voters, so this node may not elect itself."""


class Voter:
    """The voter that this node is."""

    def __init__(
        self,
        disk: Disk,
        log: Log,
        loaded: LoadedLog,
        me: VoterIdentity,
        listener: QuorumListener,
        request_sync: RequestSync,
        static_voters: Sequence[int] = (),
    ) -> None:
        """`listener` has what was loaded, and is told what is committed from then on.

        `static_voters` are the voters that the config names; they count only with kraft.version 0.
        """
        self._disk = disk
        self._listener = listener
        self._request_sync = request_sync
        self.me = me
        self.log = log
        self.voter_history = loaded.quorum
        self.appended_bytes = 0
        self._check_voters(static_voters)
        self._new_voters = self._voters_to_record(loaded)
        self.epoch = max(self._remembered_epoch(), log.leader_epochs.latest, loaded.snapshot_id.epoch)
        self._is_leader = False
        self._has_taken_over = False
        self._epoch_start = log.log_end_offset
        # What the listener will be told next, and what this leader appended since: that needs no reading.
        self._next_offset = log.log_end_offset
        self._appended: deque[CommittedRecords] = deque()

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        return self.voter_history.kraft_version

    @property
    def log_end_offset(self) -> Offset:
        """Where the next record will lie."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> Offset:
        """Everything below is committed."""
        return self.log.high_watermark

    # Leadership

    def campaign(self, now_ms: int) -> None:
        """Begin a new epoch, and lead it. `QuorumListener.became_leader` follows when that is committed."""
        assert not self._is_leader, "a leader needs no election"
        self.epoch += 1
        state = QuorumState(leader_id=self.me.node_id, leader_epoch=self.epoch)
        content = encode_quorum_state(state, self.kraft_version, [self.me.node_id])
        self._disk.write_file_atomically(self._state_path, content)
        self._is_leader, self._has_taken_over = True, False
        self._epoch_start = self.log_end_offset
        me = (LeaderChangeVoter(voter_id=self.me.node_id),)
        change = LeaderChangeMessage(version=0, leader_id=self.me.node_id, voters=me, granting_voters=me)
        control = (change, *self._new_voters.records())
        batch = encode_control_batch(control, self.log_end_offset, self.epoch, now_ms)
        position = Position(Offset(self.log_end_offset + len(control) - 1), self.epoch, now_ms)
        self._write((batch,), CommittedRecords((), position, is_control=True), now_ms)
        self.voter_history = self.voter_history.after(control)

    def resign(self) -> None:
        """Lead no longer. What was appended stays in the log, where the next leader decides about it."""
        if self._is_leader:
            self._is_leader = False
            self._appended.clear()
            self._listener.resigned()

    # Appending

    def prepare(
        self, records: Sequence[Any], metadata_version: int, batch_records_max: int, now_ms: int
    ) -> PreparedAppend:
        """Encode records for the end of the log."""
        base = self.log_end_offset
        batches = [
            encode_batch(
                records[start : start + batch_records_max],
                metadata_version,
                Offset(base + start),
                self.epoch,
                now_ms,
            )
            for start in range(0, len(records), batch_records_max)
        ]
        bytes_max = min(BATCH_BYTES_MAX, self.log.config.segment_bytes)
        largest = max(map(len, batches))
        if largest > bytes_max:
            raise BatchTooLarge(f"{len(records)} records take {largest} bytes, a batch has {bytes_max}")
        return PreparedAppend(records, batches, Position(Offset(base + len(records) - 1), self.epoch, now_ms))

    def append(self, prepared: PreparedAppend, now_ms: int) -> None:
        """Append what was prepared last."""
        assert self._is_leader, "only the leader appends"
        records, batches, position, replay = prepared
        self._write(batches, CommittedRecords(records, position, replay=replay), now_ms)

    def _write(self, batches: Sequence[bytearray], appended: CommittedRecords, now_ms: int) -> None:
        for batch in batches:
            self.log.append_as_leader(
                memoryview(batch),
                leader_epoch=LeaderEpoch(self.epoch),
                now_ms=now_ms,
                origin=AppendOrigin.RAFT_LEADER,
            )
            self.appended_bytes += len(batch)
        assert self.log_end_offset == appended.position.offset + 1, "each record has one offset"
        self._appended.append(appended)
        self._request_sync(self.log, self.log_end_offset, self._synced)

    # Committing

    def flush(self) -> None:
        """Sync the log in this thread."""
        self.log.flush()
        self._commit()

    def close(self) -> None:
        """Resign, and complete the files of the log."""
        self.resign()
        self.log.flush()
        self.log.close()

    def _synced(self, error: LogDirectoryOffline | None) -> None:
        if error is not None:
            self._listener.failed(error)
        else:
            self._commit()

    def _commit(self) -> None:
        """Commit what is synced. A leader commits nothing before a record of its own epoch is synced."""
        synced = self.log.recovery_point
        if not self._is_leader or synced <= self._epoch_start or synced <= self.log.high_watermark:
            return
        self.log.update_high_watermark(synced)
        for batch in self._take_committed():
            self._next_offset = Offset(batch.position.offset + 1)
            self._listener.committed(batch)
        if self._is_leader and not self._has_taken_over:
            self._has_taken_over = True
            self._new_voters = VoterHistory()
            self._listener.became_leader()

    def _take_committed(self) -> Iterator[CommittedRecords]:
        """Yield what is committed and was not told yet. What others appended is read from the log."""
        own_from = self._epoch_start
        if self._next_offset < own_from:
            for batch in read_batches(self.log, self._next_offset, own_from):
                records = () if batch.is_control else batch.records
                yield CommittedRecords(records, batch.position, batch.is_control)
        while self._appended and self._appended[0].position.offset < self.log.high_watermark:
            yield self._appended.popleft()

    # Who votes

    def _check_voters(self, static_voters: Sequence[int]) -> None:
        if self.kraft_version == STATIC:
            ids = list(static_voters)
        else:
            ids = [one.voter_id for one in self.voter_history.voters or ()]
        if ids != [self.me.node_id]:
            raise OtherVoters(
                f"the metadata of {self.log.path} has the voters {ids}: node {self.me.node_id} must not "
                "decide alone"
            )
        for one in self.voter_history.voters or ():
            if one.voter_directory_id != self.me.directory_id:
                raise OtherVoters(
                    f"the voter of {self.log.path} has directory id {one.voter_directory_id}, but this "
                    f"directory has {self.me.directory_id}"
                )

    def _voters_to_record(self, loaded: LoadedLog) -> VoterHistory:
        """Return what the log is to say about the voters and does not, or what it says wrongly."""
        if self.kraft_version == STATIC:
            return VoterHistory()
        me = voter(self.me.node_id, self.me.directory_id, [self.me.endpoint])
        right = VoterHistory(self.kraft_version, (me,))
        # A snapshot of the log has them from the log; the one of formatting has them from nowhere else.
        is_logged = loaded.logged_voters.voters is not None or loaded.snapshot_id != FORMAT_SNAPSHOT
        return VoterHistory() if self.voter_history == right and is_logged else right

    def _remembered_epoch(self) -> int:
        if not self._disk.exists(self._state_path):
            return 0
        try:
            return decode_quorum_state(self._disk.read_file(self._state_path)).leader_epoch
        except MetadataError as error:
            raise MetadataError(f"{self._state_path} is damaged: {error}") from error

    @property
    def _state_path(self) -> str:
        return f"{self.log.path}/{QUORUM_STATE_FILE}"

"""The quorum of one: this node is its only voter, so it leads itself.

It still does what the leader of a larger quorum does, in the same records, so that Apache Kafka can take over
its directory and it can take over Apache Kafka's. It begins a new epoch whenever it starts, remembers it in
`quorum-state` before it uses it, and appends a LEADER_CHANGE as the first record of it. A record is committed
when it is synced: there is nobody else to wait for.

Whoever drives it syncs the log: in this thread by `flush`, or in another one, whereupon `synced` is called.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import Position
from ottla.model.ids import LeaderEpoch, Offset
from ottla.quorum.batches import BATCH_BYTES_MAX, encode_batch, encode_control_batch
from ottla.quorum.load import LoadedLog
from ottla.quorum.quorum_state import FILE as QUORUM_STATE_FILE
from ottla.quorum.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT
from ottla.quorum.voters import STATIC, VoterHistory, VoterIdentity, voter
from ottla.storage.append_info import AppendOrigin
from ottla.storage.log import Log
from ottla.wire.control_records import LeaderChangeMessage, LeaderChangeVoter
from ottla.world.disk import Disk


class NotTheSoleVoter(MetadataError):
    """The directory belongs to a quorum with other voters, so this node may not elect itself."""


class BatchTooLarge(Exception):
    """What was decided does not fit into one batch. Nothing of it was appended."""


def _nobody(*_: object) -> None:
    """Stand for somebody who is not there yet."""


class SoleVoter:
    """The leader, and only member, of a quorum."""

    def __init__(
        self, disk: Disk, log: Log, loaded: LoadedLog, me: VoterIdentity, static_voters: Sequence[int] = ()
    ) -> None:
        """`static_voters` are the voters that the config names; they count only with kraft.version 0."""
        self._disk = disk
        self.me = me
        self._commit_listener: Callable[[Offset], None] = _nobody
        self.request_sync: Callable[[], None] = _nobody
        """Called after each append. Whoever syncs in another thread sets it."""
        self.appended_bytes = 0
        self.log = log
        self.quorum = loaded.quorum
        self._check_voters(static_voters)
        self._new_voters = self._voters_to_record(loaded)
        self.epoch = max(self._remembered_epoch(), log.leader_epochs.latest, loaded.snapshot_id.epoch) + 1

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        return self.quorum.kraft_version

    @property
    def log_end_offset(self) -> Offset:
        """Where the next record will lie."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> Offset:
        """Everything below is committed."""
        return self.log.high_watermark

    def when_committed(self, listener: Callable[[Offset], None]) -> None:
        """Call `listener` with the offset of the last committed record whenever it has moved."""
        self._commit_listener = listener

    def become_leader(self, now_ms: int) -> Position:
        """Begin the new epoch. When this returns it is on disk, with everything the log had before.

        Returns where the last record of the change lies.
        """
        state = QuorumState(leader_id=self.me.node_id, leader_epoch=self.epoch)
        content = encode_quorum_state(state, self.quorum.kraft_version, [self.me.node_id])
        self._disk.write_file_atomically(self._state_path, content)
        me = (LeaderChangeVoter(voter_id=self.me.node_id),)
        change = LeaderChangeMessage(version=0, leader_id=self.me.node_id, voters=me, granting_voters=me)
        control = (change, *self._new_voters.records())
        self.append(encode_control_batch(control, self.log_end_offset, self.epoch, now_ms), now_ms)
        self.quorum = self.quorum.after(control)
        self.flush()
        return Position(Offset(self.log_end_offset - 1), self.epoch, now_ms)

    def encode(
        self, records: Sequence[Any], metadata_version: int, base_offset: Offset, now_ms: int
    ) -> bytearray:
        """Make a batch of metadata records."""
        batch = encode_batch(records, metadata_version, base_offset, self.epoch, now_ms)
        bytes_max = min(BATCH_BYTES_MAX, self.log.config.segment_bytes)
        if len(batch) > bytes_max:
            raise BatchTooLarge(f"{len(records)} records take {len(batch)} bytes, a batch has {bytes_max}")
        return batch

    def append(self, batch: bytearray, now_ms: int) -> None:
        """Append a batch. It is committed when the log was synced."""
        self.log.append_as_leader(
            memoryview(batch),
            leader_epoch=LeaderEpoch(self.epoch),
            now_ms=now_ms,
            origin=AppendOrigin.RAFT_LEADER,
        )
        self.appended_bytes += len(batch)
        self.request_sync()

    def synced(self) -> None:
        """Take note that the log was synced: what lies below its recovery point is committed."""
        if self.log.recovery_point > self.log.high_watermark:
            self.log.update_high_watermark(self.log.recovery_point)
            self._commit_listener(Offset(self.log.high_watermark - 1))

    def flush(self) -> None:
        """Sync the log in this thread."""
        self.log.flush()
        self.synced()

    def _check_voters(self, static_voters: Sequence[int]) -> None:
        if self.quorum.kraft_version == STATIC:
            ids = list(static_voters)
        else:
            ids = [one.voter_id for one in self.quorum.voters or ()]
        if ids != [self.me.node_id]:
            raise NotTheSoleVoter(
                f"the metadata of {self.log.path} is voted on by nodes {ids}: node {self.me.node_id} alone "
                "must not decide for them"
            )
        for one in self.quorum.voters or ():
            if one.voter_directory_id != self.me.directory_id:
                raise NotTheSoleVoter(
                    f"the voter of {self.log.path} has directory {one.voter_directory_id}, "
                    f"this is {self.me.directory_id}"
                )

    def _voters_to_record(self, loaded: LoadedLog) -> VoterHistory:
        """Return what the log is to say about the voters but does not, or does no longer rightly."""
        if self.quorum.kraft_version == STATIC:
            return VoterHistory()
        me = voter(self.me.node_id, self.me.directory_id, [self.me.endpoint])
        right = VoterHistory(self.quorum.kraft_version, (me,))
        # A snapshot of the log has them from the log; the one of formatting has them from nowhere else.
        is_logged = loaded.logged_voters.voters is not None or loaded.snapshot_id != FORMAT_SNAPSHOT
        return VoterHistory() if self.quorum == right and is_logged else right

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

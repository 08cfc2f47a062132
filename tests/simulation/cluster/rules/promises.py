"""What nodes promise, checked at the very moment at which they promise it.

An observer that looks now and then may miss what is wrong for a moment only. So a few functions of the nodes
are wrapped for the time of a run: those by which a node says that something is committed, answers for a
coordinator, gives a vote, counts votes for a record, or takes an answer. The functions themselves stay as
they are: only what goes in and what comes out is compared.

A node may catch what is raised in the middle of its work. So what is wrong is kept, and the observer
raises it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

from tests.simulation.cluster.clients.careless import is_careless
from tests.simulation.cluster.clients.hostile import MARKED
from tests.simulation.cluster.rules.replicas import find_torn
from tests.simulation.cluster.rules.wrong import Wrong

from ottla.broker.apis.transactions import write_txn_markers
from ottla.broker.coordinators import markers
from ottla.broker.coordinators.markers import WrittenMarker
from ottla.broker.logs import swap_round
from ottla.broker.logs.leading import Leading
from ottla.broker.logs.partition import Partition
from ottla.coordination.runtime.shard import Shard
from ottla.model.ids import Offset
from ottla.quorum.quorum_state import QuorumState
from ottla.quorum.raft import following, starting
from ottla.quorum.raft import replica as raft
from ottla.quorum.raft.connections import Connections
from ottla.quorum.raft.effects import Destination, Inbound
from ottla.quorum.raft.messages import find_partition
from ottla.quorum.raft.metadata_log import MetadataLog, Valid
from ottla.quorum.raft.progress import Progress
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.servers import servers
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import NEVER, Follower, Leader, Resigned, State, Unattached
from ottla.runtime.connections.connection import Connection
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.compaction.cleaned_segment import CleanedSegment
from ottla.storage.damages.damage import Damage
from ottla.storage.loading.load import _Loader
from ottla.storage.log import Log
from ottla.storage.names import FileState, segment_file_name
from ottla.storage.syncing import committed
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.wire.control_records import LeaderChangeMessage, VotersRecord
from ottla.wire.messages.vote import VoteRequest

_FAILURES: Final = (AssertionError, AttributeError, IndexError, KeyError, NameError, TypeError)
"""What nobody outside can cause, unless there is a bug."""


class Promises:
    """Watches what nodes promise."""

    def __init__(self) -> None:
        self._broken: list[str] = []
        # The last request to each destination, by what keeps them.
        self._sent: WeakKeyDictionary[Connections, dict[int, int]] = WeakKeyDictionary()
        # The log that has taken the place of another one, in another directory.
        self._moved: dict[Log, Log] = {}

    def check(self) -> None:
        """Complain about the first promise that was broken."""
        if self._broken:
            raise Wrong(self._broken[0])

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch for the time being."""
        votes = raft._REQUESTS[VoteRequest]
        wrapped: list[tuple[Any, str, Callable[..., Any]]] = [
            (Log, "when_committed", self._watch_commits),
            (committed, "wait_on_in", self._watch_moves),
            (Shard, "_when_committed", self._watch_answers),
            (Progress, "find_committed", self._watch_counts),
            (MetadataLog, "validate", self._watch_readers),
            (Replica, "append_control", self._watch_changes),
            (Replica, "move_high_watermark", self._watch_high_watermarks),
            (Connections, "sent", self._watch_requests),
            (Connections, "take", self._watch_responses),
            (Connection, "close", self._watch_failures),
            (markers, "when_markers_committed", self._watch_markers),
            (write_txn_markers, "when_markers_committed", self._watch_markers),
            (Leading, "_propose", self._watch_proposals),
            (Partition, "append", self._watch_appends),
            (Partition, "append_batch", self._watch_appends),
            (starting, "initial_state", self._watch_starts),
            (following, "_ask_bootstrap_server", self._watch_waits),
            (following, "poll_unattached", self._watch_elections),
            (swap_round, "stage_swap", self._watch_swaps),
            (_Loader, "load", self._watch_loads),
            (MetadataLog, "settle", self._watch_snapshots),
        ]
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in wrapped]
        for (owner, name, watch), (_, _, function) in zip(wrapped, before, strict=True):
            setattr(owner, name, watch(function))
        raft._REQUESTS[VoteRequest] = self._watch_votes(votes)
        try:
            yield
        finally:
            raft._REQUESTS[VoteRequest] = votes
            for owner, name, function in before:
                setattr(owner, name, function)

    def _watch_failures(self, close: Callable[..., None]) -> Callable[..., None]:
        """No request makes a node fail: it closes a connection because of the other side, not of itself."""

        def watched(
            connection: Connection, error: Exception | None = None, *args: Any, **options: Any
        ) -> None:
            if isinstance(error, _FAILURES):
                self._broken.append(f"failure: a request was not answered: {error!r}")
            close(connection, error, *args, **options)

        return watched

    # What is committed

    def _watch_commits(self, when_committed: Callable[..., None]) -> Callable[..., None]:
        """Who waits for a commit is told of it when it is one: on all in-sync replicas, and on this disk."""

        def watched(log: Log, offset: Offset, tell: Callable[[Any], None]) -> None:
            def told(error: Exception | None) -> None:
                now = self._current(log)
                if error is None and not _is_committed(now, offset):
                    self._broken.append(
                        f"committed: {now.topic_partition}: what is below {offset} is said to be committed, "
                        f"but the high watermark is {now.high_watermark}, and {now.recovery_point} is synced"
                    )
                tell(error)

            when_committed(log, offset, told)

        return watched

    def _watch_moves(self, wait_on_in: Callable[[Log, Log], None]) -> Callable[[Log, Log], None]:
        """Who waited for a log waits for the one in another directory that has taken its place."""

        def watched(old: Log, new: Log) -> None:
            self._moved[old] = new
            wait_on_in(old, new)

        return watched

    def _current(self, log: Log) -> Log:
        while (new := self._moved.get(log)) is not None:
            log = new
        return log

    def _watch_answers(self, when_committed: Callable[..., None]) -> Callable[..., None]:
        """A coordinator tells nobody of what is not committed."""

        def watched(shard: Any, answer: Callable[[Any], None], reply: Any, *rest: Any) -> None:
            written = shard.written_offset

            def answered(told: Any) -> None:
                log = shard._log.partition.log
                if not _is_committed(log, written + 1):
                    self._broken.append(
                        f"coordinator: {log.topic_partition} has answered what is in its record {written}, "
                        f"but the high watermark is {log.high_watermark}, and {log.recovery_point} is synced"
                    )
                answer(told)

            when_committed(shard, answered, reply, *rest)

        return watched

    def _watch_markers(self, when_committed: Callable[..., None]) -> Callable[..., None]:
        """A transaction is complete when its markers are committed."""

        def watched(written: Iterable[WrittenMarker], done: Callable[[list[WrittenMarker]], None]) -> None:
            waiting = list(written)

            def told(failed: list[WrittenMarker]) -> None:
                for one in waiting:
                    log = one.partition.log
                    if one not in failed and not _is_committed(log, one.offset + 1):
                        self._broken.append(
                            f"stable: the marker at {one.offset} of {log.topic_partition} counts, but the "
                            f"high watermark is {log.high_watermark}, and {log.recovery_point} is synced"
                        )
                done(failed)

            when_committed(waiting, told)

        return watched

    def _watch_appends(self, append: Callable[..., Any]) -> Callable[..., Any]:
        """Too few replicas take nothing that is to be on several."""

        def watched(partition: Partition, *args: Any, **options: Any) -> Any:
            origin = args[2] if len(args) > 2 else options.get("origin", AppendOrigin.CLIENT)
            if (
                origin is AppendOrigin.CLIENT
                and len(partition.in_sync) < partition.in_sync_replicas_min
                and not is_careless(partition.topic)
                and (partition.topic, partition.index) != MARKED
            ):
                self._broken.append(
                    f"min-in-sync: {partition} takes a batch, but in sync are {sorted(partition.in_sync)}"
                )
            return append(partition, *args, **options)

        return watched

    def _watch_proposals(self, propose: Callable[..., None]) -> Callable[..., None]:
        """Who is to join the in-sync replicas has all that is committed."""

        def watched(leading: Leading, in_sync: frozenset[int], is_growing: bool) -> None:
            committed = leading.partition.log.high_watermark
            for one in in_sync - leading.partition.in_sync:
                end = leading.followers[one].log_end_offset
                if end < committed:
                    self._broken.append(
                        f"in-sync: {leading.partition}: node {one} is to be in sync, which has {end}, but "
                        f"{committed} is committed"
                    )
            propose(leading, in_sync, is_growing)

        return watched

    def _watch_swaps(self, stage_swap: Callable[..., None]) -> Callable[..., None]:
        """What compaction has staged is there after a power cut, before anything is replaced by it."""

        def watched(disk: Any, directory: str, cleaned: Sequence[CleanedSegment]) -> None:
            stage_swap(disk, directory, cleaned)
            for segment in cleaned:
                for kind in segment.kinds:
                    path = f"{directory}/{segment_file_name(segment.base_offset, kind, FileState.SWAP)}"
                    if disk.find_durable(path) is not disk.find_node(path):
                        self._broken.append(f"durable: {path} is staged, but its name is not synced")

        return watched

    def _watch_loads(self, load: Callable[..., Log]) -> Callable[..., Log]:
        """What a start after a crash takes for a part of a log is whole, unless it knows of damage."""

        def watched(loader: _Loader, damages: list[Damage]) -> Log:
            log = load(loader, damages)
            assert isinstance(loader.disk, SimulatedDisk), "nodes have no other one here"
            if not loader.request.is_clean and not damages and log.segments:
                torn = find_torn(log, loader.disk, loader.request.synced, loader.request.recovery_point)
                if torn is not None:
                    self._broken.append(f"log: a start takes what is torn for whole: {torn}")
            return log

        return watched

    # The quorum

    def _watch_snapshots(self, settle: Callable[..., None]) -> Callable[..., None]:
        """Who starts has in its log what its newest snapshot says, and nothing older beside it."""

        def watched(log: MetadataLog, wall_ms: int) -> None:
            settle(log, wall_ms)
            latest = log.snapshots.latest
            if latest is not None and log.is_behind(latest):
                self._broken.append(
                    f"quorum: a start leaves a log that ends at {log.end_offset} in epoch {log.last_epoch} "
                    f"beside a snapshot of {latest.end_offset} in epoch {latest.epoch}"
                )

        return watched

    def _watch_starts(self, initial_state: Callable[..., State]) -> Callable[..., State]:
        """Who led an epoch when it stopped has resigned when it starts: it may have forgotten records."""

        def watched(replica: Replica, election: QuorumState, now: Moment) -> State:
            state = initial_state(replica, election, now)
            me = replica.settings.me.node_id
            if state.leader_id == me and not isinstance(state, Resigned):
                self._broken.append(
                    f"vote: node {me} has led epoch {state.epoch}, and starts as {state.name.value} in it"
                )
            return state

        return watched

    def _watch_elections(self, poll: Callable[..., int]) -> Callable[..., int]:
        """A voter that has waited for a leader as long as it was to stands for election itself."""

        def watched(replica: Replica, state: Unattached, now: Moment) -> int:
            is_due = replica.stop_ms is None and replica.may_stand and now.ms >= state.deadline_ms
            wake_ms = poll(replica, state, now)
            if is_due and replica.state is state:
                self._broken.append(
                    f"vote: node {replica.settings.me.node_id} has waited for a leader of {state.epoch} "
                    "long enough, and does not stand for election"
                )
            return wake_ms

        return watched

    def _watch_waits(self, ask: Callable[..., int]) -> Callable[..., int]:
        """Who looks for a leader does not wait for an answer that may never come."""

        def watched(replica: Replica, now: Moment) -> int:
            until_ms = ask(replica, now)
            if until_ms >= NEVER and servers(replica):
                self._broken.append(
                    f"vote: node {replica.settings.me.node_id} looks for a leader, and waits for ever"
                )
            return until_ms

        return watched

    def _watch_votes(self, handle: Callable[..., Any]) -> Callable[..., Any]:
        """Nobody helps to elect one that has less, or another one than the leader that it hears from."""

        def watched(replica: Replica, inbound: Inbound, now: Moment) -> Any:
            before, mine = replica.state, replica.log.end
            hears = isinstance(before, Leader) or (
                isinstance(before, Follower) and before.has_fetched and now.ms < before.deadline_ms
            )
            response = handle(replica, inbound, now)
            asked: Any = find_partition(inbound.request.topics)
            told = find_partition(response.topics)
            if told is not None and told.vote_granted:
                me = replica.settings.me.node_id
                if hears and asked.replica_epoch == before.epoch:
                    self._broken.append(
                        f"vote: node {me} helps to elect node {asked.replica_id}, but is {before.name.value} "
                        f"of epoch {before.epoch}, which goes on"
                    )
                if (asked.last_offset_epoch, asked.last_offset) < (mine.epoch, mine.offset):
                    self._broken.append(
                        f"vote: node {me} has {mine}, but helps to elect node {asked.replica_id}, which has "
                        f"{asked.last_offset} of epoch {asked.last_offset_epoch}"
                    )
            return response

        return watched

    def _watch_counts(self, find_committed: Callable[..., Any]) -> Callable[..., Any]:
        """A majority of the voters has what is committed."""

        def watched(progress: Progress) -> Offset | None:
            found: Offset | None = find_committed(progress)
            if found is not None:
                having = [
                    node_id
                    for node_id, voter in progress.voters.items()
                    if voter.end_offset is not None and voter.end_offset >= found
                ]
                if 2 * len(having) <= len(progress.voters):
                    self._broken.append(
                        f"quorum: node {progress.me.node_id} takes {found} for committed, which of the "
                        f"voters {sorted(progress.voters)} only {having} have"
                    )
            return found

        return watched

    def _watch_readers(self, validate: Callable[..., Any]) -> Callable[..., Any]:
        """A reader whose log is taken for the beginning of another has the same record at its end."""

        def watched(log: MetadataLog, offset: Offset, epoch: int) -> Any:
            found = validate(log, offset, epoch)
            if isinstance(found, Valid) and offset > log.start_offset:
                mine = log.log.leader_epochs.epoch_for(Offset(offset - 1))
                if mine != epoch:
                    self._broken.append(
                        f"quorum: a log that ends at {offset} in epoch {epoch} is taken for the beginning of "
                        f"one that has epoch {mine} there"
                    )
            return found

        return watched

    def _watch_high_watermarks(self, move: Callable[..., None]) -> Callable[..., None]:
        """Nobody takes for committed what is not in its log."""

        def watched(replica: Replica, offset: Offset) -> None:
            if offset > replica.log.end_offset:
                self._broken.append(
                    f"quorum: node {replica.settings.me.node_id} has {replica.log.end_offset}, but takes "
                    f"{offset} for committed"
                )
                # It would read on for ever what is not there.
                self.check()
            move(replica, offset)

        return watched

    def _watch_changes(self, append_control: Callable[..., Offset]) -> Callable[..., Offset]:
        """Voters are changed one change after the other, and by a leader that has committed something."""

        def watched(replica: Replica, leader: Leader, records: tuple[Any, ...], now: Moment) -> Offset:
            # What a leader repeats when its epoch begins is no change.
            is_change = not isinstance(records[0], LeaderChangeMessage) and any(
                isinstance(one, VotersRecord) for one in records
            )
            committed, last = leader.high_watermark, replica.history.voters_offset
            if is_change and (committed is None or (last is not None and last >= committed)):
                self._broken.append(
                    f"quorum: node {leader.leader_id} changes the voters in epoch {leader.epoch}, of which "
                    f"{committed} is committed, but the last change is at {last}"
                )
            return append_control(replica, leader, records, now)

        return watched

    def _watch_requests(self, sent: Callable[..., int]) -> Callable[..., int]:
        def watched(connections: Connections, destination: Destination, now_ms: int) -> int:
            correlation_id = sent(connections, destination, now_ms)
            self._sent.setdefault(connections, {})[destination.node_id] = correlation_id
            return correlation_id

        return watched

    def _watch_responses(self, take: Callable[..., Any]) -> Callable[..., Any]:
        """An answer counts if it is one to the last request that was sent there."""

        def watched(connections: Connections, correlation_id: int) -> Destination | None:
            found: Destination | None = take(connections, correlation_id)
            if found is not None:
                last = self._sent.get(connections, {}).get(found.node_id)
                if last not in (None, correlation_id):
                    self._broken.append(
                        f"quorum: the answer to request {correlation_id} is taken for one of node "
                        f"{found.node_id}, which was asked in request {last}"
                    )
            return found

        return watched


def _is_committed(log: Log, offset: int) -> bool:
    return offset <= log.high_watermark and (offset <= log.recovery_point or not log.config.acks_all_sync)

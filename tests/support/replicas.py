"""Replicas of one partition in the process of the test: each on a disk of its own, and no network.

    pair = ReplicaPair()
    pair.leader.append(batch(3))
    pair.run()                       # the follower fetches as long as that brings anything
    assert pair.follower.ends == (3, 0)

The leader's answers are made by the code that serves them in a node, the follower's requests by a real
fetcher. Syncs happen at once, unless a test has them wait.
"""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from tests.support.group_world import ManualClock, topic_id
from tests.unit.storage.logs import NOW_MS, new_log

from ottla.broker.fetch.fetch_reading import NOTHING_TOLD, Limits, read_partitions
from ottla.broker.fetch.fetch_session import FetchSessions
from ottla.broker.logs.leading import Leading
from ottla.broker.logs.partition import Partition
from ottla.broker.replication.fetcher import Fetcher
from ottla.metadata.configs.load import load_node_config
from ottla.model.ids import Offset
from ottla.runtime.connections.file_range import FileRange
from ottla.runtime.connections.peer import Unanswered
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.storage.syncing import committed
from ottla.storage.truncation import takes_damage
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.metadata_records.partitions import PartitionRecord

TOPIC = "orders"
FETCH_VERSION = 18


def partition_record(
    leader: int, in_sync: tuple[int, ...], leader_epoch: int = 0, partition_epoch: int = 0, replicas: int = 2
) -> PartitionRecord:
    """Return what the metadata says of a partition with replicas on nodes 1 to `replicas`."""
    return PartitionRecord(
        topic_id=topic_id(TOPIC),
        replicas=tuple(range(1, replicas + 1)),
        isr=in_sync,
        removing_replicas=(),
        adding_replicas=(),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )


class ManualScheduler:
    """A loop that a test runs. Timers are due when the clock says so."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._soon: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._timers: list[ManualTimer] = []

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        self._soon.append((callback, args))

    call_from_thread = call_soon

    def call_later(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> "ManualTimer":
        timer = ManualTimer(self._clock.monotonic_ms() + delay_ms, callback, args)
        self._timers.append(timer)
        return timer

    def when_idle(self, callback: Callable[[], None], at_latest_ns: int) -> None:
        self.call_soon(callback)

    def report(self, message: str, error: Exception) -> None:
        raise AssertionError(message) from error

    def run_once(self) -> bool:
        """Do what is due now, and say whether there was anything."""
        now_ms = self._clock.monotonic_ms()
        due = [timer for timer in self._timers if timer.due_ms <= now_ms]
        self._timers = [timer for timer in self._timers if timer.due_ms > now_ms]
        soon, self._soon = self._soon, deque()
        for callback, args in soon:
            callback(*args)
        for timer in due:
            if not timer.is_cancelled:
                timer.callback(*timer.args)
        return bool(soon or due)


class ManualTimer:
    def __init__(self, due_ms: int, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.due_ms = due_ms
        self.callback = callback
        self.args = args
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ReplicaNode:
    """What a node gives to leaders and fetchers: `ReplicatingNode`, `FetchingNode`, `PartitionWatcher`."""

    def __init__(self, node_id: int, clock: ManualClock, scheduler: ManualScheduler) -> None:
        self.node_id = node_id
        self.clock = clock
        self.scheduler = scheduler
        self.monotonic_ms = clock.monotonic_ms
        self.broker_epoch = 100 + node_id
        self.lag_ms_max = 30_000
        self.appends = 0
        self.in_sync_shrinks = 0
        self.in_sync_expands = 0
        self.settings = load_node_config(b"", {"log.dirs": "/data"}).configs.node
        self.fetch_version_max = FETCH_VERSION
        self.replicating = self
        self.proposed: list[Leading] = []
        self.moved: list[Partition] = []
        self.low_moved: list[Partition] = []
        self.appended_bytes: list[int] = []
        self.copied_bytes = 0
        self.caught: list[Partition] = []
        self.dead: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.throttled: set[Partition] = set()
        self.suspected: list[int] = []

    def is_alive(self, broker_id: int) -> bool:
        return broker_id not in self.dead

    def may_be_in_sync(self, broker_id: int, fetched_epoch: int | None) -> bool:
        registered = self.epochs.get(broker_id, 100 + broker_id)
        return broker_id not in self.dead and fetched_epoch in (-1, registered)

    def is_older(self, broker_id: int, broker_epoch: int) -> bool:
        return broker_epoch < self.epochs.get(broker_id, 100 + broker_id)

    def propose(self, leading: Leading) -> None:
        self.proposed.append(leading)

    def high_watermark_moved(self, partition: Partition) -> None:
        self.moved.append(partition)

    def low_watermark_moved(self, partition: Partition) -> None:
        self.low_moved.append(partition)

    def appended(self, partition: Partition, size_bytes: int) -> None:
        self.appended_bytes.append(size_bytes)

    appended_for_replicas = appended

    def truncate(self, log: Log, offset: Offset) -> None:
        log.truncate_to(offset, NOW_MS)
        committed.cut_off(log)

    def restart_log(self, log: Log, offset: Offset) -> None:
        log.truncate_fully_and_start_at(offset, NOW_MS)
        committed.cut_off(log)

    def may_cut(self, partition: Partition, offset: Offset) -> bool:
        return not takes_damage(partition.log, offset)

    def may_fetch(self, partition: Partition, is_behind: bool) -> bool:
        return partition not in self.throttled

    def caught_up(self, partition: Partition) -> None:
        self.caught.append(partition)

    def fetched(self, partition: Partition, size_bytes: int) -> None:
        self.copied_bytes += size_bytes

    def flush_is_due(self, partition: Partition) -> None:
        partition.log.flush()

    def damaged(self, partition: Partition, offset: Offset) -> None:
        self.suspected.append(offset)


class Replica:
    """One replica on one node."""

    def __init__(self, node: ReplicaNode, config: LogConfig | None = None) -> None:
        self.node = node
        self.log = new_log(config or LogConfig(verifies_transactions=False))
        self.partition = Partition(TOPIC, topic_id(TOPIC), 0, self.log, node)

    @property
    def ends(self) -> tuple[int, int]:
        """The log end, and the high watermark."""
        return self.log.log_end_offset, self.log.high_watermark

    def follow(self, record: PartitionRecord) -> None:
        self.partition.follow(record, self.node.node_id)

    def append(self, records: memoryview) -> None:
        self.partition.append(records, NOW_MS)

    def content(self) -> bytes:
        """All bytes of the log."""
        result = self.log.read(self.log.log_start_offset, 1 << 30, ReadLimit.LOG_END)
        return result.read()


class ServingLeader:
    """Answers the requests of followers, as a node does. A `Link` for their fetchers."""

    def __init__(self, leader: Replica) -> None:
        self.leader = leader
        self.requests: list[Any] = []
        # How many partitions each fetch had to be told of.
        self.answered: list[int] = []
        self.is_down = False
        # Answers that come instead of the leader's own.
        self.instead: deque[Any] = deque()
        self._sessions = FetchSessions(100, count(7).__next__)

    def ask(
        self,
        request: Any,
        answered: Callable[[Any], None],
        timeout_ms: int | None = None,
        *,
        version_max: int = 0,
    ) -> None:
        self.requests.append(request)
        self.leader.node.scheduler.call_soon(lambda: answered(self._answer(request)))

    def close(self) -> None:
        pass

    def _answer(self, request: Any) -> Any:
        if self.is_down:
            return Unanswered("it is down")
        if self.instead:
            return self.instead.popleft()
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(request)
        return self._fetch(request)

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        plan = self._sessions.plan(request, FETCH_VERSION, 0)
        if plan.error is not ErrorCode.NONE:
            return FetchResponse(error_code=plan.error, responses=())
        state = request.replica_state
        now_ms = self.leader.node.monotonic_ms()
        limits = Limits(
            ReadLimit.LOG_END,
            request.max_bytes,
            state.replica_id,
            True,
            True,
            state.replica_epoch,
            now_ms=now_ms,
        )
        partitions: Any = self
        session = plan.session
        told = NOTHING_TOLD if session is None else session.partitions
        result = read_partitions(partitions, plan.partitions, limits, notes_fetch=True, told=told)
        self.answered.append(len(result.answers))
        if plan.begins_session:
            session = self._sessions.begin(plan.partitions, FETCH_VERSION, True, 0)
        assert session is not None, "there is room for it"
        answers = [
            _with_bytes(data)
            for key, data in result.answers
            if session.partitions[key].note(data) or not plan.is_incremental
        ]
        topics = (FetchableTopicResponse(topic_id=topic_id(TOPIC), partitions=tuple(answers)),)
        return FetchResponse(session_id=session.id, responses=topics if answers else ())

    @property
    def by_key(self) -> dict[Any, Partition]:
        partition = self.leader.partition
        return {(partition.topic_id, 0): partition, (TOPIC, 0): partition}

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        log = self.leader.log
        latest = request.topics[0].partitions[0].timestamp == -1
        found = ListOffsetsPartitionResponse(
            partition_index=0, offset=log.log_end_offset if latest else log.log_start_offset
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=TOPIC, partitions=(found,)),))


def _with_bytes(data: PartitionData) -> PartitionData:
    records: Any = data.records
    if isinstance(records, FileRange):
        content = bytearray(len(records))
        assert records.read_warm(memoryview(content)) == len(records)
        return replace(data, records=memoryview(content))
    return data


class ReplicaPair:
    """A leader on node 1, and a follower on node 2 that fetches from it."""

    def __init__(self, config: LogConfig | None = None, in_sync: tuple[int, ...] = (1, 2)) -> None:
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self.leader = Replica(ReplicaNode(1, self.clock, self.scheduler), config)
        self.follower = Replica(ReplicaNode(2, self.clock, self.scheduler), config)
        self.serving = ServingLeader(self.leader)
        peer: Any = self.serving
        follower: Any = self.follower.node
        self.fetcher = Fetcher(follower, peer, "the fetcher")
        self.elect(0, in_sync)

    @property
    def fetches(self) -> list[FetchRequest]:
        return [one for one in self.serving.requests if isinstance(one, FetchRequest)]

    def elect(self, leader_epoch: int, in_sync: tuple[int, ...] = (1, 2)) -> None:
        """Let node 1 lead in an epoch, and node 2 follow."""
        record = partition_record(1, in_sync, leader_epoch, leader_epoch)
        for replica in (self.leader, self.follower):
            replica.follow(record)
        self.fetcher.remove(self.follower.partition)
        self.fetcher.add(self.follower.partition)

    def run(self, rounds: int = 30) -> None:
        """Let the follower fetch for a while. A real leader would let an idle one wait."""
        for _ in range(rounds):
            if not self.scheduler.run_once():
                break
            assert len(self.serving.requests) < 10_000

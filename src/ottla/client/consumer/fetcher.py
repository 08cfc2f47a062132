"""Keeps records at hand: a fetch to every leader that has something we want, all the time.

One task looks at what is assigned and has at most one request on the way to each leader. A partition is left
out while more than one answer of it waits here, and nothing is fetched while `fetch.buffer.bytes` wait, so
that memory is bounded however slow the reader is. Offsets come from `Positions`; what only the user can act
on is kept in `failure` until somebody asks for records.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ottla.client.cluster import FETCH_LANE, Cluster
from ottla.client.consumer.assignment import Assignment, Chunk, PartitionState, Status
from ottla.client.consumer.fetch_session import FINAL_EPOCH, FetchSession
from ottla.client.consumer.handing_over import damaged
from ottla.client.consumer.health import Mishap
from ottla.client.consumer.positions import Positions
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import BrokerError, ClientError, OffsetOutOfRange
from ottla.client.fetching import (
    FIRST_VERSION_BY_ID,
    FetchedPartition,
    fetch_version,
    fetched_partitions,
    request_timeout_s,
)
from ottla.client.journey import Listener, Stage, tell
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest

_logger = logging.getLogger(__name__)
# Errors that say that a leader is elsewhere, or not known yet: refresh the metadata, then ask again.
_ELSEWHERE: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
# How many times larger than a piece of it an answer may be that the piece keeps in memory.
_SHARE_MAX: Final = 4


class Fetcher:
    """The fetching side of one consumer."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        assignment: Assignment,
        positions: Positions,
        arrived: Callable[[], None],
        listener: Listener | None = None,
    ) -> None:
        self.failure: ClientError | None = None
        self.mishap: Mishap | None = None
        self._cluster = cluster
        self._settings = settings
        self._limits = settings.limits
        self._assignment = assignment
        self._positions = positions
        self._arrived = arrived
        self._listener = listener
        self._sessions: dict[int, FetchSession] = {}
        self._on_the_way: dict[int, asyncio.Task[None]] = {}
        self._chores: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fetch."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and close the sessions, so that brokers need not remember them."""
        tasks = [task for task in (self._task, *self._on_the_way.values(), *self._chores.values()) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None
        for node_id, session in self._sessions.items():
            if session.session_id:
                self._close_session(node_id, session)

    def wake(self) -> None:
        """Look again: something is new."""
        self._wake.set()

    def fail(self, error: ClientError) -> None:
        """Keep an error for the next call that asks for records."""
        self._note(error)
        self.failure = error
        self._arrived()

    def _close_session(self, node_id: int, session: FetchSession) -> None:
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=session.session_id, session_epoch=FINAL_EPOCH, topics=()
        )
        connection = self._cluster.open_connection(node_id, FETCH_LANE)
        if connection is not None:
            # A fetch may still wait on this connection: nobody waits for the answer.
            with contextlib.suppress(ClientError):
                connection.send(request)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            # One look at the clock for the whole round: a partition is either served in it or waited for.
            now_s = asyncio.get_running_loop().time()
            self._check_leaders()
            if self._positions.needs_work(self._assignment, now_s):
                self._start_chore("positions", self._settle_positions(now_s))
            for node_id, states in self._wanted(now_s).items():
                if node_id not in self._on_the_way:
                    task = asyncio.create_task(self._fetch(node_id, states))
                    self._on_the_way[node_id] = task
            await self._wait(now_s)

    async def _wait(self, now_s: float) -> None:
        """Sleep until there is news, or until a partition that has to wait may be asked again."""
        ends_s = [state.wait_until_s for state in self._assignment if state.wait_until_s > now_s]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(ends_s, default=None)):
                await self._wake.wait()

    def _check_leaders(self) -> None:
        """Have positions checked whose leader is a new one."""
        for state in self._assignment:
            if state.status is Status.READY and state.fetch_epoch >= 0:
                view = self._cluster.topology.leader_of(state.where)
                if view is not None and view.leader_epoch > max(state.checked_epoch, state.fetch_epoch):
                    state.status = Status.NEEDS_CHECK

    def _wanted(self, now_s: float) -> dict[int, list[PartitionState]]:
        """Return what to ask each leader for."""
        if self._assignment.buffered_bytes() >= self._settings.fetch_buffer_bytes:
            for state in self._assignment:
                state.waiting_since_s = None
            return {}
        wanted: dict[int, list[PartitionState]] = {}
        leaderless: list[PartitionState] = []
        for state in self._assignment:
            if state.is_paused or state.buffered_bytes > self._limits.partition_max_bytes:
                state.waiting_since_s = None
                continue
            if state.waiting_since_s is None:
                state.waiting_since_s = now_s
            if state.status is not Status.READY or state.wait_until_s > now_s:
                continue
            view = self._cluster.topology.leader_of(state.where)
            if view is None:
                leaderless.append(state)
            else:
                source = state.source(view.leader, now_s)
                if source not in self._cluster.topology.brokers:
                    state.read_from_leader()
                    source = view.leader
                wanted.setdefault(source, []).append(state)
        if leaderless:
            self._put_off(leaderless)
            self._learn({state.where.topic for state in leaderless})
        return wanted

    async def _fetch(self, node_id: int, states: list[PartitionState]) -> None:
        """Ask one leader once."""
        try:
            await self._ask(node_id, states)
        except Exception as bug_or_not:
            error = self._error_for_users(bug_or_not)
            self._note(error)
            self._put_off(states)
            self._session(node_id).lost()
            for state in states:
                state.read_from_leader()
            if error.retriable:
                _logger.debug("a fetch from broker %d failed: %s", node_id, error)
                self._learn({state.where.topic for state in states})
            else:
                self.fail(error)
        finally:
            self._on_the_way.pop(node_id, None)
            self.wake()

    async def _ask(self, node_id: int, states: list[PartitionState]) -> None:
        connection = await self._cluster.connection(node_id, FETCH_LANE)
        topology = self._cluster.topology
        states = [state for state in states if state.where.topic in topology.topics]
        asked = {state.where: state.fetch_offset for state in states}
        if not asked:
            return
        version = fetch_version(connection, topology, {where.topic for where in asked})
        session = self._session(node_id)
        parts = {state.where: self._partition(state) for state in states}
        said = session.next_request(parts, topology, version >= FIRST_VERSION_BY_ID)
        request = FetchRequest(
            max_wait_ms=self._limits.max_wait_ms,
            min_bytes=self._limits.min_bytes,
            max_bytes=self._limits.max_bytes,
            isolation_level=self._settings.isolation,
            session_id=said.session_id,
            session_epoch=said.session_epoch,
            topics=said.topics,
            forgotten_topics_data=said.forgotten,
            rack_id=self._settings.client_rack,
        )
        timeout_s = request_timeout_s(self._limits, self._settings.request_timeout_ms / 1000)
        answer = await connection.ask(request, version, timeout_s)
        if not session.accept(answer):
            if not answer.error_code.retriable and answer.error_code is not ErrorCode.NONE:
                raise BrokerError(answer.error_code, f"broker {node_id} refused a fetch")
            return
        by_id = version >= FIRST_VERSION_BY_ID
        refused: set[TopicPartition] = set()
        for fetched in fetched_partitions(answer, topology, asked):
            if fetched.error_code is not ErrorCode.NONE:
                refused.add(fetched.where)
            self._take(fetched, topology.topics[fetched.where.topic].topic_id if by_id else None)
        now_s = asyncio.get_running_loop().time()
        for state in states:
            # A session leaves out what has nothing new. That is an answer as well.
            if state.where not in refused:
                state.fetched_at_s, state.waiting_since_s = now_s, None

    def _partition(self, state: PartitionState) -> FetchPartition:
        view = self._cluster.topology.leader_of(state.where)
        return FetchPartition(
            partition=state.where.partition,
            current_leader_epoch=-1 if view is None else view.leader_epoch,
            fetch_offset=state.fetch_offset,
            partition_max_bytes=self._limits.partition_max_bytes,
        )

    def _is_of_another_topic(self, state: PartitionState, topic_id: Uuid) -> bool:
        """Say whether the topic was made again since. Then nothing of it was read, whatever the offset is."""
        known, state.topic_id = state.topic_id, topic_id
        if known is None or known == topic_id:
            return False
        if self._settings.reset_policy == "none":
            state.topic_id = known
            self._put_off([state])
            self.fail(OffsetOutOfRange({state.where: state.fetch_offset}))
        else:
            _logger.warning("the topic of %s was made again: it is read from its beginning", state.where)
            state.need_reset("earliest")
        return True

    def _take(self, fetched: FetchedPartition, topic_id: Uuid | None) -> None:
        state = self._assignment.states.get(fetched.where)
        if state is None or state.status is not Status.READY or state.fetch_offset != fetched.fetch_offset:
            # It was given up or moved on while the answer was under way.
            return
        # The leader knows the topic by this id, also if the offset is not there.
        is_known = fetched.error_code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
        if is_known and topic_id is not None and self._is_of_another_topic(state, topic_id):
            return
        if fetched.error_code is not ErrorCode.NONE:
            self._refused(state, fetched)
            return
        state.high_watermark = fetched.high_watermark
        state.last_stable_offset = fetched.last_stable_offset
        state.log_start_offset = fetched.log_start_offset
        if fetched.nearer_replica >= 0:
            max_age_s = self._settings.metadata_max_age_ms / 1000
            state.read_from(fetched.nearer_replica, asyncio.get_running_loop().time() + max_age_s)
            return
        if not len(fetched.records):
            return
        if memoryview(fetched.records.obj).nbytes > _SHARE_MAX * len(fetched.records):
            # A small piece must not keep the whole answer in memory while it waits.
            fetched = fetched._replace(records=memoryview(bytes(fetched.records)))
        try:
            chunk = Chunk(fetched, self._settings.isolation)
        except RecordsError as error:
            self.fail(damaged(fetched.where, fetched.fetch_offset, str(error)))
            self._put_off([state])
            return
        if chunk.next_offset > fetched.fetch_offset:
            if self._listener is not None:
                tell(
                    self._listener,
                    Stage.FETCHED,
                    *fetched.where,
                    fetched.fetch_offset,
                    next_offset=chunk.next_offset,
                    size_bytes=len(fetched.records),
                )
            state.add(chunk)
            self._arrived()

    def _refused(self, state: PartitionState, fetched: FetchedPartition) -> None:
        code = fetched.error_code
        self._note(BrokerError(code, f"{fetched.where} cannot be read"))
        if state.read_from_leader() and code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may not have it yet. What counts is what the leader says.
            return
        if code in _ELSEWHERE or code.retriable:
            self._put_off([state])
            self._learn({fetched.where.topic})
        elif state.chunks:
            # What was fetched before is as good as ever, and comes first.
            self._put_off([state])
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._settings.reset_policy == "none":
                self._put_off([state])
                self.fail(OffsetOutOfRange({fetched.where: fetched.fetch_offset}))
            else:
                _logger.warning(
                    "%s no longer has offset %d: resetting to %s",
                    fetched.where, fetched.fetch_offset, self._settings.auto_offset_reset,
                )  # fmt: skip
                state.need_reset()
        else:
            self._put_off([state])
            self.fail(BrokerError(code, f"{fetched.where} cannot be read"))

    async def _settle_positions(self, now_s: float) -> None:
        unsettled = [state for state in self._assignment if state.status is not Status.READY]
        try:
            await self._positions.settle(self._assignment, now_s)
        except Exception as bug_or_not:
            error = self._error_for_users(bug_or_not)
            self._note(error)
            if not error.retriable:
                self.fail(error)
        self._put_off([state for state in unsettled if state.status is not Status.READY])
        self._arrived()

    def _note(self, error: ClientError) -> None:
        """Remember what went wrong, also if it is tried again, for those who ask how the consumer is."""
        self.mishap = Mishap(str(error), asyncio.get_running_loop().time())

    def _error_for_users(self, error: Exception) -> ClientError:
        """Return an error for users. A bug of ours is one, too: nobody awaits these tasks."""
        if isinstance(error, ClientError):
            return error
        _logger.error("fetching has failed", exc_info=error)
        return ClientError(f"records could not be fetched: {error!r}")

    def _learn(self, topics: set[str]) -> None:
        async def learn() -> None:
            with contextlib.suppress(ClientError):
                await self._cluster.refresh(topics)

        self._start_chore("metadata", learn())

    def _start_chore(self, name: str, chore: Coroutine[Any, Any, None]) -> None:
        """Do something beside the fetching, unless it is being done."""
        if name in self._chores:
            chore.close()
            return
        task = asyncio.create_task(chore)
        self._chores[name] = task

        def done(_task: "asyncio.Task[None]") -> None:
            self._chores.pop(name, None)
            self.wake()

        task.add_done_callback(done)

    def _put_off(self, states: list[PartitionState]) -> None:
        """Leave partitions alone for a little while, so that a broken one does not keep us busy."""
        until_s = asyncio.get_running_loop().time() + self._settings.retry_backoff_ms / 1000
        for state in states:
            state.wait_until_s = until_s

    def _session(self, node_id: int) -> FetchSession:
        return self._sessions.setdefault(node_id, FetchSession())

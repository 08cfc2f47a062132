"""The share consumer as its users see it: a queue that any number of consumers work on.

async with ShareConsumer("127.0.0.1:9092", group_id="alerts") as consumer:
    consumer.subscribe(["alerts"])
    async for record in consumer:
        handle(record)

A record is delivered to one consumer at a time, and again if that one gives it back, fails or is too slow.
With implicit acknowledgement, what was returned counts as done when the next records are asked for. With
explicit acknowledgement, the user says of each record what became of it. Acknowledgements travel with the
next fetch; `commit` sends them at once and waits.
"""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Self

from ottla.client.cluster import Cluster
from ottla.client.consumer.record import RecordMaker
from ottla.client.errors import BrokerError, ClientError
from ottla.client.opened import Opened
from ottla.client.properties import Properties
from ottla.client.security import cluster_for
from ottla.client.serializers import Deserializer, from_bytes
from ottla.client.share.acknowledgements import Acknowledgements
from ottla.client.share.held import Held, Source
from ottla.client.share.membership import ShareMembership
from ottla.client.share.record import AcknowledgeType, NotHeld, SharePartition, ShareRecord, open_acquired
from ottla.client.share.session import NOT_LEADING, ShareSession
from ottla.client.share.settings import ShareConsumerSettings
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_fetch import PartitionData

_logger = logging.getLogger(__name__)

OnAcknowledged = Callable[[TopicPartition, tuple[int, ...], ClientError | None], Awaitable[None] | None]
"""Told of a partition, offsets in it, and None when they are acknowledged, or why they are not."""
# Until a broker has said how long it locks records: Kafka's default.
_LOCK_TIMEOUT_MS = 30_000
_INT32_MAX = 0x7FFFFFFF


class AcknowledgeFailed(ClientError):
    """Acknowledgements that were not taken. The group delivers these records again."""

    def __init__(self, failed: dict[TopicPartition, ClientError]) -> None:
        reasons = "; ".join(str(error) for error in failed.values())
        super().__init__(f"records were not acknowledged, and are delivered again: {reasons}")
        self.failed = failed


class ShareConsumer(Opened):
    """Works on records as a member of a share group. One task at a time may use it."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        key_deserializer: Deserializer = from_bytes,
        value_deserializer: Deserializer = from_bytes,
        on_acknowledged: OnAcknowledged | None = None,
        **settings: Any,
    ) -> None:
        self._settings = ShareConsumerSettings.of(properties, bootstrap_servers=bootstrap_servers, **settings)
        self._maker = RecordMaker(key_deserializer, value_deserializer, self._settings.check_crcs)
        self._on_acknowledged = on_acknowledged
        self._cluster: Cluster = cluster_for(self._settings)
        self._membership: ShareMembership | None = None
        self._sessions: dict[int, ShareSession] = {}
        self._held = Held()
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self._outcomes: list[tuple[TopicPartition, tuple[int, ...], ClientError | None]] = []
        self._failure: Exception | None = None
        self._turn = 0
        self._news = asyncio.Event()
        self._woken = False
        self._is_open = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ShareRecord:
        while not (records := await self.poll(timeout_ms=3_600_000, max_records=1)):
            if self._woken:
                self._woken = False
                raise StopAsyncIteration
        return records[0]

    async def start(self) -> None:
        """Find the cluster."""
        await self._cluster.start()
        self._is_open = True

    async def close(self) -> None:
        """Send the acknowledgements there are, give back what is still held, leave the group, close.

        What was handed over and is not acknowledged, nor followed by another `poll`, is not done: it is
        delivered again.
        """
        if not self._is_open:
            return
        try:
            await self._leave()
            await self._tell_outcomes()
        finally:
            self._is_open = False
            await self._cluster.close()

    def subscribe(self, topics: Collection[str]) -> None:
        """Work on topics, along with the other members of the group."""
        self._check_open()
        if isinstance(topics, str):
            raise TypeError("subscribe needs a list of topics: write [topic]")
        if not topics:
            raise ClientError("subscribe needs topics; use unsubscribe to read nothing")
        if self._membership is None:
            self._membership = ShareMembership(self._cluster, self._settings, self._news.set)
            self._membership.subscribe(topics)
            self._membership.start()
        else:
            self._membership.subscribe(topics)

    async def unsubscribe(self) -> None:
        """Give back what is held, and leave the group."""
        self._check_open()
        await self._leave()
        await self._tell_outcomes()

    def subscription(self) -> frozenset[str]:
        """Return the topics subscribed to."""
        return frozenset() if self._membership is None else self._membership.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that the group has this member read, along with others."""
        assigned = () if self._membership is None else self._membership.assigned
        return frozenset(partition.where for partition in assigned)

    def acquisition_lock_timeout_ms(self) -> int | None:
        """Return how long records stay locked for this consumer; None before any were acquired."""
        known = [session.lock_timeout_ms for session in self._sessions.values() if session.lock_timeout_ms]
        return min(known, default=None)

    # Records

    async def poll(self, timeout_ms: int = 1000, max_records: int | None = None) -> list[ShareRecord]:
        """Return records as soon as there are some, or none when the time is over.

        What was returned before counts as done, unless acknowledgement is explicit: then each record must
        have been acknowledged. Those acknowledged with RENEW are returned again, locked for longer.
        """
        membership, loop = self._member(), asyncio.get_running_loop()
        records_max = min(self._settings.max_poll_records if max_records is None else max_records, _INT32_MAX)
        deadline_s = loop.time() + timeout_ms / 1000
        self._settle_previous()
        if self._held.has_renewals:
            await self._send_all()
            await self._tell_outcomes()
            if renewed := self._held.renewed():
                return renewed
        await asyncio.sleep(0)
        is_over = False
        while True:
            self._news.clear()
            now_s = loop.time()
            membership.polled(now_s)
            self._raise_failure(membership)
            await self._tell_outcomes()
            if records := self._held.take(records_max, now_s):
                self._send_beside()
                return records
            if self._woken or is_over:
                return []
            wait_until_s = min(deadline_s, self._fetch_more(membership, records_max, now_s))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(wait_until_s):
                    await self._news.wait()
            is_over = loop.time() >= deadline_s

    def wakeup(self) -> None:
        """Make the `poll` that is waiting, or the next one, return nothing at once. `async for` ends."""
        self._woken = True
        self._news.set()

    def acknowledge(self, record: ShareRecord, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Say what became of a record: it is done, should be delivered again, never again, or takes longer.

        This is sent with the next `poll` or `commit`.
        """
        self._check_open()
        if not self._settings.is_explicit:
            raise ClientError(
                "records are acknowledged implicitly: set share.acknowledgement.mode=explicit to acknowledge "
                "each by itself"
            )
        if kind is AcknowledgeType.GAP:
            raise ValueError("a gap is an offset without a record: acknowledge records otherwise")
        self._held.acknowledge(record.where, record.offset, kind)

    def give_back(self, records: Iterable[ShareRecord]) -> None:
        """Let the group deliver records again that were returned and that nobody looked at."""
        for record in records:
            # If it is not held any more, the group has it already.
            with contextlib.suppress(NotHeld):
                self._held.acknowledge(record.where, record.offset, AcknowledgeType.RELEASE)

    async def commit(self) -> None:
        """Send the acknowledgements, and wait until they are taken. With implicit ones, all is done.

        Raises `AcknowledgeFailed` for records that the brokers did not take.
        """
        self._check_open()
        self._accept_implicitly()
        try:
            async with asyncio.timeout(self._settings.default_api_timeout_ms / 1000):
                await self._send_all()
                while any(session.has_pending for session in self._sessions.values()):
                    await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
                    await self._send_all()
        except TimeoutError:
            raise ClientError("acknowledgements were not answered in time: call commit again") from None
        failed = {where: error for where, _, error in self._outcomes if error is not None}
        await self._tell_outcomes(is_raised=True)
        if failed:
            raise AcknowledgeFailed(failed)

    def commit_async(self) -> None:
        """Send the acknowledgements without waiting. `on_acknowledged` is called in a later `poll`."""
        self._check_open()
        self._accept_implicitly()
        self._send_beside()

    # Under the surface

    def _settle_previous(self) -> None:
        self._accept_implicitly()
        if any(self._held.unacknowledged()):
            raise ClientError(
                "records of the last poll are not acknowledged: with share.acknowledgement.mode=explicit, "
                "acknowledge each of them before the next poll"
            )

    def _accept_implicitly(self) -> None:
        if not self._settings.is_explicit:
            self._held.accept_all()

    def _fetch_more(self, membership: ShareMembership, records_max: int, now_s: float) -> float:
        """Ask the leaders for records. Returns when to look again at those that must wait."""
        by_leader: dict[int, set[SharePartition]] = {}
        for partition in membership.assigned:
            view = self._cluster.topology.leader_of(partition.where)
            if view is None:
                self._refresh_beside(membership)
            else:
                by_leader.setdefault(view.leader, set()).add(partition)
        look_again_s = float("inf")
        for node_id in self._in_turn(sorted(by_leader)):
            session = self._session(node_id, membership)
            if node_id in self._fetching:
                continue
            if session.wait_until_s > now_s:
                look_again_s = min(look_again_s, session.wait_until_s)
                continue
            work = self._fetch(session, frozenset(by_leader[node_id]), records_max)
            self._fetching[node_id] = asyncio.create_task(work)
        self._send_beside(besides=by_leader)
        return look_again_s

    def _in_turn(self, nodes: list[int]) -> Iterable[int]:
        """Return the leaders to ask: one at a time if no more records may be acquired than were asked for."""
        if not self._settings.limits_records or not nodes:
            return nodes
        if self._fetching:
            return ()
        self._turn += 1
        return (nodes[self._turn % len(nodes)],)

    async def _fetch(
        self, session: ShareSession, wanted: frozenset[SharePartition], records_max: int
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            answer = await session.fetch(wanted, records_max)
            locked_until_s = loop.time() + (session.lock_timeout_ms or _LOCK_TIMEOUT_MS) / 1000
            for partition, data in answer.items():
                self._arrived(session, partition, data, locked_until_s)
        except ClientError as error:
            session.wait_until_s = loop.time() + self._settings.retry_backoff_ms / 1000
            if not error.retriable and not _is_of_session(error):
                self._failure = error
            elif isinstance(error, BrokerError):
                _logger.info("cannot fetch from broker %d: %s", session.node_id, error)
            else:
                self._refresh_beside(self._membership)
        except Exception as error:
            # A bug of ours, which `poll` has to tell: nobody awaits this task.
            self._failure = error
        finally:
            self._fetching.pop(session.node_id, None)
            self._news.set()

    def _arrived(
        self, session: ShareSession, partition: SharePartition, data: PartitionData, locked_until_s: float
    ) -> None:
        code = data.error_code
        if code is ErrorCode.NONE:
            if data.acquired_records:
                acquired = open_acquired(self._maker, partition, data)
                if acquired.unseen:
                    session.pending_of(partition).add_unseen(acquired.unseen)
                source = Source(partition, session, session.generation)
                self._held.arrive(source, acquired.records, locked_until_s, acquired.failure)
            return
        session.wait_until_s = asyncio.get_running_loop().time() + self._settings.retry_backoff_ms / 1000
        if code in NOT_LEADING:
            self._refresh_beside(self._membership)
        elif not code.retriable:
            self._failure = BrokerError(code, f"cannot read {partition.where}", data.error_message)

    def _refresh_beside(self, membership: ShareMembership | None) -> None:
        if membership is not None:
            self._beside("refresh", lambda: self._refresh(membership))

    async def _refresh(self, membership: ShareMembership) -> None:
        await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
        await self._cluster.refresh(membership.topics)
        self._news.set()

    def _session(self, node_id: int, membership: ShareMembership) -> ShareSession:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = ShareSession(
                self._cluster, node_id, membership.member_id, self._settings, self._outcome
            )
        return session

    def _outcome(self, partition: SharePartition, acks: Acknowledgements, error: ClientError | None) -> None:
        if error is not None:
            self._held.drop(partition, acks.offsets)
        if acks.types:
            self._outcomes.append((partition.where, acks.offsets, error))

    def _send_beside(self, besides: Collection[int] = ()) -> None:
        """Send acknowledgements in the background, but of brokers that get them with a fetch."""
        for node_id, session in self._sessions.items():
            if session.has_pending and node_id not in besides and not session.is_busy:
                self._beside(f"acknowledge {node_id}", session.acknowledge)

    async def _send_all(self) -> None:
        """Send all acknowledgements, and wait. Outcomes are kept; a call that is cancelled spoils nothing."""
        work = [asyncio.create_task(_quietly(session.acknowledge)) for session in self._sessions.values()]
        if work:
            await asyncio.shield(asyncio.gather(*work))

    def _beside(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        if any(task.get_name() == name for task in self._chores):
            return
        task = asyncio.create_task(_quietly(work), name=name)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        task.add_done_callback(lambda _: self._news.set())

    async def _tell_outcomes(self, *, is_raised: bool = False) -> None:
        while self._outcomes:
            # One by one: if a callback fails, or the call is cancelled, the others follow with the next call.
            where, offsets, error = self._outcomes.pop(0)
            if self._on_acknowledged is not None:
                result = self._on_acknowledged(where, offsets, error)
                if inspect.isawaitable(result):
                    await result
            elif error is not None and not is_raised:
                _logger.warning(
                    "%d records of %s were not acknowledged, and are delivered again: %s",
                    len(offsets), where, error,
                )  # fmt: skip

    def _raise_failure(self, membership: ShareMembership) -> None:
        if membership.failure is not None:
            raise membership.failure
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def _leave(self) -> None:
        """Close the sessions, which gives back what is held, then leave the group.

        If this is cancelled, nothing goes on, and the brokers give back what is held when its locks time out.
        """
        membership, self._membership = self._membership, None
        sessions, self._sessions = self._sessions, {}
        running = [*self._fetching.values(), *self._chores]
        try:
            await asyncio.gather(*(_quietly(session.close) for session in sessions.values()))
            await asyncio.gather(*running, return_exceptions=True)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._held = Held()
            if membership is not None:
                try:
                    await membership.stop()
                finally:
                    await membership.leave()

    def _member(self) -> ShareMembership:
        self._check_open()
        if self._membership is None:
            raise ClientError("the consumer is not subscribed: call subscribe before poll")
        return self._membership

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClientError(
                "the consumer is not open: use `async with ShareConsumer(...)`, or call `start`"
            )


def _is_of_session(error: ClientError) -> bool:
    """Say whether an error ends a session: the next fetch opens another."""
    return isinstance(error, BrokerError) and error.error_code in (
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    )


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    """Do something whose failure is kept elsewhere: acknowledgements tell their outcome."""
    with contextlib.suppress(ClientError):
        await work()

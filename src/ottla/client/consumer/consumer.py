"""The consumer as its users see it.

async with Consumer("127.0.0.1:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
    consumer.subscribe(["payments"])
    async for record in consumer:
        handle(record)
        await consumer.commit()

Records are fetched ahead in the background. Everything that changes what is read happens inside `poll` (which
`async for` calls for every record): partitions given up and taken on, callbacks, automatic commits. So
whenever it is called, what it returned before counts as handled.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Collection, Iterable, Mapping
from typing import Any, Final, Self, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignment import Assignment, PartitionState, Position, Status
from ottla.client.consumer.broker_led import BrokerLedMembership
from ottla.client.consumer.classic import ClassicMembership
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.consumer.handing_over import HandingOver
from ottla.client.consumer.health import ConsumerHealth, Mishap, PartitionHealth
from ottla.client.consumer.membership import Callback, Handover, Membership, Subscribed
from ottla.client.consumer.offsets import CommitFailed, GroupOffsets
from ottla.client.consumer.positions import Positions
from ottla.client.consumer.record import ConsumerRecord, RecordMaker
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import ClientError, RequestTimedOut
from ottla.client.fetching import IsolationLevel
from ottla.client.group import GroupMetadata, OffsetAndMetadata
from ottla.client.journey import Listener, Stage, tell
from ottla.client.list_offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from ottla.client.opened import Opened
from ottla.client.properties import Properties
from ottla.client.security import cluster_for
from ottla.client.serializers import Deserializer, from_bytes
from ottla.model.ids import TopicPartition

_logger = logging.getLogger(__name__)

# How long records may be handed over one by one before the rest of the client has its turn.
_BREATH_S: Final = 0.01

T = TypeVar("T")
Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


class Consumer(Opened):
    """Reads records, alone or as a member of a group. One task at a time may ask it for records."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        key_deserializer: Deserializer = from_bytes,
        value_deserializer: Deserializer = from_bytes,
        journey: Listener | None = None,
        **settings: Any,
    ) -> None:
        self._settings = ConsumerSettings.of(properties, bootstrap_servers=bootstrap_servers, **settings)
        self._maker = RecordMaker(key_deserializer, value_deserializer, self._settings.check_crcs)
        self._journey = journey
        self._cluster: Cluster = cluster_for(
            self._settings, allow_auto_topic_creation=self._settings.allow_auto_create_topics
        )
        self._offsets = (
            None if self._settings.group_id is None else GroupOffsets(self._cluster, self._settings.group_id)
        )
        self._assignment = Assignment(self._look_again)
        self._handover = Handover(self._assignment, self._commit_before_revoking)
        self._records = HandingOver(self._assignment, self._maker)
        self._membership: Membership | None = None
        self._fetcher: Fetcher | None = None
        self._news = asyncio.Event()
        # `poll` has an event of its own: a call that waits for a position must not take its news away.
        self._placed = asyncio.Event()
        self._committing: asyncio.Task[None] | None = None
        self._commit_due_s = 0.0
        self._breathe_due_s = 0.0
        self._is_polling = False
        self._polled_at_s: float | None = None
        self._commit_mishap: Mishap | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        fetcher, membership = self._running(), self._membership
        now_s = self._polled_at_s = asyncio.get_running_loop().time()
        if membership is not None:
            membership.polled(now_s)
        if now_s >= self._breathe_due_s:
            await self._breathe(now_s)
        self._refuse_two_at_once()
        if fetcher.failure is None and (membership is None or not membership.needs_work):
            if now_s >= self._commit_due_s:
                self._maybe_commit(now_s)
            record = self._records.take_one()
            if record is not None:
                if self._journey is not None:
                    self._tell_handed_over([record])
                return record
        while not (records := await self.poll(timeout_ms=3_600_000, max_records=1)):
            pass
        return records[0]

    async def start(self) -> None:
        """Find the cluster."""
        if self._fetcher is not None:
            raise ClientError("the consumer is open already: `start` was called twice")
        await self._cluster.start()
        positions = Positions(
            self._cluster,
            self._settings,
            self._offsets,
            lambda: None if self._membership is None else self._membership.metadata_for_fetch,
        )
        self._fetcher = Fetcher(
            self._cluster, self._settings, self._assignment, positions, self._arrived, self._journey
        )
        self._fetcher.start()

    async def close(self) -> None:
        """Commit if that is automatic, leave the group, close."""
        fetcher = self._fetcher
        if fetcher is None:
            return
        try:
            await self._leave()
        finally:
            self._fetcher = None
            try:
                await fetcher.stop()
            finally:
                await self._cluster.close()

    # What to read

    def subscribe(
        self,
        topics: Collection[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Read topics, by name or by a regular expression (RE2) of whole names, sharing them with the group.

        The callbacks run inside `poll`, with the partitions concerned; they may be coroutines. `on_lost` is
        for partitions that others may have already; without it, `on_revoked` is called for those too.
        """
        self._running()
        if isinstance(topics, str):
            raise TypeError("subscribe needs a list of topics: write [topic]")
        if self._settings.group_id is None:
            raise ClientError("subscribe needs a group.id; without a group, use assign")
        if not topics and pattern is None:
            raise ClientError("subscribe needs topics or a pattern; use unsubscribe to read nothing")
        self._handover.subscribed = Subscribed(topics, pattern, on_assigned, on_revoked, on_lost)
        if self._membership is None:
            self._assignment.replace((), Status.NEEDS_COMMITTED)
            kind = BrokerLedMembership if self._settings.group_protocol == "consumer" else ClassicMembership
            self._membership = kind(self._cluster, self._settings, self._handover, self._news.set)
            self._membership.start()
        else:
            self._membership.subscription_changed()

    async def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        try:
            await self._leave()
        finally:
            self._assignment.replace((), Status.NEEDS_COMMITTED)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, shared with nobody. With a group.id, from where that group left off."""
        self._running()
        if self._membership is not None:
            raise ClientError("this consumer is subscribed to topics: call unsubscribe before assign")
        status = Status.NEEDS_RESET if self._offsets is None else Status.NEEDS_COMMITTED
        self._assignment.replace(partitions, status)

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read now."""
        return self._assignment.partitions()

    def subscription(self) -> frozenset[str]:
        """Return the topics subscribed to by name."""
        return self._handover.subscribed.topics

    # Records

    async def poll(self, timeout_ms: int = 1000, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records as soon as there are some, or none when the time is over."""
        self._refuse_two_at_once()
        self._is_polling = True
        try:
            return await self._poll(timeout_ms, max_records)
        finally:
            self._is_polling = False
            self._polled_at_s = asyncio.get_running_loop().time()

    async def _poll(self, timeout_ms: int, max_records: int | None) -> list[ConsumerRecord]:
        fetcher, loop = self._running(), asyncio.get_running_loop()
        records_max = self._settings.max_poll_records if max_records is None else max_records
        deadline_s = loop.time() + timeout_ms / 1000
        await self._breathe(loop.time())
        while True:
            self._news.clear()
            now_s = loop.time()
            self._maybe_commit(now_s)
            if self._membership is not None:
                self._membership.polled(now_s)
                if not await self._membership.is_free(deadline_s):
                    return []
                if self._membership.needs_work:
                    await self._membership.work()
            records = self._records.take(records_max)
            if records:
                if self._journey is not None:
                    self._tell_handed_over(records)
                return records
            if fetcher.failure is not None:
                failure, fetcher.failure = fetcher.failure, None
                raise failure
            until_s = min(deadline_s, self._next_commit_s(now_s))
            if self._membership is not None:
                # A long wait counts as polling: without this the member would leave the group meanwhile.
                until_s = min(until_s, now_s + self._settings.max_poll_interval_ms / 3000)
            if self._membership is not None and self._membership.needs_work:
                # It could not be done yet, and nobody may tell when it can.
                until_s = min(until_s, loop.time() + self._settings.retry_backoff_max_ms / 1000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await self._news.wait()
            if loop.time() >= deadline_s and not self._news.is_set():
                return []

    async def get_many(
        self, timeout_ms: int = 1000, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Do as `poll` does, and return the records by partition."""
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in await self.poll(timeout_ms, max_records):
            by_partition.setdefault(record.where, []).append(record)
        return by_partition

    # Where to read

    def seek(self, where: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Go on at an offset."""
        if offset < 0:
            raise ValueError(f"{offset} is not an offset: use seek_to_beginning or seek_to_end")
        self._assignment.state(where).seek(Position(offset, leader_epoch))
        self._forget_failure()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first record there is; of all partitions, unless some are named."""
        self._seek_to("earliest", partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on at what is written from now on; of all partitions, unless some are named."""
        self._seek_to("latest", partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these until `resume`. In a group they stay assigned."""
        for where in partitions:
            self._assignment.state(where).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these again."""
        for where in partitions:
            self._assignment.state(where).is_paused = False
        self._news.set()
        self._look_again()

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return frozenset(state.where for state in self._assignment if state.is_paused)

    async def position(self, where: TopicPartition) -> int:
        """Return the offset of the next record to be returned, waiting until it is known."""
        state = self._assignment.state(where)
        fetcher = self._running()
        try:
            async with asyncio.timeout(self._settings.default_api_timeout_ms / 1000):
                while not _is_placed(state):
                    if fetcher.failure is not None:
                        failure, fetcher.failure = fetcher.failure, None
                        raise failure
                    self._placed.clear()
                    await self._placed.wait()
        except TimeoutError:
            raise ClientError(f"the position in {where} is not known yet: {state.status.value}") from None
        return state.position.offset

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all positions that are known: what `commit` would store."""
        return {
            state.where: OffsetAndMetadata(state.position.offset, "", state.position.leader_epoch)
            for state in self._assignment
            if _is_placed(state)
        }

    def lag(self, where: TopicPartition) -> int | None:
        """Return how many offsets there are from the position to the end, as far as the last fetch told."""
        state = self._assignment.state(where)
        end = state.high_watermark if self._settings.isolation == 0 else state.last_stable_offset
        return None if end < 0 or not _is_placed(state) else max(0, end - state.position.offset)

    def health(self) -> ConsumerHealth:
        """Say how this consumer is, from what it knows already: no broker is asked.

        For a health endpoint: `is_healthy` and `sentence` say it in short, `as_json` says it all.
        """
        now_s = asyncio.get_running_loop().time()
        fetcher, membership = self._fetcher, self._membership
        sources = (fetcher, membership)
        mishaps = [self._commit_mishap, *(source.mishap for source in sources if source is not None)]
        last = max((item for item in mishaps if item is not None), key=lambda item: item.at_s, default=None)
        failures = [source.failure for source in sources if source is not None and source.failure is not None]
        polled_s_ago = None if self._polled_at_s is None else now_s - self._polled_at_s
        return ConsumerHealth(
            is_open=fetcher is not None,
            group=None if membership is None else membership.health(now_s),
            partitions=tuple(self._partition_health(state, now_s) for state in self._assignment),
            polled_s_ago=0.0 if self._is_polling else polled_s_ago,
            last_error=None if last is None else last.text,
            last_error_s_ago=None if last is None else now_s - last.at_s,
            failure=str(failures[0]) if failures else None,
            fetch_timeout_s=(self._settings.request_timeout_ms + self._settings.fetch_max_wait_ms) / 1000,
        )

    def _partition_health(self, state: PartitionState, now_s: float) -> PartitionHealth:
        end = state.high_watermark if self._settings.isolation == 0 else state.last_stable_offset
        fetched_s, since_s = state.fetched_at_s, state.waiting_since_s
        return PartitionHealth(
            *state.where,
            position=state.position.offset if _is_placed(state) else None,
            end=None if end < 0 else end,
            fetched_s_ago=None if fetched_s is None else now_s - fetched_s,
            waiting_s=None if since_s is None or state.is_paused else now_s - since_s,
            is_paused=state.is_paused,
        )

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        return await self._places(partitions, EARLIEST)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, includes_open: bool = False
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record that this consumer may see, of each partition.

        With `includes_open`, the offset after the last record, also of transactions that are not ended yet.
        A consumer of committed records that gets there has seen all that is committed now.
        """
        return await self._places(
            partitions, LATEST, IsolationLevel.READ_UNCOMMITTED if includes_open else None
        )

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset | None]:
        """Return the first record at or after a time in milliseconds, of each partition, or None."""
        self._running()
        found = await self._in_time(list_offsets(self._cluster, times, self._settings.isolation))
        return {where: found.get(where) for where in times}

    async def partitions_for(self, topic: str) -> frozenset[TopicPartition]:
        """Return the partitions of a topic."""
        self._running()
        view = (await self._in_time(self._cluster.refresh([topic]))).topics.get(topic)
        return frozenset(TopicPartition(topic, number) for number in (view.partitions if view else ()))

    # How far the group is

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Store offsets to go on from: those given, or the positions. Returns when they are stored."""
        self._running()
        if self._offsets is None:
            raise ClientError("commit needs a group.id")
        chosen = self.positions() if offsets is None else _with_metadata(offsets)
        if chosen and self._membership is not None and self._membership.metadata.generation < 0:
            raise CommitFailed("this consumer is not in its group now: call poll to join again")
        await self._in_time(self._offsets.commit(chosen, self.group_metadata))
        if self._journey is not None:
            for where, item in chosen.items():
                tell(self._journey, Stage.COMMITTED, *where, item.offset, group_id=self._settings.group_id)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has stored for each partition; None: nothing."""
        self._running()
        if self._offsets is None:
            raise ClientError("committed needs a group.id")
        wanted = list(partitions)
        found = await self._in_time(self._offsets.fetch(wanted))
        return {where: found.get(where) for where in wanted}

    def group_metadata(self) -> GroupMetadata:
        """Return who this member is, for `Producer.send_offsets_to_transaction`."""
        if self._membership is not None:
            return self._membership.metadata
        if self._settings.group_id is None:
            raise ClientError("a consumer without a group.id is not a member of a group")
        return GroupMetadata(self._settings.group_id)

    async def _leave(self) -> None:
        membership = self._membership
        try:
            if self._committing is not None:
                await asyncio.wait([self._committing])
            if membership is None:
                await self._commit_before_revoking()
            else:
                # As a member still, with heartbeats: what is committed here, also by a callback, must count.
                await membership.give_up_all()
        finally:
            if self._committing is not None:
                self._committing.cancel()
            if membership is not None:
                self._membership = None
                try:
                    await membership.stop()
                finally:
                    await membership.leave()

    async def _breathe(self, now_s: float) -> None:
        """Let heartbeats and fetches have their turn, also if the user never waits for anything."""
        self._breathe_due_s = now_s + _BREATH_S
        await asyncio.sleep(0)

    def _maybe_commit(self, now_s: float) -> None:
        """Start an automatic commit if one is due. It runs beside; what it stores was handled."""
        if now_s < self._next_commit_s(now_s):
            return
        self._commit_due_s = now_s + self._settings.auto_commit_interval_ms / 1000
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_quietly(self.positions()))

    def _next_commit_s(self, now_s: float) -> float:
        if self._offsets is None or not self._settings.enable_auto_commit:
            self._commit_due_s = float("inf")
        elif self._commit_due_s == 0.0:
            self._commit_due_s = now_s + self._settings.auto_commit_interval_ms / 1000
        return self._commit_due_s

    async def _commit_before_revoking(self) -> None:
        if self._offsets is not None and self._settings.enable_auto_commit:
            await self._commit_quietly(self.positions())

    async def _in_time(self, call: Awaitable[T]) -> T:
        timeout_ms = self._settings.default_api_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await call
        except TimeoutError:
            raise RequestTimedOut(
                f"the brokers did not answer within default.api.timeout.ms ({timeout_ms}): try again later"
            ) from None

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit on behalf of the user, who did not ask for it, so errors go only to the log."""
        try:
            await self.commit(offsets)
        except ClientError as error:
            self._commit_mishap = Mishap(str(error), asyncio.get_running_loop().time())
            _logger.warning(
                "cannot commit the offsets of group %r automatically: %s", self._settings.group_id, error
            )

    def _seek_to(self, place: str, partitions: Collection[TopicPartition]) -> None:
        for where in partitions or self._assignment.partitions():
            self._assignment.state(where).need_reset(place)
        self._forget_failure()

    def _forget_failure(self) -> None:
        """A seek may be the answer to what went wrong."""
        self._running().failure = None
        self._look_again()

    async def _places(
        self, partitions: Iterable[TopicPartition], place: int, isolation: IsolationLevel | None = None
    ) -> dict[TopicPartition, int]:
        self._running()
        seen = self._settings.isolation if isolation is None else isolation
        found = await self._in_time(list_offsets(self._cluster, dict.fromkeys(partitions, place), seen))
        return {where: item.offset for where, item in found.items()}

    def _refuse_two_at_once(self) -> None:
        if self._is_polling:
            raise ClientError(
                "another task, or the poll that called this callback, is asking this consumer for records: "
                "only one at a time may call poll or iterate"
            )

    def _arrived(self) -> None:
        """There are records, or positions, or an error."""
        self._news.set()
        self._placed.set()

    def _look_again(self) -> None:
        if self._fetcher is not None:
            self._fetcher.wake()

    def _tell_handed_over(self, records: list[ConsumerRecord]) -> None:
        assert self._journey is not None
        for record in records:
            tell(self._journey, Stage.HANDED_OVER, record.topic, record.partition, record.offset)

    def _running(self) -> Fetcher:
        if self._fetcher is None:
            raise ClientError("the consumer is not open: use `async with Consumer(...)`, or call `start`")
        return self._fetcher


def _is_placed(state: PartitionState) -> bool:
    return state.status in (Status.READY, Status.NEEDS_CHECK) and state.position.offset >= 0


def _with_metadata(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        where: item if isinstance(item, OffsetAndMetadata) else OffsetAndMetadata(item)
        for where, item in offsets.items()
    }

"""Being a member of a group: what both protocols share.

A member has two sides. One runs all the time: heartbeats, and watching whether the user still asks for
records (max.poll.interval.ms). The other runs only inside `poll`, in the task of the user: giving partitions
up and taking them on, with the user's callbacks. So a callback never runs while records are being handled,
and what was handed over before it has been handled.
"""

import asyncio
import contextlib
import inspect
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from ottla.client.cluster import GROUP, Cluster
from ottla.client.consumer.assignment import Assignment, Status
from ottla.client.consumer.offsets import MOVED
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import BrokerError, ClientError
from ottla.client.group import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)

Callback = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]


class Subscribed:
    """What the user subscribed to: names, or a pattern of names."""

    def __init__(
        self,
        topics: Collection[str] = (),
        pattern: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        self.topics = frozenset(topics)
        self.pattern = pattern
        self.on_assigned = on_assigned
        self.on_revoked = on_revoked
        self.on_lost = on_lost


class Handover:
    """Gives partitions up and takes them on, for a membership that decided to."""

    def __init__(self, assignment: Assignment, commit: Callable[[], Awaitable[None]]) -> None:
        self.assignment = assignment
        self.subscribed = Subscribed()
        self._commit = commit

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """What is assigned now."""
        return self.assignment.partitions()

    async def take_on(self, added: frozenset[TopicPartition]) -> None:
        """Begin to read these too."""
        self.assignment.replace(self.owned | added, Status.NEEDS_COMMITTED)
        await _call(self.subscribed.on_assigned, added)

    async def give_up(self, revoked: frozenset[TopicPartition]) -> None:
        """Stop reading these: commit what was handled, tell the user, let go."""
        for where in revoked:
            # Nothing more of it is handed over, even if the callback asks for records.
            self.assignment.state(where).is_paused = True
        await self._commit()
        try:
            await _call(self.subscribed.on_revoked, revoked)
        finally:
            self.assignment.replace(self.owned - revoked, Status.NEEDS_COMMITTED)

    async def lose(self, lost: frozenset[TopicPartition]) -> None:
        """Let go of what others may have already: nothing can be committed any more."""
        self.assignment.replace(self.owned - lost, Status.NEEDS_COMMITTED)
        await _call(self.subscribed.on_lost or self.subscribed.on_revoked, lost)


class Membership(ABC):
    """A member of a group, by either protocol."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        handover: Handover,
        wake: Callable[[], None],
    ) -> None:
        assert settings.group_id is not None
        self.group_id = settings.group_id
        self.failure: ClientError | None = None
        self._cluster = cluster
        self._settings = settings
        self._handover = handover
        self._wake_poll = wake
        self._lost = False
        self._polled_at_s = asyncio.get_running_loop().time()
        self._beat_soon = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        self._learned_at_s = self._polled_at_s

    @property
    @abstractmethod
    def metadata(self) -> GroupMetadata:
        """Who this member is at the moment."""

    @property
    def metadata_for_fetch(self) -> GroupMetadata | None:
        """Who this member is where it asks for offsets. Classic members do not say."""
        return None

    @property
    @abstractmethod
    def needs_work(self) -> bool:
        """Say whether `work` has something to do."""

    @abstractmethod
    async def work(self) -> None:
        """Do what has to be done inside `poll`. Returns without waiting for others."""

    @abstractmethod
    def subscription_changed(self) -> None:
        """Tell the group of new topics."""

    @abstractmethod
    async def _beat(self) -> float:
        """Send a heartbeat if one is due. Returns the seconds until the next one."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave the group, if it knows us."""

    def start(self) -> None:
        """Begin to beat."""
        self._beating = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop beating."""
        if self._beating is not None:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None

    def polled(self, now_s: float) -> None:
        """Take note that the user asks for records."""
        self._polled_at_s = now_s

    async def _run(self) -> None:
        pause_s = 0.0
        while self.failure is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._beat_soon.wait()
            self._beat_soon.clear()
            try:
                await self._look_at_topics()
                pause_s = await self._beat()
            except ClientError as error:
                if not error.retriable:
                    self._fail(error)
                pause_s = self._settings.retry_backoff_ms / 1000
            except Exception as error:
                # Without heartbeats the group goes on without us: that must not happen in silence.
                _logger.exception("heartbeats of group %r have stopped", self.group_id)
                self._fail(ClientError(f"heartbeats of group {self.group_id!r} have stopped: {error!r}"))

    async def _look_at_topics(self) -> None:
        """Learn anew about the topics, from time to time, or soon while one is missing."""
        now_s = asyncio.get_running_loop().time()
        subscribed = self._handover.subscribed
        known = self._cluster.topology.topics
        is_missing = any(name not in known or not known[name].partitions for name in subscribed.topics)
        max_age_s = self._settings.metadata_max_age_ms / 1000
        age_s = now_s - self._learned_at_s
        if age_s > max_age_s or (is_missing and age_s > self._settings.retry_backoff_max_ms / 1000):
            self._learned_at_s = now_s
            await self._cluster.refresh(None if subscribed.pattern is not None else subscribed.topics)
            self._topics_learned()

    @abstractmethod
    def _topics_learned(self) -> None:
        """React to new topics and partitions."""

    def _is_overdue(self) -> bool:
        """Say whether the user has not asked for records for too long."""
        silence_s = asyncio.get_running_loop().time() - self._polled_at_s
        if silence_s * 1000 < self._settings.max_poll_interval_ms:
            return False
        _logger.warning(
            "poll was not called within max.poll.interval.ms (%d): leaving group %r so that the other "
            "members can continue. Lower max.poll.records, or raise max.poll.interval.ms",
            self._settings.max_poll_interval_ms,
            self.group_id,
        )
        return True

    def _lose(self, why: str) -> None:
        """Take note that the group does not count us any more. The user learns it in the next `poll`."""
        _logger.warning("group %r has removed this member: %s", self.group_id, why)
        self._lost = True
        self._wake_poll()

    def _fail(self, error: ClientError) -> None:
        self.failure = error
        self._wake_poll()

    async def _handle_loss(self) -> None:
        if self._lost:
            self._lost = False
            if self._handover.owned:
                await self._handover.lose(self._handover.owned)

    async def give_up_all(self) -> None:
        """Give up everything while the group still counts us: the first step of leaving it."""
        await self._handle_loss()
        if owned := self._handover.owned:
            await self._handover.give_up(owned)

    async def _ask_coordinator(
        self, request: Any, lane: int = 0, timeout_s: float | None = None, at_most: int | None = None
    ) -> Any:
        """Ask once. When the coordinator moved or is gone, the next try looks for it anew."""
        node_id = await self._cluster.coordinator(GROUP, self.group_id)
        try:
            connection = await self._cluster.connection(node_id, lane)
            answer = await connection.ask(
                request, connection.version_for(type(request), at_most), timeout_s=timeout_s
            )
        except ClientError:
            self._cluster.forget_coordinator(GROUP, self.group_id)
            raise
        if answer.error_code in MOVED:
            self._cluster.forget_coordinator(GROUP, self.group_id)
        return answer

    def _refusal(self, code: ErrorCode, detail: str | None = None) -> BrokerError:
        return BrokerError(code, f"group {self.group_id!r} refused this member", detail)


def matching_topics(pattern: str, names: Collection[str], internal: Collection[str]) -> frozenset[str]:
    """Return the topics whose whole name the pattern matches."""
    compiled = re.compile(pattern)
    return frozenset(name for name in names if name not in internal and compiled.fullmatch(name))


async def _call(callback: Callback | None, partitions: frozenset[TopicPartition]) -> None:
    if callback is not None:
        result = callback(partitions)
        if inspect.isawaitable(result):
            await result

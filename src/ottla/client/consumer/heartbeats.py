"""Heartbeats of a member of a group, whatever kind of group it is.

A task runs all the time: it sends heartbeats, learns about topics now and then, and watches whether the user
still asks for records (max.poll.interval.ms). What went wrong for good is kept in `failure`.
"""

import asyncio
import base64
import contextlib
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

from ottla.client import surroundings
from ottla.client.cluster import GROUP, Cluster
from ottla.client.consumer.health import Mishap
from ottla.client.consumer.offsets import MOVED
from ottla.client.errors import BrokerError, ClientError
from ottla.client.properties import CommonSettings
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)


class Heartbeats(ABC):
    """The side of a member that runs all the time."""

    def __init__(
        self,
        cluster: Cluster,
        settings: CommonSettings,
        group_id: str,
        max_poll_interval_ms: int,
        wake: Callable[[], None],
    ) -> None:
        self.group_id = group_id
        self.failure: ClientError | None = None
        self._cluster = cluster
        self.mishap: Mishap | None = None
        self.polled_at_s = asyncio.get_running_loop().time()
        """When the user last asked for records, or began to be a member."""
        self.heard_at_s: float | None = None
        """When the coordinator last answered without an error."""
        self._common = settings
        self._max_poll_interval_ms = max_poll_interval_ms
        self._wake_poll = wake
        self._beat_soon = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        self._learning: asyncio.Task[None] | None = None
        self._learned_at_s = self.polled_at_s

    @abstractmethod
    async def _beat(self) -> float:
        """Send a heartbeat if one is due. Returns the seconds until the next one."""

    @abstractmethod
    def _named_topics(self) -> Collection[str]:
        """Return the topics that are subscribed to by name."""

    def _subscribes_to_all(self) -> bool:
        """Say whether any topic may matter, because a pattern chooses them."""
        return False

    @abstractmethod
    def _topics_learned(self) -> None:
        """React to new topics and partitions."""

    def start(self) -> None:
        """Begin to beat."""
        self._beating = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop beating."""
        tasks = [task for task in (self._beating, self._learning) if task is not None]
        self._beating = self._learning = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def polled(self, now_s: float) -> None:
        """Take note that the user asks for records."""
        self.polled_at_s = now_s

    async def _run(self) -> None:
        pause_s = 0.0
        while self.failure is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._beat_soon.wait()
            self._beat_soon.clear()
            try:
                self._look_at_topics()
                pause_s = await self._beat()
            except ClientError as error:
                self.note(error)
                if not error.retriable:
                    self._fail(error)
                pause_s = self._common.retry_backoff_ms / 1000
            except Exception as error:
                # Without heartbeats the group goes on without us: that must not happen in silence.
                _logger.exception("heartbeats of group %r have stopped", self.group_id)
                self._fail(ClientError(f"heartbeats of group {self.group_id!r} have stopped: {error!r}"))

    def _look_at_topics(self) -> None:
        """Learn again about the topics, from time to time, or soon while one is missing.

        Heartbeats do not wait for that: the broker that answers may be another one, and be slow.
        """
        if self._learning is not None and not self._learning.done():
            return
        now_s = asyncio.get_running_loop().time()
        names = self._named_topics()
        known = self._cluster.topology.topics
        is_missing = any(name not in known or not known[name].partitions for name in names)
        max_age_s = self._common.metadata_max_age_ms / 1000
        age_s = now_s - self._learned_at_s
        if age_s > max_age_s or (is_missing and age_s > self._common.retry_backoff_max_ms / 1000):
            self._learned_at_s = now_s
            self._learning = asyncio.create_task(self._learn(None if self._subscribes_to_all() else names))

    async def _learn(self, names: Collection[str] | None) -> None:
        try:
            await self._cluster.refresh(names)
            self._topics_learned()
        except ClientError as error:
            if not error.retriable:
                self._fail(error)

    def _is_overdue(self) -> bool:
        """Say whether the user has not asked for records for too long."""
        silence_s = asyncio.get_running_loop().time() - self.polled_at_s
        if silence_s * 1000 < self._max_poll_interval_ms:
            return False
        _logger.warning(
            "poll was not called within max.poll.interval.ms (%d): leaving group %r so that the other "
            "members can continue. Lower max.poll.records, or raise max.poll.interval.ms",
            self._max_poll_interval_ms,
            self.group_id,
        )
        return True

    def note(self, error: ClientError) -> None:
        """Remember what went wrong, also if it is tried again, for those who ask how the consumer is."""
        self.mishap = Mishap(str(error), asyncio.get_running_loop().time())

    def _fail(self, error: ClientError) -> None:
        self.note(error)
        self.failure = error
        self._wake_poll()

    async def _ask_coordinator(
        self, request: Any, lane: int = 0, timeout_s: float | None = None, at_most: int | None = None
    ) -> Any:
        """Ask once. When the coordinator moved or is gone, the next try looks for it again."""
        node_id = await self._cluster.coordinator(GROUP, self.group_id)
        try:
            connection = await self._cluster.connection(node_id, lane)
            answer = await connection.ask(
                request, connection.version_for(type(request), at_most), timeout_s=timeout_s
            )
        except ClientError as error:
            self.note(error)
            self._cluster.forget_coordinator(GROUP, self.group_id)
            raise
        if answer.error_code is ErrorCode.NONE:
            self.heard_at_s = asyncio.get_running_loop().time()
        if answer.error_code in MOVED:
            self._cluster.forget_coordinator(GROUP, self.group_id)
        return answer

    def _refusal(self, code: ErrorCode, detail: str | None = None) -> BrokerError:
        return BrokerError(code, f"group {self.group_id!r} refused this member", detail)


def new_member_id() -> str:
    """Return a random id, written as Kafka's clients write theirs."""
    made = uuid.UUID(bytes=surroundings.current.random.randbytes(16), version=4)
    return base64.urlsafe_b64encode(made.bytes).decode().rstrip("=")

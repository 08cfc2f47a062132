"""Being a member of a group: what both protocols share.

A member has two sides. One runs all the time: `Heartbeats`. The other runs only inside `poll`, in the task of
the user: giving partitions up and taking them on, with the user's callbacks. So a callback never runs while
records are being handled, and what was handed over before it has been handled.

A step of the second side is never left half done. If `poll` is cancelled meanwhile, the step goes on by
itself, and the next `poll` waits for it first.
"""

import asyncio
import inspect
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignment import Assignment, Status
from ottla.client.consumer.health import GroupHealth
from ottla.client.consumer.heartbeats import Heartbeats
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import ClientError
from ottla.client.group import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.model.patterns import InvalidPattern, compile_pattern

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
        if pattern is not None:
            try:
                compile_pattern(pattern)
            except InvalidPattern as error:
                raise ClientError(
                    f"the pattern {pattern!r} is no regular expression of RE2, as brokers use it: {error}"
                ) from None
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


class Membership(Heartbeats):
    """A member of a group, by either protocol."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        handover: Handover,
        wake: Callable[[], None],
    ) -> None:
        assert settings.group_id is not None
        super().__init__(cluster, settings, settings.group_id, settings.max_poll_interval_ms, wake)
        self._settings = settings
        self._handover = handover
        self._lost = False
        self._step: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def metadata(self) -> GroupMetadata:
        """Who this member is at the moment."""

    @property
    def metadata_for_fetch(self) -> GroupMetadata | None:
        """Who this member is where it asks for offsets. Classic members do not say."""
        return None

    @property
    def is_rebalancing(self) -> bool:
        """Say whether the group is rebalancing, so that members wait for each other without heartbeats."""
        return False

    def health(self, now_s: float) -> GroupHealth:
        """Return what is known of the place in the group."""
        metadata, heard_s, mishap = self.metadata, self.heard_at_s, self.mishap
        is_news = mishap is not None and (heard_s is None or mishap.at_s > heard_s)
        return GroupHealth(
            group_id=self.group_id,
            member_id=metadata.member_id,
            is_member=metadata.generation >= 0,
            is_rebalancing=self.is_rebalancing,
            heard_s_ago=None if heard_s is None else now_s - heard_s,
            error=mishap.text if mishap is not None and is_news else None,
            silence_s=now_s - self.polled_at_s,
            session_timeout_s=self._settings.session_timeout_ms / 1000,
            max_poll_interval_s=self._settings.max_poll_interval_ms / 1000,
        )

    @property
    def needs_work(self) -> bool:
        """Say whether `work` has something to do."""
        return self._step is not None or self._needs_step

    @property
    @abstractmethod
    def _needs_step(self) -> bool:
        """Say whether there is something to do inside `poll`."""

    async def work(self) -> None:
        """Do what has to be done inside `poll`. Returns without waiting for other members."""
        if self._step is None:
            self._step = asyncio.create_task(self._do_step())
        step = self._step
        try:
            await asyncio.shield(step)
        except asyncio.CancelledError:
            if not step.cancelled():
                raise  # The call was cancelled, and the step goes on. The next call learns what came of it.
        except BaseException:
            self._step = None
            raise
        self._step = None

    async def is_free(self, deadline_s: float) -> bool:
        """Wait for a step whose `poll` was cancelled. Returns False if it is not done at the deadline."""
        if self._step is None or self._step.done():
            return True
        timeout_s = max(0.0, deadline_s - asyncio.get_running_loop().time())
        return bool((await asyncio.wait([self._step], timeout=timeout_s))[0])

    async def _finish_step(self) -> None:
        """Wait for a step whose `poll` was cancelled. Its error goes to the log: nobody polls any more."""
        if self._step is not None:
            step = self._step
            await asyncio.wait([step])
            self._step = None
            if not step.cancelled() and step.exception() is not None:
                _logger.warning("a rebalance of group %r failed: %r", self.group_id, step.exception())

    async def stop(self) -> None:
        """Stop beating. A step that nobody waited for is cut off."""
        await super().stop()
        if self._step is not None:
            step, self._step = self._step, None
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)

    @abstractmethod
    async def _do_step(self) -> None:
        """Do one step of a rebalance."""

    @abstractmethod
    def subscription_changed(self) -> None:
        """Send new topics to the group."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave the group, if it knows us."""

    def _named_topics(self) -> Collection[str]:
        return self._handover.subscribed.topics

    def _subscribes_to_all(self) -> bool:
        return self._handover.subscribed.pattern is not None

    def _lose(self, why: str) -> None:
        """Take note that the group does not count us any more. The user learns it in the next `poll`."""
        self.note(ClientError(f"group {self.group_id!r} has removed this member: {why}"))
        _logger.warning("group %r has removed this member: %s", self.group_id, why)
        self._lost = True
        self._wake_poll()

    async def _handle_loss(self) -> None:
        if self._lost:
            self._lost = False
            if self._handover.owned:
                await self._handover.lose(self._handover.owned)

    async def give_up_all(self) -> None:
        """Give up everything while the group still counts us: the first step of leaving it."""
        await self._finish_step()
        await self._handle_loss()
        if owned := self._handover.owned:
            await self._handover.give_up(owned)


def matching_topics(pattern: str, names: Collection[str], internal: Collection[str]) -> frozenset[str]:
    """Return the topics whose whole name the pattern matches: RE2's, as brokers understand it."""
    compiled = compile_pattern(pattern)
    return frozenset(name for name in names if name not in internal and compiled.fullmatch(name))


async def _call(callback: Callback | None, partitions: frozenset[TopicPartition]) -> None:
    if callback is not None:
        result = callback(partitions)
        if inspect.isawaitable(result):
            await result

"""A member of a share group (KIP-932): the broker says which partitions to read, along with other members.

There is one request, ShareGroupHeartbeat. Nothing is given up or taken on with care, since partitions are not
owned: what a member holds are records, and those belong to the share sessions. Epoch 0 joins, -1 leaves.
"""

import contextlib
from collections.abc import Callable, Collection
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.consumer.heartbeats import Heartbeats, new_member_id
from ottla.client.errors import ClientError
from ottla.client.share.record import SharePartition
from ottla.client.share.settings import ShareConsumerSettings
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

_JOIN_EPOCH: Final = 0
_LEAVE_EPOCH: Final = -1
_GONE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
# Until the broker says how often it wants to hear from us.
_FIRST_INTERVAL_S: Final = 3.0


class ShareMembership(Heartbeats):
    """A member of a share group."""

    def __init__(self, cluster: Cluster, settings: ShareConsumerSettings, wake: Callable[[], None]) -> None:
        super().__init__(cluster, settings, settings.group_id, settings.max_poll_interval_ms, wake)
        self.member_id = new_member_id()
        self.topics: frozenset[str] = frozenset()
        self.assigned: frozenset[SharePartition] = frozenset()
        self._rack = settings.client_rack or None
        self._epoch = _JOIN_EPOCH
        self._target: Assignment | None = None
        self._must_tell_topics = True
        self._is_out = False
        self._may_be_known = False
        """Whether the group may count us: an answer to what asked it to may still be on its way."""
        self._interval_s = _FIRST_INTERVAL_S

    def subscribe(self, topics: Collection[str]) -> None:
        """Send the topics to read to the group."""
        self.topics = frozenset(topics)
        self._must_tell_topics = True
        self._beat_soon.set()

    def polled(self, now_s: float) -> None:
        """Take note that the user asks for records. A member that was silent for too long joins again."""
        super().polled(now_s)
        if self._is_out:
            self._is_out = False
            self._beat_soon.set()

    async def leave(self) -> None:
        """Leave the group, if it knows us."""
        if not self._may_be_known:
            return
        self._forget()
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=_LEAVE_EPOCH
        )
        with contextlib.suppress(ClientError):
            await self._ask_coordinator(request)

    def _named_topics(self) -> Collection[str]:
        return self.topics

    def _topics_learned(self) -> None:
        """Do nothing: the broker watches the topics."""

    async def _beat(self) -> float:
        if self._is_out:
            return self._interval_s
        if self._epoch > 0 and self._is_overdue():
            self._is_out = True
            await self.leave()
            return self._interval_s
        joins = self._epoch == _JOIN_EPOCH
        is_full, self._must_tell_topics = self._must_tell_topics or joins, False
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            rack_id=self._rack if is_full else None,
            subscribed_topic_names=tuple(sorted(self.topics)) if is_full else None,
        )
        self._may_be_known = True
        try:
            answer = await self._ask_coordinator(request)
        except BaseException:
            self._must_tell_topics = True
            raise
        pause_s = self._take(answer)
        await self._settle()
        return pause_s

    def _take(self, answer: ShareGroupHeartbeatResponse) -> float:
        code = answer.error_code
        if code is ErrorCode.NONE:
            self._epoch = answer.member_epoch
            self._interval_s = max(answer.heartbeat_interval_ms, 1) / 1000
            if answer.assignment is not None:
                self._target = answer.assignment
            return self._interval_s
        self._must_tell_topics = True
        if code in _GONE:
            self._forget()
        elif not code.retriable:
            raise self._refusal(code, answer.error_message)
        return self._common.retry_backoff_ms / 1000

    async def _settle(self) -> None:
        """Make what is assigned what the broker said, once the names of its topics are known."""
        target = self._target
        if target is None:
            return
        ids = {item.topic_id for item in target.topic_partitions}
        if not ids <= self._cluster.topology.topic_names.keys():
            await self._cluster.refresh(self.topics)
        names = self._cluster.topology.topic_names
        if ids <= names.keys():
            self._target = None
        # A topic so new that nobody here knows it comes with the next heartbeat.
        self.assigned = frozenset(
            SharePartition(item.topic_id, names[item.topic_id], number)
            for item in target.topic_partitions
            if item.topic_id in names
            for number in item.partitions
        )
        self._wake_poll()

    def _forget(self) -> None:
        self._epoch = _JOIN_EPOCH
        self._may_be_known = False
        self._must_tell_topics = True
        self._target = None
        self.assigned = frozenset()

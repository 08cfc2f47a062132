"""A member of a consumer group (KIP-848): the broker decides who reads what, each member follows by itself.

There is one request, ConsumerGroupHeartbeat. It says what the member wants and what it owns, and the answer
brings the member's epoch and, when it changed, what it is to own. No member waits for the others: inside
`poll` it gives up what it lost and takes on what it got, and the next heartbeat says so. Epoch 0 joins, -1
leaves, -2 leaves for a moment (a static member).

A field that has not changed since the last heartbeat that got through is left out. After one that was lost,
everything is said again.
"""

import contextlib
from collections.abc import Callable
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.consumer.heartbeats import new_member_id
from ottla.client.consumer.membership import Handover, Membership
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import ClientError
from ottla.client.group import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment as AssignedTopics,
)
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_JOIN_EPOCH: Final = 0
_LEAVE_EPOCH: Final = -1
_LEAVE_STATIC_EPOCH: Final = -2
_GONE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class BrokerLedMembership(Membership):
    """A member of a consumer group."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, handover: Handover, wake: Callable[[], None]
    ) -> None:
        super().__init__(cluster, settings, handover, wake)
        # The member makes its own id, and keeps it through everything.
        self._member_id = new_member_id()
        self._epoch = _JOIN_EPOCH
        self._target: AssignedTopics | None = None
        self._is_out = False
        self._may_be_known = False
        """Whether the group may count us: an answer to what asked it to may still be on its way."""
        self._told_pattern = False
        self._must_tell_owned = False
        self._must_tell_subscription = True
        self._interval_s = settings.heartbeat_interval_ms / 1000

    @property
    def metadata(self) -> GroupMetadata:
        """Who this member is at the moment."""
        epoch = self._epoch if self._epoch > 0 else -1
        return GroupMetadata(self.group_id, self._member_id, epoch, self._settings.group_instance_id)

    @property
    def metadata_for_fetch(self) -> GroupMetadata | None:
        """Say who asks for offsets: a stale member must not get them."""
        return self.metadata if self._epoch > 0 else None

    @property
    def _needs_step(self) -> bool:
        """Say whether there is something to do inside `poll`."""
        return self._lost or self._target is not None or self.failure is not None

    async def _do_step(self) -> None:
        """Make what is owned what the broker said."""
        if self.failure is not None:
            raise self.failure
        if self._lost:
            self._target = None
            try:
                await self._handle_loss()
            finally:
                # The member owns nothing any more, also if a callback of the user failed.
                self._is_out = False
                self._beat_soon.set()
        target = self._target
        if target is None:
            return
        wanted = await self._by_name(target)
        if wanted is None:
            # A topic so new that it is not known here. The next metadata will have it.
            return
        owned = self._handover.owned
        if revoked := owned - wanted:
            await self._handover.give_up(revoked)
        if added := wanted - owned:
            await self._handover.take_on(added)
        if self._target is target:
            self._target = None
        self._must_tell_owned = True
        self._beat_soon.set()

    def subscription_changed(self) -> None:
        """Send new topics to the broker."""
        self._must_tell_subscription = True
        self._beat_soon.set()

    async def leave(self) -> None:
        """Leave the group. A static member says that it will be back."""
        if not self._may_be_known:
            return
        static = self._settings.group_instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self._member_id,
            member_epoch=_LEAVE_STATIC_EPOCH if static else _LEAVE_EPOCH,
            instance_id=self._settings.group_instance_id,
        )
        self._epoch = _JOIN_EPOCH
        self._may_be_known = False
        self._must_tell_subscription = True
        with contextlib.suppress(ClientError):
            await self._ask_coordinator(request)

    def _topics_learned(self) -> None:
        """Do nothing: the broker watches the topics."""

    async def _by_name(self, target: AssignedTopics) -> frozenset[TopicPartition] | None:
        topology = self._cluster.topology
        if any(item.topic_id not in topology.topic_names for item in target.topic_partitions):
            subscribed = self._handover.subscribed
            topology = await self._cluster.refresh(
                None if subscribed.pattern is not None else subscribed.topics
            )
        names = topology.topic_names
        if any(item.topic_id not in names for item in target.topic_partitions):
            return None
        return frozenset(
            TopicPartition(names[item.topic_id], number)
            for item in target.topic_partitions
            for number in item.partitions
        )

    async def _beat(self) -> float:
        if self._is_out:
            # Dropped by the group: first the user lets go of the partitions, then we join again.
            return self._interval_s
        if self._epoch > 0 and self._is_overdue():
            # First of all, since leaving may take long: what is owned must be let go of in any case.
            self._is_out = True
            self._lose("max.poll.interval.ms is over")
            await self.leave()
            return self._interval_s
        tells_subscription, tells_owned = self._must_tell_subscription, self._must_tell_owned
        request = self._request(tells_subscription, tells_owned)
        self._must_tell_subscription = self._must_tell_owned = False
        self._may_be_known = True
        try:
            answer = await self._ask_coordinator(request)
        except BaseException:
            self._say_all_again()
            raise
        return self._take(answer)

    def _request(self, tells_subscription: bool, tells_owned: bool) -> ConsumerGroupHeartbeatRequest:
        settings, subscribed = self._settings, self._handover.subscribed
        joins = self._epoch == _JOIN_EPOCH
        is_full = tells_subscription or joins
        # Once a pattern was sent, only an empty one takes it back.
        self._told_pattern |= subscribed.pattern is not None
        owned = () if joins else self._owned_by_id()
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=settings.group_instance_id,
            rack_id=(settings.client_rack or None) if is_full else None,
            rebalance_timeout_ms=settings.max_poll_interval_ms if is_full else -1,
            subscribed_topic_names=tuple(sorted(subscribed.topics)) if is_full else None,
            subscribed_topic_regex=(subscribed.pattern or "") if is_full and self._told_pattern else None,
            server_assignor=settings.group_remote_assignor if is_full else None,
            topic_partitions=owned if is_full or tells_owned else None,
        )

    def _owned_by_id(self) -> tuple[TopicPartitions, ...]:
        by_id: dict[Uuid, list[int]] = {}
        topics = self._cluster.topology.topics
        for where in sorted(self._handover.owned):
            if where.topic in topics:
                by_id.setdefault(topics[where.topic].topic_id, []).append(where.partition)
        return tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(numbers))
            for topic_id, numbers in by_id.items()
        )

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> float:
        code = answer.error_code
        if code is ErrorCode.NONE:
            self._epoch = answer.member_epoch
            self._member_id = answer.member_id or self._member_id
            self._interval_s = max(answer.heartbeat_interval_ms, 1) / 1000
            if answer.assignment is not None:
                self._target = answer.assignment
                self._wake_poll()
            return self._interval_s
        if code in _GONE:
            self._epoch = _JOIN_EPOCH
            self._may_be_known = False
            self._is_out = True
            self._lose(code.name)
            return self._interval_s
        self._say_all_again()
        if not code.retriable:
            raise self._refusal(code, answer.error_message)
        return self._settings.retry_backoff_ms / 1000

    def _say_all_again(self) -> None:
        """Whether the broker heard the last heartbeat is not known: leave nothing out of the next."""
        self._must_tell_subscription = self._must_tell_owned = True

"""A member of a classic group: the members agree among themselves who reads what.

    JoinGroup  (waits until all members have joined)   -> generation, protocol, and for the leader all members
    SyncGroup  (the leader brings the assignment)      -> what this member is to read
    Heartbeat  -> NONE, or REBALANCE_IN_PROGRESS: join again

With eager assignors a member gives up everything before it joins. If all its assignors are cooperative it
goes on reading meanwhile, and afterwards gives up only what it lost, which takes a second round (KIP-429).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.client.backoff import backoff_s
from ottla.client.cluster import JOIN_LANE, Cluster
from ottla.client.consumer.assignors import ASSIGNORS, RebalanceProtocol
from ottla.client.consumer.embedded_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.client.consumer.membership import Handover, Membership, matching_topics
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import ClientError
from ottla.client.group import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_logger = logging.getLogger(__name__)
# A coordinator may take this much longer than the members were given.
_JOIN_GRACE_S: Final = 5.0
_FIRST_VERSION_OF_MANY: Final = 3
_GONE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class _Joined(NamedTuple):
    assigned: frozenset[TopicPartition]
    partition_counts: dict[str, int]
    """What the leader saw of the topics; empty for others, whom changes of it do not concern."""


class ClassicMembership(Membership):
    """A member of a classic group."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, handover: Handover, wake: Callable[[], None]
    ) -> None:
        super().__init__(cluster, settings, handover, wake)
        self._member_id = ""
        self._generation = -1
        self._topics: frozenset[str] = frozenset()
        self._last_assigned: frozenset[TopicPartition] = frozenset()
        self._watched: dict[str, int] = {}
        self._must_join = True
        self._reason = "new member"
        self._joining: asyncio.Task[_Joined] | None = None
        self._is_cooperative = all(
            assignor.protocol is RebalanceProtocol.COOPERATIVE for assignor in settings.assignors
        )

    @property
    def metadata(self) -> GroupMetadata:
        """Who this member is at the moment."""
        if self._generation < 0:
            return GroupMetadata(self.group_id, self._member_id, -1, self._settings.group_instance_id)
        return GroupMetadata(
            self.group_id, self._member_id, self._generation, self._settings.group_instance_id
        )

    @property
    def is_rebalancing(self) -> bool:
        """Say whether the group is rebalancing."""
        return self._must_join or self._joining is not None

    @property
    def _needs_step(self) -> bool:
        """Say whether there is something to do inside `poll`."""
        if self._joining is not None:
            return self._joining.done()
        return self._must_join or self._lost or self.failure is not None

    async def _do_step(self) -> None:
        """Give up, join, take on: one step of it."""
        if self.failure is not None:
            raise self.failure
        await self._handle_loss()
        if self._joining is not None:
            if not self._joining.done():
                return
            joining, self._joining = self._joining, None
            try:
                joined = joining.result()
            except Exception as error:
                self._must_join = True
                if not (isinstance(error, ClientError) and error.retriable):
                    raise
            else:
                # What was lost on the way is let go of first.
                await self._handle_loss()
                await self._complete(joined)
        if self._must_join:
            await self._prepare()
            self._must_join = False
            self._joining = asyncio.create_task(self._join())
            self._joining.add_done_callback(lambda _task: self._wake_poll())

    def subscription_changed(self) -> None:
        """Join with new topics."""
        self._rejoin("subscription changed")

    async def stop(self) -> None:
        """Stop beating and joining."""
        await super().stop()
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
            self._joining = None

    async def leave(self) -> None:
        """Leave. A static member stays, so that its next life finds its partitions again."""
        if not self._member_id or self._settings.group_instance_id is not None:
            return
        member_id, self._member_id, self._generation = self._member_id, "", -1
        # If no broker is there, the group learns it when the session times out.
        with contextlib.suppress(ClientError):
            connection = await self._cluster.any_connection()
            if connection.version_for(LeaveGroupRequest) >= _FIRST_VERSION_OF_MANY:
                member = MemberIdentity(member_id=member_id, reason="the consumer is being closed")
                request = LeaveGroupRequest(group_id=self.group_id, members=(member,))
            else:
                request = LeaveGroupRequest(group_id=self.group_id, member_id=member_id)
            await self._ask_coordinator(request)

    async def _prepare(self) -> None:
        owned = self._handover.owned
        if self._is_cooperative:
            topics = await self._subscribed_topics()
            owned = frozenset(where for where in owned if where.topic not in topics)
        if owned:
            await self._handover.give_up(owned)

    async def _complete(self, joined: _Joined) -> None:
        owned, assigned = self._handover.owned, joined.assigned
        self._last_assigned = assigned
        self._watched = joined.partition_counts
        try:
            if self._is_cooperative and (revoked := owned - assigned):
                self._rejoin("gave up partitions that moved")
                await self._handover.give_up(revoked)
        finally:
            # What the group gave us is ours, also if a callback of the user failed.
            await self._handover.take_on(assigned - owned)

    def _rejoin(self, reason: str) -> None:
        self._must_join = True
        self._reason = reason
        self._wake_poll()

    async def _subscribed_topics(self) -> frozenset[str]:
        subscribed = self._handover.subscribed
        if subscribed.pattern is None:
            return subscribed.topics
        topology = await self._cluster.refresh(None)
        return self._matching(topology.topics)

    def _matching(self, topics: Any) -> frozenset[str]:
        subscribed = self._handover.subscribed
        assert subscribed.pattern is not None
        hidden = [
            name
            for name, view in topics.items()
            if view.is_internal and self._settings.exclude_internal_topics
        ]
        return matching_topics(subscribed.pattern, topics, hidden)

    def _topics_learned(self) -> None:
        topics = self._cluster.topology.topics
        if self._handover.subscribed.pattern is not None and self._matching(topics) != self._topics:
            self._rejoin("the topics that match have changed")
        counts = {name: len(topics[name].partitions) for name in self._watched if name in topics}
        if self._watched and counts != self._watched:
            self._rejoin("the number of partitions has changed")

    async def _join(self) -> _Joined:
        """Join until the group has shared out its partitions."""
        for wait_s in backoff_s(
            self._settings.retry_backoff_ms / 1000, self._settings.retry_backoff_max_ms / 1000
        ):
            try:
                joined = await self._join_once()
            except ClientError as error:
                if not error.retriable:
                    raise
                self.note(error)
                _logger.debug("cannot join group %r, trying again: %s", self.group_id, error)
                joined = None
            if joined is not None:
                return joined
            await asyncio.sleep(wait_s)
        raise AssertionError("waits never end")

    async def _join_once(self) -> _Joined | None:
        """Go through join and sync. None: the group is not settled, try again."""
        self._topics = await self._subscribed_topics()
        answer = await self._ask_to_join()
        code = answer.error_code
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = await self._ask_to_join()
            code = answer.error_code
        if not self._is_settled(code):
            return None
        self._member_id, generation = answer.member_id, answer.generation_id
        counts: dict[str, int] = {}
        shares: tuple[SyncGroupRequestAssignment, ...] = ()
        if answer.leader == answer.member_id:
            counts, shares = await self._assign(answer)
        return await self._sync(answer, generation, counts, shares)

    async def _ask_to_join(self) -> JoinGroupResponse:
        settings = self._settings
        owned = tuple(self._handover.owned) if self._is_cooperative and not self._lost else ()
        protocols = tuple(
            JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=encode_subscription(
                    Subscription(
                        topics=tuple(self._topics),
                        owned=owned,
                        generation=self._generation,
                        user_data=assignor.note(tuple(self._last_assigned), self._generation),
                        rack=settings.client_rack or None,
                    )
                ),
            )
            for assignor in settings.assignors
        )
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._reason,
        )
        timeout_s = settings.max_poll_interval_ms / 1000 + _JOIN_GRACE_S
        answer: JoinGroupResponse = await self._ask_coordinator(request, JOIN_LANE, timeout_s)
        return answer

    async def _assign(
        self, answer: JoinGroupResponse
    ) -> tuple[dict[str, int], tuple[SyncGroupRequestAssignment, ...]]:
        """Share out the partitions, as the leader of the group."""
        members = {
            member.member_id: decode_subscription(member.metadata, member.group_instance_id)
            for member in answer.members
        }
        wanted = {topic for subscription in members.values() for topic in subscription.topics}
        topology = await self._cluster.refresh(wanted)
        views = {name: topology.topics.get(name) for name in sorted(wanted)}
        counts = {name: 0 if view is None else len(view.partitions) for name, view in views.items()}
        if answer.skip_assignment:
            return counts, ()
        assert answer.protocol_name is not None
        existing = {name: count for name, count in counts.items() if count}
        shares = ASSIGNORS[answer.protocol_name].assign(members, existing)
        return counts, tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in shares.items()
        )

    async def _sync(
        self,
        joined: JoinGroupResponse,
        generation: int,
        counts: dict[str, int],
        shares: tuple[SyncGroupRequestAssignment, ...],
    ) -> _Joined | None:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=self._member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=shares,
        )
        timeout_s = self._settings.max_poll_interval_ms / 1000 + _JOIN_GRACE_S
        answer = await self._ask_coordinator(request, JOIN_LANE, timeout_s)
        code = answer.error_code
        if not self._is_settled(code):
            return None
        self._generation = generation
        return _Joined(frozenset(decode_assignment(answer.assignment)), counts)

    def _is_settled(self, code: ErrorCode) -> bool:
        """Say whether a step of joining went well. False: try again. Raises when we are not wanted at all."""
        if code in _GONE:
            self._forget(code)
            return False
        if code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        if code is not ErrorCode.NONE:
            raise self._refusal(code)
        return True

    def _forget(self, code: ErrorCode) -> None:
        """Start over as a new member: the group has dropped the one we were."""
        self._generation = -1
        self._last_assigned = frozenset()
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if self._handover.owned:
            self._lose(code.name)

    async def _beat(self) -> float:
        interval_s = self._settings.heartbeat_interval_ms / 1000
        if self._generation < 0 or (self._joining is not None and not self._joining.done()):
            return interval_s
        if self._is_overdue():
            # First of all, since leaving may take long: what is owned must be let go of in any case.
            self._generation = -1
            self._must_join = True
            self._lose("max.poll.interval.ms is over")
            await self.leave()
            return interval_s
        generation = self._generation
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=self._member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        answer = await self._ask_coordinator(request)
        code = answer.error_code
        if generation != self._generation or code is ErrorCode.NONE:
            return interval_s
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            if not self._must_join and self._joining is None:
                self._rejoin("the group is rebalancing")
        elif code in _GONE:
            self._forget(code)
            self._rejoin("the group no longer knows this member")
        elif not code.retriable:
            raise self._refusal(code)
        else:
            return self._settings.retry_backoff_ms / 1000
        return interval_s

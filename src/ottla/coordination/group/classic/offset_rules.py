"""What a classic group allows to be done with its offsets, and when they age (KIP-211)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.kinds import Commit
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.codec import decode_from
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import WireError

if TYPE_CHECKING:
    from ottla.coordination.group.classic.group import Member

_CONSUMER = "consumer"
_VERSION_BYTES = 2


class OffsetRules:
    """The rules, over what a classic group is made of."""

    __slots__ = ()

    state: GroupState
    state_since_ms: int
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    members: "Mapping[str, Member]"
    subscribed_topics: frozenset[str] | None

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Say why a request of this member cannot be served, or NONE."""
        raise NotImplementedError

    def check_commit(self, commit: Commit) -> None:
        """Refuse a commit of somebody who is not a member of the present generation.

        A commit without member and generation is a simple consumer's: fine while the group has no members.
        """
        if self.state is GroupState.DEAD:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if commit.generation < 0 and self.state is GroupState.EMPTY:
            return
        if commit.generation >= 0 or commit.member_id or commit.instance_id is not None:
            refusal = self.check_member(commit.member_id, commit.instance_id)
            if refusal is not ErrorCode.NONE:
                raise Refused(refusal)
            if commit.generation != self.generation:
                raise Refused(ErrorCode.ILLEGAL_GENERATION)
        elif not commit.is_transactional:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if not commit.is_transactional and self.state is GroupState.COMPLETING_REBALANCE:
            # The member must learn first what it is to read now.
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_commit_to(self, commit: Commit, topic: str, topic_id: Uuid, partition: int) -> None:
        """A classic group does not know who reads which partition."""

    def check_fetch(self, _member_id: str | None, _member_epoch: int) -> None:
        """Anybody may see the offsets of a group that lives."""
        if self.state is GroupState.DEAD:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)

    def check_offset_delete(self) -> None:
        """Refuse while the group is busy, unless its subscriptions can be understood topic by topic."""
        if self.state is GroupState.DEAD:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not GroupState.EMPTY and self.protocol_type != _CONSUMER:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Refuse while the group has members."""
        if self.state is GroupState.DEAD:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not GroupState.EMPTY:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics its members read, or None when their metadata cannot be understood."""
        if self.protocol_type != _CONSUMER:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = decode_subscription(member.protocols.get(self.protocol_name or "", b""))
            if subscription is None:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether a member reads the topic; in doubt, yes for consumers."""
        topics = self.subscribed_topics
        return self.protocol_type == _CONSUMER if topics is None else topic in topics

    def expiry_base_ms(self, committed: CommittedOffset) -> int | None:
        """Return from when on an offset ages: since the group is empty, or since the commit."""
        if self.protocol_type is None:
            return committed.commit_timestamp_ms
        if self.state is GroupState.EMPTY:
            return self.state_since_ms if self.state_since_ms >= 0 else committed.commit_timestamp_ms
        if self.state is GroupState.STABLE and self.subscribed_topics is not None:
            return committed.commit_timestamp_ms
        return None


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription | None:
    """Read a consumer's subscription: an int16 version, then the message. None when it is not one.

    Version 0 is enough for the topics, and every later version begins with it.
    """
    try:
        subscription, _ = decode_from(ConsumerProtocolSubscription, data, 0, _VERSION_BYTES)
    except WireError:
        return None
    return subscription

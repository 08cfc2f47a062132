"""Members that leave a consumer group, for good or for now, or are removed from it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from ottla.coordination.group.consumer.downgrade import Downgrades
from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.consumer.reconciliation import NOTHING_HELD
from ottla.coordination.group.consumer.records import (
    current_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
)
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.modern.member import LEFT_FOR_NOW
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

R = TypeVar("R")


class Departures:
    """The leaving of all consumer groups of a shard."""

    def __init__(self, hashes: MetadataHashes, sessions: Sessions, downgrades: Downgrades) -> None:
        self._hashes = hashes
        self._sessions = sessions
        self._downgrades = downgrades

    def leave(
        self, group: ConsumerGroup, ask: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Let a member go that says so. Its epoch does not matter: its id is enough."""
        if ask.instance_id is None:
            member = find_member(group, ask.member_id)
        else:
            member = find_static_member(group, ask.instance_id, ask.member_id)
            if ask.member_epoch == LEFT_FOR_NOW:
                return self._leave_for_now(group, member)
        reply = ConsumerGroupHeartbeatResponse(
            member_id=ask.member_id, member_epoch=ask.member_epoch, heartbeat_interval_ms=0
        )
        return self.fence(group, [member], now_ms, reply)

    def fence(
        self,
        group: ConsumerGroup,
        members: Sequence[Member],
        now_ms: int,
        reply: R | None = None,
    ) -> Decision[R]:
        """Take members out of the group. If only those of the classic protocol stay, it becomes classic."""
        if not members:
            return Decision(reply=reply)
        group_id = group.group_id
        downgrade = self._downgrades.after_departure(group, members, now_ms)
        if downgrade is not None:
            return Decision(downgrade.records, reply, downgrade.after_append)
        records: list[CoordinatorRecord] = []
        for member in members:
            records += member_tombstones(group_id, member.member_id)
        records += [regex_tombstone(group_id, regex) for regex in group.regexes_only_of(members)]
        metadata_hash = self._hashes.of_group(group.topics_without(members))
        records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))

        def forget() -> None:
            for member in members:
                self._sessions.forget(group_id, member.member_id)

        return Decision(tuple(records), reply, forget)

    def _leave_for_now(
        self, group: ConsumerGroup, member: Member
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Let a static member go that will be back: it keeps its partitions until its session ends.

        If it comes back under another member id it has had them from the beginning: their epochs become 0.
        """
        assigned = {topic: dict.fromkeys(have, 0) for topic, have in member.assignment.assigned.items()}
        away = replace(
            member.assignment,
            member_epoch=LEFT_FOR_NOW,
            assigned=assigned,
            pending_revocation=NOTHING_HELD,
        )
        return Decision(
            records=(current_record(group.group_id, member.with_assignment(away)),),
            reply=ConsumerGroupHeartbeatResponse(
                member_id=member.member_id, member_epoch=LEFT_FOR_NOW, heartbeat_interval_ms=0
            ),
        )


def find_member(group: ConsumerGroup, member_id: str) -> Member:
    """Return a member. Raises `Refused` when there is none of this id."""
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def find_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """Return the member that has an instance id, if it is the one that says so. Raises `Refused`."""
    member = group.find_static(instance_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        message = f"Static member {member_id} was fenced: {member.member_id} has instance id {instance_id}."
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, message)
    return member

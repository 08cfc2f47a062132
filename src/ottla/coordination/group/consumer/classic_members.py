"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group (KIP-848).

To such a member the group looks like a classic one that has its own generation, the member's epoch, and in
which it leads nobody. There is nothing to wait for: JoinGroup makes its next step towards its target and
answers at once, SyncGroup tells what it has. Heartbeat tells it to join again when there is something to give
up or to get.
"""

from functools import partial
from typing import Final

from ottla.coordination.group.classic.group import refused_join
from ottla.coordination.group.consumer.departures import Departures, find_member, find_static_member
from ottla.coordination.group.consumer.downgrade import Downgrade, Downgrades
from ottla.coordination.group.consumer.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_subscription,
    encode_assignment,
    version_of,
    with_ids,
)
from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.heartbeat import check_room, take_place_of
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.reconciliation import MemberState
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.consumer.steps import Draft, RegexChange, Steps
from ottla.coordination.group.consumer.target import Target
from ottla.coordination.group.environment import Client, Environment
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision, Effect, in_order
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.coordinator_records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_THAT_ASKS_FOR_AN_ID: Final = 4


class ClassicMembers:
    """What classic members of a shard's consumer groups ask for."""

    def __init__(
        self,
        env: Environment,
        steps: Steps,
        sessions: Sessions,
        departures: Departures,
        downgrades: Downgrades,
    ) -> None:
        self._env = env
        self._steps = steps
        self._sessions = sessions
        self._departures = departures
        self._downgrades = downgrades

    def join(
        self, group: ConsumerGroup, ask: JoinGroupRequest, client: Client, now_ms: int
    ) -> Decision[JoinGroupResponse]:
        """Let a classic member in, or bring it one step closer to its target."""
        try:
            return self._join(group, ask, client, now_ms)
        except Refused as refused:
            return Decision(reply=refused_join("", refused.error_code))

    def _join(
        self, group: ConsumerGroup, ask: JoinGroupRequest, client: Client, now_ms: int
    ) -> Decision[JoinGroupResponse]:
        settings = self._env.settings
        if not settings.may_upgrade and not settings.may_downgrade:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member_id = ask.member_id or self._env.new_member_suffix()
        check_room(group, member_id, self._env)
        if not group.supports(ask.protocol_type, (protocol.name for protocol in ask.protocols)):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if (
            not ask.member_id
            and ask.group_instance_id is None
            and client.version >= _FIRST_VERSION_THAT_ASKS_FOR_AN_ID
        ):
            return Decision(reply=refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        records: list[CoordinatorRecord] = []
        old, base = self._begin(group, ask, member_id, records)
        subscription = _subscription(ask)
        new = _updated(base, ask, subscription, client)
        draft = Draft(group, old, base, new, now_ms, records)
        return self._settle(draft, ask, subscription)

    def _begin(
        self, group: ConsumerGroup, ask: JoinGroupRequest, member_id: str, records: list[CoordinatorRecord]
    ) -> tuple[Member | None, Member]:
        """Return who is in the group already, and the member as it begins."""
        if ask.group_instance_id is not None:
            known = group.find_static(ask.group_instance_id)
            if ask.member_id:
                known = find_static_member(group, ask.group_instance_id, ask.member_id)
                return known, known
            if known is not None:
                return known, take_place_of(known, member_id, group, records)
        old = group.members.get(member_id)
        return old, old or Member(member_id)

    def _settle(
        self, draft: Draft, ask: JoinGroupRequest, subscription: ConsumerProtocolSubscription
    ) -> Decision[JoinGroupResponse]:
        group, steps = draft.group, self._steps
        replaced = group.find_static(ask.group_instance_id)
        is_downgrade = replaced is not None and self._downgrades.is_due_after_replacement(group, replaced)
        names_changed = steps.describe(draft)
        is_changed = steps.take_regex(draft) is not RegexChange.NONE or names_changed
        epoch = steps.renew_epoch(draft, is_changed)
        named = {item.topic: frozenset(item.partitions) for item in subscription.owned_partitions}
        owned = with_ids(named, self._env.topics)
        downgrade: Downgrade | None = None
        if is_downgrade and replaced is not None:
            # If the target is out of date the classic group makes its own, so nothing is to be reconciled.
            if group.assignment_epoch >= epoch:
                target = Target(group.assignment_epoch, group.find_target(draft.new))
                steps.reconcile(draft, target, owned, is_changed)
            downgrade = self._downgrades.after_replacement(
                group, replaced, draft.new, group.assignment_epoch < epoch, draft.now_ms
            )
        if downgrade is None:
            steps.reconcile(draft, steps.renew_target(draft, epoch), owned, is_changed)
            draft.effects.append(partial(self._expect_sync, group.group_id, draft.new))
        else:
            draft.records += downgrade.records
            draft.effects.append(downgrade.after_append)
        return Decision(tuple(draft.records), _joined(draft.new), in_order(draft.effects))

    def _expect_sync(self, group_id: str, member: Member) -> None:
        self._sessions.expect_heartbeat(group_id, member.member_id, _session_timeout_ms(member))
        self._sessions.expect_sync(group_id, member)

    def sync(self, group: ConsumerGroup, ask: SyncGroupRequest) -> Decision[SyncGroupResponse]:
        """Tell a classic member what it has."""
        try:
            member = self._find_classic(group, ask.member_id, ask.group_instance_id, ask.generation_id)
            self._check_protocol(member, ask)
            if _must_join_first(group, member):
                refusal = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
                return Decision((), refusal, partial(self._sessions.expect_join, group.group_id, member))
            assignment = self._encode_assignment(member)
        except Refused as refused:
            return Decision(reply=SyncGroupResponse(error_code=refused.error_code, assignment=b""))
        reply = SyncGroupResponse(
            protocol_type=ask.protocol_type, protocol_name=ask.protocol_name, assignment=assignment
        )
        return Decision((), reply, partial(self._sync_is_done, group.group_id, member))

    def _sync_is_done(self, group_id: str, member: Member) -> None:
        self._sessions.stop_expecting_sync(group_id, member.member_id)
        self._sessions.expect_heartbeat(group_id, member.member_id, _session_timeout_ms(member))

    def heartbeat(self, group: ConsumerGroup, ask: HeartbeatRequest) -> Decision[HeartbeatResponse]:
        """Take note that a classic member lives; tell it when it should join again."""
        try:
            member = self._find_classic(group, ask.member_id, ask.group_instance_id, ask.generation_id)
        except Refused as refused:
            return Decision(reply=HeartbeatResponse(error_code=refused.error_code))
        sessions, group_id, state = self._sessions, group.group_id, member.assignment.state
        effects: list[Effect] = [
            partial(sessions.expect_heartbeat, group_id, member.member_id, _session_timeout_ms(member))
        ]
        code = ErrorCode.NONE
        if (
            member.epoch < group.assignment_epoch
            or state is MemberState.UNREVOKED_PARTITIONS
            or (state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
        ):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            effects.append(partial(sessions.expect_join, group_id, member))
        return Decision((), HeartbeatResponse(error_code=code), in_order(effects))

    def leave(
        self, group: ConsumerGroup, ask: LeaveGroupRequest, now_ms: int
    ) -> Decision[LeaveGroupResponse]:
        """Let members go, of either protocol. One that is not known spoils no other."""
        leaving: dict[str, Member] = {}
        answers = []
        for identity in ask.members:
            code = ErrorCode.NONE
            try:
                member = _find_leaving(group, identity)
                leaving[member.member_id] = member
            except Refused as refused:
                code = refused.error_code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        reply = LeaveGroupResponse(members=tuple(answers))
        return self._departures.fence(group, list(leaving.values()), now_ms, reply)

    def _find_classic(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> Member:
        if instance_id is None:
            member = find_member(group, member_id)
        else:
            member = find_static_member(group, instance_id, member_id)
        if member.classic is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != member.epoch:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _check_protocol(self, member: Member, ask: SyncGroupRequest) -> None:
        if ask.protocol_type not in (None, PROTOCOL_TYPE):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if ask.protocol_name not in (None, _protocol(member).name):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _encode_assignment(self, member: Member) -> bytes:
        try:
            version = version_of(_protocol(member).metadata)
        except MalformedBytes as error:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        return encode_assignment(member.assignment.assigned, self._env.topics, version)


def _must_join_first(group: ConsumerGroup, member: Member) -> bool:
    """Say whether a member is behind. One that has partitions to give up has joined already."""
    return (
        group.assignment_epoch > member.epoch
        and member.assignment.state is not MemberState.UNREVOKED_PARTITIONS
    )


def _find_leaving(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return find_member(group, identity.member_id)
    if identity.member_id:
        return find_static_member(group, identity.group_instance_id, identity.member_id)
    # An administrator removes a static member by its instance id alone.
    member = group.find_static(identity.group_instance_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _subscription(ask: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        # What a consumer subscribes to is the same in all of its protocols.
        return decode_subscription(ask.protocols[0].metadata)
    except MalformedBytes as error:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def _updated(
    base: Member, ask: JoinGroupRequest, subscription: ConsumerProtocolSubscription, client: Client
) -> Member:
    timeout_ms = ask.rebalance_timeout_ms
    return Member(
        base.member_id,
        base.instance_id if ask.group_instance_id is None else ask.group_instance_id,
        subscription.rack_id or base.rack_id,
        client.client_id,
        client.host,
        frozenset(subscription.topics),
        "",
        base.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        base.server_assignor,
        ClassicMemberMetadata(
            session_timeout_ms=ask.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=protocol.name, metadata=bytes(protocol.metadata))
                for protocol in ask.protocols
            ),
        ),
        base.assignment,
    )


def _joined(member: Member) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=_protocol(member).name,
        leader="",
        member_id=member.member_id,
        members=(),
    )


def _protocol(member: Member) -> ClassicProtocol:
    assert member.classic is not None, "the caller has looked"
    return member.classic.supported_protocols[0]


def _session_timeout_ms(member: Member) -> int:
    assert member.classic is not None, "the caller has looked"
    return member.classic.session_timeout_ms

"""A classic group and its members.

What is waited for is in memory only. The log gets a record when a generation is settled (the leader brought
the assignment) and when the group becomes empty.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.coordination.group.classic.offset_rules import OffsetRules
from ottla.coordination.group.classic.states import MAY_COME_FROM, GroupState
from ottla.coordination.group.kinds import GroupKind
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

GROUP_METADATA_VERSION = 3
NO_ASSIGNMENT = b""


@dataclass(slots=True)
class Member:
    """One member. Its assignment is bytes that only its clients understand."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    """Name to metadata, in the order the member prefers them."""
    assignment: bytes = NO_ASSIGNMENT
    is_new: bool = False
    awaiting_join: Callable[[JoinGroupResponse], None] | None = None
    awaiting_sync: Callable[[SyncGroupResponse], None] | None = None

    @property
    def waits_for_others(self) -> bool:
        """Say whether silence is our fault: its request is parked, and it cannot send another."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)


@dataclass(slots=True)
class ClassicGroup(OffsetRules):
    """A group in memory."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Instance id to member id."""
    pending_members: set[str] = field(default_factory=set)
    """Ids that were handed out with MEMBER_ID_REQUIRED and have not come back yet."""
    pending_sync: set[str] = field(default_factory=set)
    new_member_added: bool = False
    awaiting_join_count: int = 0
    """How many members have asked to join and wait."""
    subscribed_topics: frozenset[str] | None = None
    """What the members of this generation read; None when their metadata cannot be understood."""
    protocol_counts: dict[str, int] = field(default_factory=dict)
    """How many members know a protocol. Counted as they come: a group may have thousands of members."""

    def move_to(self, state: GroupState, now_ms: int) -> None:
        """Go to another state."""
        assert self.state in MAY_COME_FROM[state], f"{self.group_id}: {self.state} cannot become {state}"
        self.previous_state, self.state, self.state_since_ms = self.state, state, now_ms

    # members

    def add(self, member: Member) -> None:
        """Take a member in. The first one leads."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member.protocols, 1)
        self.awaiting_join_count += member.awaiting_join is not None
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.pending_members.discard(member.member_id)

    def update(
        self,
        member: Member,
        protocols: dict[str, bytes],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        awaiting_join: Callable[[JoinGroupResponse], None] | None,
    ) -> None:
        """Take over what a member says when it joins again."""
        self._count_protocols(member.protocols, -1)
        self._count_protocols(protocols, 1)
        self.awaiting_join_count += (awaiting_join is not None) - (member.awaiting_join is not None)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        member.awaiting_join = awaiting_join

    def remove(self, member_id: str) -> None:
        """Let a member, or an id that was only handed out, go."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member.protocols, -1)
            self.awaiting_join_count -= member.awaiting_join is not None
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)

    def replace_static_member(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Give a static member that came back its new id. Requests that wait under the old one are fenced."""
        member = self.members.pop(old_id)
        self.answer_join(member, refused_join(old_id, ErrorCode.FENCED_INSTANCE_ID))
        answer_sync(member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, assignment=b""))
        member.member_id = new_id
        member.is_new = False
        self.members[new_id] = member
        self.static_members[instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        return member

    def answer_join(self, member: Member, response: JoinGroupResponse) -> bool:
        """Answer a parked join. False when none is parked."""
        answer, member.awaiting_join = member.awaiting_join, None
        if answer is None:
            return False
        self.awaiting_join_count -= 1
        answer(response)
        return True

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Say why a request of this member cannot be served, or NONE."""
        if instance_id is not None:
            known_id = self.static_members.get(instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing from the rebalance."""
        return not self.pending_members and self.awaiting_join_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest time any member wants for joining. It may want none, or less."""
        return max([0, *(member.rebalance_timeout_ms for member in self.members.values())])

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader, if the present one has not. False when nobody has."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.awaiting_join is not None:
            return True
        joined = next((m.member_id for m in self.members.values() if m.awaiting_join is not None), None)
        if joined is None:
            return False
        self.leader_id = joined
        return True

    # protocols

    def supports(self, protocol_type: str, protocols: dict[str, bytes]) -> bool:
        """Say whether a member with these protocols can be in the group."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and any(map(self._all_know, protocols))

    def select_protocol(self) -> str:
        """Return the protocol that all members know and most like best."""
        votes = Counter(
            next(name for name in member.protocols if self._all_know(name))
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def _all_know(self, protocol: str) -> bool:
        return self.protocol_counts.get(protocol, 0) == len(self.members)

    def _count_protocols(self, protocols: Iterable[str], by: int) -> None:
        counts = self.protocol_counts
        for name in protocols:
            count = counts.pop(name, 0) + by
            if count:
                counts[name] = count

    # generations

    def start_next_generation(self, now_ms: int) -> None:
        """Everybody who comes has come."""
        self.generation += 1
        self.pending_sync.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.move_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    def join_answer(self, member: Member, error_code: ErrorCode = ErrorCode.NONE) -> JoinGroupResponse:
        """Tell a member of the generation; the leader gets everybody's metadata too."""
        members: tuple[JoinGroupResponseMember, ...] = ()
        if member.member_id == self.leader_id:
            members = self.members_for_leader()
        return JoinGroupResponse(
            error_code=error_code,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_id or "",
            member_id=member.member_id,
            members=members,
        )

    def members_for_leader(self) -> tuple[JoinGroupResponseMember, ...]:
        """Everybody's metadata for the chosen protocol."""
        return tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.protocols.get(self.protocol_name or "", b""),
            )
            for member in self.members.values()
        )

    # the record

    @property
    def kind(self) -> GroupKind:
        """The kind of group."""
        return GroupKind.CLASSIC

    @property
    def state_name(self) -> str:
        """The state, by the name that clients see."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and nobody waits for it to have some."""
        return self.state is GroupState.EMPTY

    @property
    def expires(self) -> bool:
        """Whether the group goes by itself: it has nothing but offsets."""
        return True

    @property
    def protocol_type_name(self) -> str:
        """The protocol type; empty for a group that only has offsets."""
        return self.protocol_type or ""

    def record(self, assignments: dict[str, bytes] | None = None) -> CoordinatorRecord:
        """Return the group as its record. `assignments` take the place of what the members have now."""
        members = tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols.get(self.protocol_name or "", b""),
                assignment=member.assignment
                if assignments is None
                else assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        )
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_since_ms,
            members=members,
        )
        return CoordinatorRecord(GroupMetadataKey(group=self.group_id), value, GROUP_METADATA_VERSION)

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the record that deletes the group."""
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None, -1)]


def group_of_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group that a record describes. With members it is stable: that is when it was written."""
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_since_ms=value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for item in value.members:
        # Before version 1 there was no rebalance timeout: the session timeout stood for both.
        rebalance_timeout_ms = item.rebalance_timeout
        if rebalance_timeout_ms == -1:
            rebalance_timeout_ms = item.session_timeout
        member = Member(
            item.member_id, item.group_instance_id, item.client_id, item.client_host, rebalance_timeout_ms,
            item.session_timeout, value.protocol_type, {value.protocol or "": item.subscription},
            item.assignment,
        )  # fmt: skip
        group.add(member)
    group.subscribed_topics = group.find_subscribed_topics()
    return group


def refused_join(member_id: str, error_code: ErrorCode) -> JoinGroupResponse:
    """Return the answer to a join that does not happen."""
    return JoinGroupResponse(
        error_code=error_code, protocol_name=None, leader="", member_id=member_id, members=()
    )


def answer_sync(member: Member, response: SyncGroupResponse) -> bool:
    """Answer a parked sync. False when none is parked."""
    answer, member.awaiting_sync = member.awaiting_sync, None
    if answer is None:
        return False
    answer(response)
    return True

"""JoinGroup on a classic group: who may come in, and what a member that is in already gets.

A join changes the group in memory only, so it is a step of the rebalance (`rebalance.py`) and no decision. It
answers by itself: at once, or when everybody has come. One thing is written here: that a static member of a
stable group is back under another id.
"""

from collections.abc import Callable

from ottla.coordination.group.classic.group import (
    ClassicGroup,
    Member,
    refused_join,
)
from ottla.coordination.group.classic.rebalance import NOTHING, Rebalances, Settled
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.environment import Client, Environment
from ottla.coordination.runtime.decision import Decision
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

Answer = Callable[[JoinGroupResponse], None]
_FIRST_VERSION_THAT_ASKS_FOR_AN_ID = 4
_FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9


class Joins:
    """The joining of classic groups."""

    def __init__(self, environment: Environment, rebalances: Rebalances) -> None:
        self._env = environment
        self._rebalances = rebalances

    def join(
        self, group: ClassicGroup, ask: JoinGroupRequest, client: Client, answer: Answer, now_ms: int
    ) -> None:
        """Let a client in, or say why not. The answer comes when the rebalance is complete."""
        self._rebalances.write(self._join(group, ask, client, answer, now_ms))

    def _join(
        self, group: ClassicGroup, ask: JoinGroupRequest, client: Client, answer: Answer, now_ms: int
    ) -> Settled:
        protocols = {item.name: item.metadata for item in ask.protocols}
        if not self._has_room_for(group, ask.member_id):
            group.remove(ask.member_id)
            answer(refused_join("", ErrorCode.GROUP_MAX_SIZE_REACHED))
            return self._rebalances.go_on(group, now_ms)
        if group.state is GroupState.DEAD:
            answer(refused_join(ask.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return NOTHING
        if not group.supports(ask.protocol_type, protocols):
            answer(refused_join(ask.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return NOTHING
        if not ask.member_id:
            return self._join_new(group, ask, client, answer, now_ms)
        if ask.member_id in group.pending_members:
            return self._add(group, ask, client, ask.member_id, answer, now_ms)
        return self._join_again(group, ask, protocols, answer, now_ms)

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._env.settings.classic_group_size_max
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            # Those who have joined count, not all members: so the last to come back are the ones left out.
            is_waiting = member is not None and member.awaiting_join is not None
            return is_waiting or group.awaiting_join_count < most
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return member is not None or len(group.members) < most
        return True

    def _join_new(
        self, group: ClassicGroup, ask: JoinGroupRequest, client: Client, answer: Answer, now_ms: int
    ) -> Settled:
        prefix = client.client_id if ask.group_instance_id is None else ask.group_instance_id
        member_id = f"{prefix}-{self._env.new_member_suffix()}"
        if ask.group_instance_id is not None:
            known_id = group.static_members.get(ask.group_instance_id)
            if known_id is not None:
                return self._come_back(group, ask, client, known_id, member_id, answer, now_ms)
        elif client.version >= _FIRST_VERSION_THAT_ASKS_FOR_AN_ID:
            group.pending_members.add(member_id)
            self._rebalances.expect_word_of(group.group_id, member_id, ask.session_timeout_ms)
            answer(refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED))
            return NOTHING
        return self._add(group, ask, client, member_id, answer, now_ms)

    def _add(
        self,
        group: ClassicGroup,
        ask: JoinGroupRequest,
        client: Client,
        member_id: str,
        answer: Answer,
        now_ms: int,
    ) -> Settled:
        member = Member(
            member_id,
            ask.group_instance_id,
            client.client_id,
            client.host,
            ask.rebalance_timeout_ms,
            ask.session_timeout_ms,
            ask.protocol_type,
            {item.name: item.metadata for item in ask.protocols},
            is_new=True,
            awaiting_join=answer,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        group.add(member)
        # A new member sends no heartbeats while its join is parked, and may have gone away meanwhile.
        self._rebalances.expect_word_of(
            group.group_id, member_id, self._env.settings.new_member_join_timeout_ms
        )
        return self._rebalances.start_or_go_on(group, now_ms)

    def _join_again(
        self,
        group: ClassicGroup,
        ask: JoinGroupRequest,
        protocols: dict[str, bytes],
        answer: Answer,
        now_ms: int,
    ) -> Settled:
        refusal = group.check_member(ask.member_id, ask.group_instance_id)
        if refusal is not ErrorCode.NONE:
            answer(refused_join(ask.member_id, refusal))
            return NOTHING
        member = group.members[ask.member_id]
        unchanged = list(member.protocols.items()) == list(protocols.items())
        leads = member.member_id == group.leader_id
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                return self._update(group, member, ask, protocols, answer, now_ms)
            case GroupState.COMPLETING_REBALANCE if unchanged:
                # It did not get the answer to its first join: here it is again.
                answer(group.join_answer(member))
                return NOTHING
            case GroupState.STABLE if unchanged and not leads:
                answer(replace(group.join_answer(member), members=()))
                return NOTHING
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                return self._update(group, member, ask, protocols, answer, now_ms)
            case _:
                answer(refused_join(ask.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
                return NOTHING

    def _update(
        self,
        group: ClassicGroup,
        member: Member,
        ask: JoinGroupRequest,
        protocols: dict[str, bytes],
        answer: Answer,
        now_ms: int,
    ) -> Settled:
        group.update(member, protocols, ask.rebalance_timeout_ms, ask.session_timeout_ms, answer)
        return self._rebalances.start_or_go_on(group, now_ms)

    def _come_back(
        self,
        group: ClassicGroup,
        ask: JoinGroupRequest,
        client: Client,
        old_id: str,
        new_id: str,
        answer: Answer,
        now_ms: int,
    ) -> Settled:
        """A static member is back under a new id. If nothing changed for the others, they need not know."""
        assert ask.group_instance_id is not None
        instance_id, old_leader = ask.group_instance_id, group.leader_id
        self._env.timers.cancel(("session", group.group_id, old_id))
        member = group.replace_static_member(instance_id, old_id, new_id)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        protocols = {item.name: item.metadata for item in ask.protocols}
        group.update(member, protocols, ask.rebalance_timeout_ms, ask.session_timeout_ms, answer)
        self._rebalances.expect_heartbeat(group, member)
        if group.state is not GroupState.STABLE:
            if group.state is GroupState.COMPLETING_REBALANCE:
                # The leader may already be assigning partitions to the old id.
                return self._rebalances.start(group, now_ms)
            return self._rebalances.go_on(group, now_ms)
        if group.select_protocol() != group.protocol_name:
            return self._rebalances.start(group, now_ms)

        def stored(_is_stored: bool) -> None:
            if member.awaiting_join is not answer:
                # It came back yet again, or left, while the record was on its way to the disk.
                return
            if client.version >= _FIRST_VERSION_THAT_SKIPS_ASSIGNMENT:
                leads = group.leader_id == new_id
                group.answer_join(member, replace(group.join_answer(member), skip_assignment=leads))
            else:
                # An old client that learns that it leads would assign again: its answer says that its old
                # self leads.
                response = replace(group.join_answer(member), leader=old_leader or "", members=())
                group.answer_join(member, response)

        def not_stored(error: ErrorCode) -> None:
            if member.awaiting_join is answer:
                group.update(member, *before, None)
                group.replace_static_member(instance_id, new_id, old_id)
                self._rebalances.expect_heartbeat(group, member)
                answer(replace(group.join_answer(member, error), member_id="", members=()))

        self._env.submit(lambda: Decision((group.record(),), reply=True), stored, not_stored)
        return NOTHING

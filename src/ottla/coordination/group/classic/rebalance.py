"""How a classic group gets from one generation to the next.

A rebalance starts when somebody joins, leaves or goes silent. It waits until every member has asked to join
again, or the longest rebalance timeout is over; members that have not come by then are removed. Then the
generation counts up, the leader learns of all members, and brings the assignment with its SyncGroup. A group
that was empty waits a little longer, so that the members of an application that starts up come in together.

All of this is in memory only, as in Kafka, and a crash takes it: members then join again. So the steps here
are no decisions. They change the group at once, as the effect of a decision without records, and return what
the group has settled on: the records to write. Replaying these while the shard serves changes nothing, for
the group in memory is what they were made from.
"""

from collections.abc import Callable

from ottla.coordination.group.classic.group import (
    ClassicGroup,
    Member,
    answer_sync,
    refused_join,
)
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.environment import Environment
from ottla.coordination.runtime.decision import Decision
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupResponse

FindGroup = Callable[[str], ClassicGroup | None]
Settled = tuple[CoordinatorRecord, ...]
"""The records of what a step has settled; mostly none."""
NOTHING: Settled = ()


class Rebalances:
    """The steps of a rebalance, for all classic groups of a shard."""

    def __init__(self, environment: Environment, find_group: FindGroup) -> None:
        self._env = environment
        self._find_group = find_group

    def take_step(self, step: Callable[[], Settled]) -> None:
        """Take a step that no request asks for, if the shard still serves."""
        self._env.submit(lambda: Decision(after_append=lambda: self.write(step())))

    def write(self, settled: Settled) -> None:
        """Write what a step has settled, if it has."""
        if settled:
            self._env.submit(lambda: Decision(settled))

    def start_or_go_on(self, group: ClassicGroup, now_ms: int) -> Settled:
        """Start a rebalance, or see whether the one under way is complete now."""
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY):
            return self.start(group, now_ms)
        return self.go_on(group, now_ms)

    def start(self, group: ClassicGroup, now_ms: int) -> Settled:
        """Ask everybody to join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.hand_out_error(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self._env.timers.cancel(("sync", group.group_id))
        is_first = group.state is GroupState.EMPTY
        group.move_to(GroupState.PREPARING_REBALANCE, now_ms)
        if is_first:
            delay_ms = self._env.settings.initial_rebalance_delay_ms
            self._wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            return NOTHING
        if group.all_joined:
            return self.complete_join(group, now_ms)
        self._schedule_join(group)
        return NOTHING

    def start_again(self, group: ClassicGroup, now_ms: int) -> None:
        """Start a rebalance that is not the outcome of a request."""
        self.take_step(lambda: self.start(group, now_ms))

    def go_on(self, group: ClassicGroup, now_ms: int) -> Settled:
        """Complete the joining if everybody is there. A group that was empty waits for its timer."""
        if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
            return NOTHING
        return self.complete_join(group, now_ms) if group.all_joined else NOTHING

    def complete_join(self, group: ClassicGroup, now_ms: int) -> Settled:
        """Start the next generation with those who have come."""
        self._env.timers.cancel(("join", group.group_id))
        # A static member is given until its session ends: it may just be restarting.
        for member in list(group.members.values()):
            if member.awaiting_join is None and member.instance_id is None:
                self._env.member_lost(
                    group.group_id, member.member_id, "rebalance", group.rebalance_timeout_ms
                )
                self.forget(group, member.member_id)
        if group.members and not group.elect_joined_leader():
            self._schedule_join(group)
            return NOTHING
        group.start_next_generation(now_ms)
        if group.state is GroupState.EMPTY:
            return (group.record(),)
        for member in list(group.members.values()):
            group.answer_join(member, group.join_answer(member))
            member.is_new = False
            self.expect_heartbeat(group, member)
            group.pending_sync.add(member.member_id)
        self._schedule_sync(group)
        return NOTHING

    def hand_out(self, group: ClassicGroup, assignments: dict[str, bytes], now_ms: int) -> None:
        """Give everybody who waits the assignment; the group is stable from now on."""
        assert group.state is GroupState.COMPLETING_REBALANCE
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.move_to(GroupState.STABLE, now_ms)
        for member in list(group.members.values()):
            answer = SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                assignment=member.assignment,
            )
            if answer_sync(member, answer):
                self.expect_heartbeat(group, member)

    def hand_out_error(self, group: ClassicGroup, error_code: ErrorCode) -> None:
        """Tell everybody who waits that there is no assignment this time."""
        for member in list(group.members.values()):
            member.assignment = b""
            if answer_sync(member, SyncGroupResponse(error_code=error_code, assignment=b"")):
                self.expect_heartbeat(group, member)

    def expect_heartbeat(self, group: ClassicGroup, member: Member) -> None:
        """Give a member until its session ends to send something again."""
        self.expect_word_of(group.group_id, member.member_id, member.session_timeout_ms)

    def expect_word_of(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Wait this long for a request with an id."""
        self._env.timers.schedule(
            ("session", group_id, member_id),
            timeout_ms,
            lambda now_ms: self.take_step(lambda: self._session_ended(group_id, member_id, now_ms)),
        )

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        """Take a member, or an id that was only handed out, out of the group."""
        self._env.timers.cancel(("session", group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            group.answer_join(member, refused_join("", ErrorCode.UNKNOWN_MEMBER_ID))
            answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, assignment=b""))
        group.remove(member_id)

    def after_leaving(self, group: ClassicGroup, now_ms: int) -> Settled:
        """Act on members that are gone."""
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            return self.start(group, now_ms)
        return self.go_on(group, now_ms)

    def resume(self, group: ClassicGroup, now_ms: int) -> None:
        """Go on with a group that was loaded: its members have their whole session to send something."""
        for member in group.members.values():
            self.expect_heartbeat(group, member)
        if len(group.members) > self._env.settings.classic_group_size_max:
            # The limit was lowered. The rebalance lets as many in as there may be now.
            self.start_again(group, now_ms)

    def give_up_all(self, group: ClassicGroup, error_code: ErrorCode) -> None:
        """Tell everybody who waits that the coordinator is another one now."""
        for member in list(group.members.values()):
            group.answer_join(member, refused_join(member.member_id, error_code))
            answer_sync(member, SyncGroupResponse(error_code=error_code, assignment=b""))

    def retire(self, group: ClassicGroup, error_code: ErrorCode) -> None:
        """Let go of a group that has become one of another kind: nothing is waited for any more."""
        self.give_up_all(group, error_code)
        timers, group_id = self._env.timers, group.group_id
        for member_id in (*group.members, *group.pending_members):
            timers.cancel(("session", group_id, member_id))
        timers.cancel(("join", group_id))
        timers.cancel(("sync", group_id))

    def _session_ended(self, group_id: str, member_id: str, now_ms: int) -> Settled:
        group = self._find_group(group_id)
        if group is None:
            return NOTHING
        if member_id in group.pending_members:
            group.remove(member_id)
            if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
                return self.complete_join(group, now_ms)
            return NOTHING
        member = group.members.get(member_id)
        if member is None or member.waits_for_others:
            return NOTHING
        self._env.member_lost(group_id, member_id, "session", member.session_timeout_ms)
        self.forget(group, member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            return self.complete_join(group, now_ms) if group.all_joined else NOTHING
        return self.after_leaving(group, now_ms)

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        group.new_member_added = False

        def over(group: ClassicGroup, now_ms: int) -> Settled:
            if group.new_member_added and remaining_ms:
                more_ms = min(self._env.settings.initial_rebalance_delay_ms, remaining_ms)
                self._wait_for_more(group, more_ms, max(remaining_ms - delay_ms, 0))
                return NOTHING
            return self.complete_join(group, now_ms)

        self._after(("join", group.group_id), delay_ms, group, over)

    def _schedule_join(self, group: ClassicGroup) -> None:
        self._after(("join", group.group_id), group.rebalance_timeout_ms, group, self.complete_join)

    def _schedule_sync(self, group: ClassicGroup) -> None:
        generation = group.generation

        def over(group: ClassicGroup, now_ms: int) -> Settled:
            if group.generation != generation or not group.pending_sync:
                return NOTHING
            if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
                return NOTHING
            for member_id in sorted(group.pending_sync):
                self._env.member_lost(group.group_id, member_id, "sync", group.rebalance_timeout_ms)
                self.forget(group, member_id)
            return self.start(group, now_ms)

        self._after(("sync", group.group_id), group.rebalance_timeout_ms, group, over)

    def _after(
        self,
        name: tuple[str, str],
        delay_ms: int,
        group: ClassicGroup,
        act: Callable[[ClassicGroup, int], Settled],
    ) -> None:
        """Act on the group after a while, if it still exists as a classic group then."""
        group_id = group.group_id

        def step(now_ms: int) -> Settled:
            found = self._find_group(group_id)
            return NOTHING if found is None else act(found, now_ms)

        self._env.timers.schedule(name, delay_ms, lambda now_ms: self.take_step(lambda: step(now_ms)))

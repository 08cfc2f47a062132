"""Bugs to plant, each a small change of the coordinator, to see whether the simulation finds them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pytest import MonkeyPatch  # noqa: PT013 - the type alone

from ottla.coordination.group.classic.group import ClassicGroup, Member, answer_sync
from ottla.coordination.group.classic.membership import Memberships
from ottla.coordination.group.classic.rebalance import NOTHING, Rebalances
from ottla.coordination.runtime.shard import Shard
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupResponse


def answer_before_the_commit(patch: MonkeyPatch) -> None:
    patch.setattr(Shard, "_when_committed", lambda _self, answer, reply, *_: answer(reply))


def hand_out_before_the_assignment_is_stored(patch: MonkeyPatch) -> None:
    def stored_at_once(
        self: Memberships, group: ClassicGroup, brought: dict[str, bytes], now_ms: int
    ) -> None:
        assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}
        record = group.record(assignments)
        self._rebalances.hand_out(group, assignments, now_ms)
        self._rebalances.write((record,))

    patch.setattr(Memberships, "_store", stored_at_once)


def accept_commits_of_the_past(patch: MonkeyPatch) -> None:
    patch.setattr(ClassicGroup, "check_commit", lambda _self, _commit: None)


def forget_to_fence_static_members(patch: MonkeyPatch) -> None:
    """The old id of a member that came back stays as good as the new one."""

    def replace_static_member(self: ClassicGroup, instance_id: str, old_id: str, new_id: str) -> Member:
        member = replace(self.members[old_id], member_id=new_id, awaiting_join=None, awaiting_sync=None)
        self.add(member)
        if self.leader_id == old_id:
            self.leader_id = new_id
        return member

    def check_member(self: ClassicGroup, member_id: str, _instance_id: str | None) -> ErrorCode:
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    patch.setattr(ClassicGroup, "replace_static_member", replace_static_member)
    patch.setattr(ClassicGroup, "check_member", check_member)


def keep_the_generation(patch: MonkeyPatch) -> None:
    start = ClassicGroup.start_next_generation

    def start_same_generation(self: ClassicGroup, now_ms: int) -> None:
        start(self, now_ms)
        self.generation = max(self.generation - 1, 1)

    patch.setattr(ClassicGroup, "start_next_generation", start_same_generation)


def load_all_but_the_last_batch(patch: MonkeyPatch) -> None:
    def load(self: Shard[Any]) -> Iterator[int]:
        for batch in list(self._log.batches())[:-1]:
            self._replay_batch(batch)
            self.written_offset = self.committed_offset = batch.last_offset
            yield batch.last_offset

    patch.setattr(Shard, "load", load)


def start_no_sessions_after_loading(patch: MonkeyPatch) -> None:
    patch.setattr(Rebalances, "resume", lambda _self, _group, _now_ms: None)


def do_nothing_when_a_member_leaves(patch: MonkeyPatch) -> None:
    patch.setattr(Rebalances, "after_leaving", lambda _self, _group, _now_ms: NOTHING)


def write_down_old_assignments(patch: MonkeyPatch) -> None:
    record = ClassicGroup.record
    patch.setattr(ClassicGroup, "record", lambda self, _assignments=None: record(self))


def hand_out_to_whoever_is_there_now(patch: MonkeyPatch) -> None:
    """An assignment that was overtaken by a newcomer is handed out all the same."""

    def hand_out_error(self: Rebalances, group: ClassicGroup, _error: ErrorCode) -> None:
        for member in list(group.members.values()):
            answer_sync(member, SyncGroupResponse(assignment=member.assignment, protocol_name="range"))

    patch.setattr(Rebalances, "hand_out_error", hand_out_error)


BUGS: list[Callable[[MonkeyPatch], None]] = [
    answer_before_the_commit, hand_out_before_the_assignment_is_stored, accept_commits_of_the_past,
    forget_to_fence_static_members, keep_the_generation, load_all_but_the_last_batch,
    start_no_sessions_after_loading, do_nothing_when_a_member_leaves, write_down_old_assignments,
    hand_out_to_whoever_is_there_now,
]  # fmt: skip

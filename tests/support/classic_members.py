"""Members of classic groups that follow the protocol, for tests that have other things to say."""

from dataclasses import dataclass
from typing import Any

from tests.support.group_requests import (
    heartbeat_request,
    join_request,
    leave_request,
    subscription,
    sync_request,
)
from tests.support.group_world import GroupWorld

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse

GROUP = "group"
RANGE = (("range", subscription("orders")),)


@dataclass
class TestMember:
    """Who takes part in a group, as it knows itself."""

    __test__ = False

    world: GroupWorld
    member_id: str = ""
    instance_id: str | None = None
    group: str = GROUP
    generation: int = -1
    protocols: tuple[tuple[str, bytes], ...] = RANGE
    session_timeout_ms: int = 10_000

    def join(self) -> list[Any]:
        """Ask to join, with an id. The answer comes into the list."""
        answers = self._send_join()
        if answers and answers[0].error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answers[0].member_id
            answers = self._send_join()
        return answers

    def _send_join(self) -> list[Any]:
        request = join_request(
            self.group,
            self.member_id,
            instance_id=self.instance_id,
            protocols=self.protocols,
            session_timeout_ms=self.session_timeout_ms,
        )
        return self.world.send("join_group", request)

    def joined(self, answers: list[Any]) -> JoinGroupResponse:
        """Take over what the answer to a join says."""
        assert answers, "the join is still parked"
        answer: JoinGroupResponse = answers[0]
        assert answer.error_code is ErrorCode.NONE, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, assignments: dict[str, bytes] | None = None) -> list[Any]:
        request = sync_request(
            self.group,
            self.generation,
            self.member_id,
            assignments,
            instance_id=self.instance_id,
            protocol_name=self.protocols[0][0],
        )
        return self.world.send("sync_group", request)

    def beat(self) -> ErrorCode:
        request = heartbeat_request(self.group, self.generation, self.member_id, self.instance_id)
        code: ErrorCode = self.world.ask("heartbeat", request).error_code
        return code

    def leave(self) -> ErrorCode:
        answer = self.world.ask("leave_group", leave_request(self.group, (self.member_id, self.instance_id)))
        code: ErrorCode = answer.members[0].error_code
        return code


def group_of(world: GroupWorld, group: str = GROUP) -> ClassicGroup:
    found = world.shard.state.find_classic(group)
    assert found is not None, f"there is no group {group}"
    return found


def stable_group(world: GroupWorld, size: int = 1, instance_ids: tuple[str, ...] = ()) -> list[TestMember]:
    """Return the members of a group that has settled. The first one leads."""
    members = [TestMember(world, instance_id=instance_id) for instance_id in instance_ids]
    members += [TestMember(world) for _ in range(size - len(members))]
    joins = [member.join() for member in members]
    while not all(joins):
        world.advance(world.settings.initial_rebalance_delay_ms)
    for member, answer in zip(members, joins, strict=True):
        member.joined(answer)
    bring_assignment(members)
    return members


def bring_assignment(members: list[TestMember]) -> None:
    """Let all members of a generation get their assignments. The first one leads."""
    assignments = {member.member_id: b"for " + member.member_id.encode() for member in members}
    syncs = [member.sync() for member in members[1:]]
    syncs.append(members[0].sync(assignments))
    assert all(answer and answer[0].error_code is ErrorCode.NONE for answer in syncs), syncs

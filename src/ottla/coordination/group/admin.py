"""What administrators ask of groups: list, describe and delete them.

DescribeGroups is about classic groups only. One of another kind is, to it, a group that does not exist.
"""

from collections.abc import Iterable
from typing import Final

from ottla.coordination.group.classic.group import ClassicGroup, Member
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.kinds import Group, GroupKind
from ottla.coordination.group.offsets.committed_offsets import CommittedOffsets
from ottla.coordination.group.offsets.delete import all_offset_tombstones
from ottla.coordination.group.refusal import Refused
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.messages.list_groups import ListedGroup

_FIRST_VERSION_THAT_SAYS_NOT_FOUND: Final = 6


def list_groups(groups: Iterable[Group], states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
    """List groups in any of the states and of any of the types. No filter lets all through.

    Names compare without case, and an unknown name matches nothing.
    """
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type_name,
            group_state=group.state_name,
            group_type=group.kind.value,
        )
        for group in groups
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.kind.value in wanted_types)
    ]


def describe_classic_group(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    """Describe one group. Subscriptions are shown while a protocol is settled."""
    if not isinstance(group, ClassicGroup):
        return _unknown(group_id, group, version)
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type_name,
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=tuple(_describe(member, group, is_stable) for member in group.members.values()),
    )


def refused_description(group_id: str, error_code: ErrorCode) -> DescribedGroup:
    """Return what is said of a group that cannot be described now."""
    return DescribedGroup(
        error_code=error_code,
        group_id=group_id,
        group_state="",
        protocol_type="",
        protocol_data="",
        members=(),
    )


def delete_group(group_id: str, group: Group | None, offsets: CommittedOffsets) -> list[CoordinatorRecord]:
    """Return the records that delete a group and its offsets. Raises `Refused`."""
    if group is None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
    group.check_delete()
    return [*all_offset_tombstones(offsets, group_id), *group.tombstones()]


def _unknown(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    says_so = version >= _FIRST_VERSION_THAT_SAYS_NOT_FOUND
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if says_so else ErrorCode.NONE,
        error_message=_why_unknown(group_id, group) if says_so else None,
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=(),
    )


def _why_unknown(group_id: str, group: Group | None) -> str:
    if group is None:
        return f"Group {group_id} not found."
    assert group.kind is not GroupKind.CLASSIC, "a classic group can be described"
    return f"Group {group_id} is not a classic group."


def _describe(member: Member, group: ClassicGroup, is_stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.protocols.get(group.protocol_name or "", b"") if is_stable else b"",
        member_assignment=member.assignment,
    )

"""Where share groups start in partitions: changed or forgotten by administrators. The group must be empty.

The share coordinators have these offsets. What they are asked for is recorded before, so that a coordinator
that is loaded meanwhile knows which states may be there.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.environment import Topics
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.share.group import ShareGroup
from ottla.coordination.group.share.persister import StartOffsets
from ottla.coordination.group.share.records import state_topics_record
from ottla.coordination.group.share.state_topics import NamedPartitions
from ottla.coordination.runtime.decision import Decision
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode


class Alteration(NamedTuple):
    """What the share coordinators are to begin again."""

    group_epoch: int
    starts: StartOffsets


class Deletion(NamedTuple):
    """What the share coordinators are to delete, and the topics of which there is nothing."""

    partitions: Partitions
    unknown: tuple[str, ...] = ()


def decide_alter(
    group_id: str, group: Group | None, starts: Mapping[str, Mapping[int, int]], topics: Topics
) -> Decision[Alteration]:
    """Begin to set start offsets of topics that exist. Raises `Refused`."""
    if group is None:
        group = ShareGroup(group_id)
    share_group = _check_empty(group_id, group)
    wanted: dict[Uuid, Mapping[int, int]] = {}
    named: dict[Uuid, NamedPartitions] = {}
    for name, offsets in starts.items():
        facts = topics.find_by_name(name)
        if facts is not None and offsets:
            wanted[facts.topic_id] = offsets
            named[facts.topic_id] = NamedPartitions(name, frozenset(offsets))
    records: tuple[CoordinatorRecord, ...] = ()
    if named:
        state = share_group.state_topics.with_initializing(named)
        records = (state_topics_record(group_id, state, topics),)
    return Decision(records, Alteration(share_group.epoch, wanted))


def decide_delete(
    group_id: str, group: Group | None, names: Iterable[str], topics: Topics
) -> Decision[Deletion]:
    """Begin to delete start offsets. Raises `Refused`."""
    share_group = _check_empty(group_id, group)
    state = share_group.state_topics
    partitions: dict[Uuid, frozenset[int]] = {}
    unknown: list[str] = []
    for name in names:
        facts = topics.find_by_name(name)
        if facts is None:
            unknown.append(name)
        elif facts.topic_id in state.initialized:
            partitions[facts.topic_id] = state.initialized[facts.topic_id].partitions
        elif facts.topic_id in state.deleting:
            partitions[facts.topic_id] = frozenset(range(facts.partition_count))
        else:
            unknown.append(name)
    reply = Deletion(partitions, tuple(unknown))
    if not share_group.has_state_topics:
        return Decision(reply=reply)
    return Decision((state_topics_record(group_id, state.with_deleting(partitions), topics),), reply)


def decide_deleted(
    group_id: str, group: Group | None, topic_ids: Iterable[Uuid], topics: Topics
) -> Decision[bool]:
    """Forget topics whose states are deleted. The reply says whether there was something to forget."""
    if not isinstance(group, ShareGroup) or not group.has_state_topics:
        return Decision(reply=False)
    state = group.state_topics.without_deleting(topic_ids)
    return Decision((state_topics_record(group_id, state, topics),), True)


def _check_empty(group_id: str, group: Group | None) -> ShareGroup:
    if not isinstance(group, ShareGroup):
        why = "was not found" if group is None else "is not a share group"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")
    if group.members:
        raise Refused(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} has members.")
    return group

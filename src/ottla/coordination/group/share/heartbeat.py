"""ShareGroupHeartbeat: a member joins, stays, or leaves (KIP-932).

1. What the member says about itself is recorded if it is new.
2. If subscriptions or topics have changed, or partitions have got their state, the group's epoch increases.
3. If the target is older than that, a new one is computed, but not too often.
4. The member gets what its target says.
5. Partitions without a state are listed as being initialized, and the share coordinators are asked for it.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.environment import Client, Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.modern.member import LEFT
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.share.assignor import assign
from ottla.coordination.group.share.group import NO_PARTITIONS, ShareGroup
from ottla.coordination.group.share.member import Member
from ottla.coordination.group.share.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    state_topics_record,
    target_epoch_record,
    target_record,
)
from ottla.coordination.group.share.sessions import Sessions
from ottla.coordination.runtime.decision import Decision
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN_EPOCH: Final = 0
MEMBER_ID_MAX: Final = 36
"""How many characters the id of a member may have. It is a UUID as a rule."""
_BLANKS: Final = "".join(map(chr, range(33)))
"""As in Java, everything up to the space character is blank."""


class Heartbeat(NamedTuple):
    """The answer to a heartbeat, and the partitions that need a state before they can be assigned."""

    response: ShareGroupHeartbeatResponse
    group_epoch: int = 0
    uninitialized: Partitions = NO_PARTITIONS


class _Draft:
    """What a heartbeat is about to change."""

    def __init__(self, group: ShareGroup, old: Member | None, new: Member, now_ms: int) -> None:
        self.group = group
        self.old = old
        self.new = new
        self.now_ms = now_ms
        self.records: list[CoordinatorRecord] = []
        self.names: set[str] = set(group.name_counts)
        self.checks_topics = False


class Heartbeats:
    """The heartbeats of all share groups of a shard."""

    def __init__(self, env: Environment, groups: dict[str, Group], sessions: Sessions) -> None:
        self._env = env
        self._groups = groups
        self._sessions = sessions
        self.hashes = MetadataHashes(env.topics)

    def decide(self, ask: ShareGroupHeartbeatRequest, client: Client, now_ms: int) -> Decision[Heartbeat]:
        """Answer a heartbeat that is valid in itself."""
        try:
            if ask.member_epoch == LEFT:
                return self._leave(ask)
            return self._stay(ask, client, now_ms)
        except Refused as refused:
            return Decision(reply=Heartbeat(refused_heartbeat(refused.error_code, refused.message)))

    def fence(self, group_id: str, member_id: str) -> Decision[Heartbeat]:
        """Remove a member that sent nothing for a session."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or member_id not in group.members:
            return Decision()
        return self._remove(group, group.members[member_id], None)

    # Leaving

    def _leave(self, ask: ShareGroupHeartbeatRequest) -> Decision[Heartbeat]:
        group = self._find_group(ask.group_id, may_create=False)
        response = ShareGroupHeartbeatResponse(
            member_id=ask.member_id, member_epoch=ask.member_epoch, heartbeat_interval_ms=0
        )
        return self._remove(group, _find_member(group, ask.member_id), Heartbeat(response))

    def _remove(self, group: ShareGroup, member: Member, reply: Heartbeat | None) -> Decision[Heartbeat]:
        metadata_hash = self.hashes.of_group(group.names_with(member, None))
        records = (
            *member_tombstones(group.group_id, member.member_id),
            epoch_record(group.group_id, group.epoch + 1, metadata_hash),
        )
        return Decision(records, reply, lambda: self._sessions.forget(group.group_id, member.member_id))

    # Joining and staying

    def _stay(self, ask: ShareGroupHeartbeatRequest, client: Client, now_ms: int) -> Decision[Heartbeat]:
        draft = self._draft(ask, client, now_ms)
        group, before = draft.group, draft.old or Member(ask.member_id)
        is_changed = self._describe(draft, before)
        if group.assignment_epoch >= group.epoch:
            is_changed |= group.lacks_assignment()
        epoch, is_changed = self._renew_epoch(draft, is_changed)
        target_epoch, target = self._renew_target(draft, epoch)
        self._reconcile(draft, target_epoch, target, is_changed)
        uninitialized = self._begin_initialization(draft)
        reply = Heartbeat(self._response(ask, draft, before), epoch, uninitialized)
        return Decision(tuple(draft.records), reply, lambda: self._after_append(draft, bool(uninitialized)))

    def _draft(self, ask: ShareGroupHeartbeatRequest, client: Client, now_ms: int) -> _Draft:
        is_joining = ask.member_epoch == JOIN_EPOCH
        group = self._find_group(ask.group_id, may_create=is_joining)
        most = self._env.settings.share_group_size_max
        if len(group.members) >= most and ask.member_id not in group.members:
            message = f"The share group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        old = group.members.get(ask.member_id) if is_joining else _find_member(group, ask.member_id)
        if old is not None:
            _check_epoch(old, ask.member_epoch)
        return _Draft(group, old, _updated(old or Member(ask.member_id), ask, client), now_ms)

    def _describe(self, draft: _Draft, before: Member) -> bool:
        """Record who the member is. True when it subscribes to other topics than before."""
        if draft.new == before:
            return False
        draft.records.append(member_record(draft.group.group_id, draft.new))
        return draft.new.topic_names != before.topic_names

    def _renew_epoch(self, draft: _Draft, is_changed: bool) -> tuple[int, bool]:
        """Increase the epoch if subscriptions or topics have changed. Return what it will be."""
        group = draft.group
        if not is_changed and group.are_topics_checked:
            return group.epoch, False
        draft.checks_topics = True
        draft.names = group.names_with(draft.old, draft.new)
        metadata_hash = self.hashes.of_group(draft.names)
        if not is_changed and metadata_hash == group.metadata_hash:
            return group.epoch, False
        draft.records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return group.epoch + 1, True

    def _renew_target(self, draft: _Draft, epoch: int) -> tuple[int, Partitions]:
        """Compute a new target if it is time. Return what the member should have, and since which epoch."""
        group, new, now_ms = draft.group, draft.new, draft.now_ms
        interval_ms = self._env.share_intervals(group.group_id).assignment_interval_ms
        computed_ms = group.assignment_timestamp_ms
        # A time in the future is of a clock that was set back: nobody knows how long ago it was.
        is_time = computed_ms == 0 or not computed_ms <= now_ms < computed_ms + interval_ms
        if group.assignment_epoch >= epoch or not is_time:
            return group.assignment_epoch, group.targets.get(new.member_id, NO_PARTITIONS)
        targets = self._compute_target(draft)
        draft.records += [
            target_record(group.group_id, member_id, partitions)
            for member_id, partitions in targets.items()
            if group.targets.get(member_id) != partitions
        ]
        draft.records.append(target_epoch_record(group.group_id, epoch, now_ms))
        return epoch, targets[new.member_id]

    def _compute_target(self, draft: _Draft) -> dict[str, Partitions]:
        group = draft.group
        members = {**group.members, draft.new.member_id: draft.new}
        ids: dict[frozenset[str], frozenset[Uuid]] = {}
        wanted = {}
        for member_id, member in members.items():
            names = member.topic_names
            if names not in ids:
                ids[names] = self._ids_of(names)
            wanted[member_id] = ids[names]
        assignable = {topic: state.partitions for topic, state in group.state_topics.initialized.items()}
        return assign(wanted, group.targets, assignable)

    def _reconcile(self, draft: _Draft, epoch: int, target: Partitions, is_changed: bool) -> None:
        member = draft.new
        if not is_changed and member.epoch == epoch:
            return
        subscribed = self._ids_of(member.topic_names)
        assigned = {topic: numbers for topic, numbers in target.items() if topic in subscribed}
        previous_epoch = member.previous_epoch if member.epoch == epoch else member.epoch
        draft.new = member.with_assignment(epoch, previous_epoch, assigned)
        if draft.new != member:
            draft.records.append(current_record(draft.group.group_id, draft.new))

    def _begin_initialization(self, draft: _Draft) -> Partitions:
        group, env = draft.group, self._env
        retries = (
            draft.now_ms - group.initializing_since_ms >= env.settings.share_initialize_retry_interval_ms
        )
        missing = group.state_topics.find_missing(sorted(draft.names), env.topics, retries)
        if not missing:
            return NO_PARTITIONS
        state = group.state_topics.with_initializing(missing)
        draft.records.append(state_topics_record(group.group_id, state, env.topics))
        return {topic: partitions for topic, (_, partitions) in missing.items()}

    def _after_append(self, draft: _Draft, initializes: bool) -> None:
        group_id = draft.group.group_id
        # The group of the draft may have been a new one. What counts is the group that the records made.
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup):
            group.are_topics_checked |= draft.checks_topics
            if initializes:
                group.initializing_since_ms = draft.now_ms
        self._sessions.expect_heartbeat(group_id, draft.new.member_id)

    def _response(
        self, ask: ShareGroupHeartbeatRequest, draft: _Draft, before: Member
    ) -> ShareGroupHeartbeatResponse:
        """Give the member its epoch; and its assignment, if it changed or the member may not know it."""
        member = draft.new
        is_full_request = ask.subscribed_topic_names is not None
        assignment = None
        if ask.member_epoch == JOIN_EPOCH or is_full_request or before.assigned != member.assigned:
            assignment = _answered(member.assigned)
        return ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._env.share_intervals(ask.group_id).heartbeat_interval_ms,
            assignment=assignment,
        )

    def _find_group(self, group_id: str, may_create: bool) -> ShareGroup:
        group = self._groups.get(group_id)
        if group is None and may_create:
            return ShareGroup(group_id)
        if not isinstance(group, ShareGroup):
            why = "was not found" if group is None else "is not a share group"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")
        return group

    def _ids_of(self, names: frozenset[str]) -> frozenset[Uuid]:
        find = self._env.topics.find_by_name
        return frozenset(facts.topic_id for name in names if (facts := find(name)) is not None)


def check_share_heartbeat(ask: ShareGroupHeartbeatRequest) -> None:
    """Raise `Refused` if a request cannot be served, whatever the group."""
    for name, text in (("MemberId", ask.member_id), ("GroupId", ask.group_id), ("RackId", ask.rack_id)):
        if text is not None and not text.lstrip(_BLANKS):
            raise Refused(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if len(ask.member_id) > MEMBER_ID_MAX:
        raise Refused(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    if ask.member_epoch == JOIN_EPOCH:
        if not ask.subscribed_topic_names:
            raise Refused(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    elif ask.member_epoch < LEFT:
        raise Refused(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def refused_heartbeat(error_code: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
    """Return the answer to a heartbeat that is not served."""
    return ShareGroupHeartbeatResponse(
        error_code=error_code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def _find_member(group: ShareGroup, member_id: str) -> Member:
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def _check_epoch(member: Member, asked: int) -> None:
    """Fence a member whose epoch is not the one it was given, or the previous one: an answer may be lost."""
    if asked in (JOIN_EPOCH, member.epoch, member.previous_epoch) and asked <= member.epoch:
        return
    relation = "greater" if asked > member.epoch else "smaller"
    message = (
        f"The member epoch {asked} is {relation} than the one the coordinator knows ({member.epoch}). "
        "The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _updated(base: Member, ask: ShareGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member with what the request says. What it leaves out has not changed."""
    names = ask.subscribed_topic_names
    if (ask.rack_id, names) == (None, None) and (client.client_id, client.host) == (
        base.client_id,
        base.client_host,
    ):
        # Nearly all heartbeats end here.
        return base
    return replace(
        base,
        rack_id=base.rack_id if ask.rack_id is None else ask.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        topic_names=base.topic_names if names is None else frozenset(names),
    )


def _answered(assigned: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic, partitions=tuple(sorted(assigned[topic])))
            for topic in sorted(assigned)
        )
    )

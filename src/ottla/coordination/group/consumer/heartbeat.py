"""ConsumerGroupHeartbeat: a member joins, stays, or leaves (KIP-848)."""

from dataclasses import replace
from functools import partial
from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.consumer.departures import Departures, find_member, find_static_member
from ottla.coordination.group.consumer.group import NO_PARTITIONS, ConsumerGroup
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.reconciliation import Held
from ottla.coordination.group.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.consumer.steps import Draft, RegexChange, Steps
from ottla.coordination.group.consumer.upgrade import Upgrade, Upgrades
from ottla.coordination.group.consumer.validation import JOIN_EPOCH
from ottla.coordination.group.environment import Client, Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.modern.member import LEFT, LEFT_FOR_NOW
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision, in_order
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_UNCHANGED_MS: Final = -1
_NOTHING_SAID: Final = (None,) * 5


class Heartbeats:
    """The heartbeats of all consumer groups of a shard."""

    def __init__(
        self,
        env: Environment,
        groups: dict[str, Group],
        steps: Steps,
        sessions: Sessions,
        upgrades: Upgrades,
        departures: Departures,
    ) -> None:
        self._env = env
        self._groups = groups
        self._steps = steps
        self._sessions = sessions
        self._upgrades = upgrades
        self._departures = departures

    def decide(
        self, ask: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Answer a heartbeat that is valid in itself."""
        try:
            if ask.member_epoch in (LEFT, LEFT_FOR_NOW):
                return self._departures.leave(self._find_group(ask.group_id), ask, now_ms)
            return self._stay(ask, client, now_ms)
        except Refused as refused:
            return Decision(reply=refused_heartbeat(refused.error_code, refused.message))

    def _stay(
        self, ask: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        draft = self._draft(ask, client, now_ms)
        owned = _owned(ask)
        names_changed = self._steps.describe(draft)
        regex_change = self._steps.take_regex(draft)
        # While the topics of a new expression are not known, a new target would be for nothing.
        is_changed = names_changed or regex_change is RegexChange.UPDATED_AND_RESOLVED
        epoch = self._steps.renew_epoch(draft, is_changed)
        target = self._steps.renew_target(draft, epoch)
        subscription_changed = names_changed or regex_change is not RegexChange.NONE
        self._steps.reconcile(draft, target, owned, subscription_changed)
        draft.effects.append(partial(self._sessions.expect_heartbeat, ask.group_id, draft.new.member_id))
        return Decision(tuple(draft.records), self._reply(ask, draft), in_order(draft.effects))

    def _draft(self, ask: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int) -> Draft:
        """Find the group and the member, or make them, and take over what the request says."""
        is_joining = ask.member_epoch == JOIN_EPOCH
        if is_joining:
            upgrade = self._upgrades.group_to_join(ask.group_id, self._groups.get(ask.group_id))
        else:
            upgrade = Upgrade(self._find_group(ask.group_id), [], [])
        group, records, effects = upgrade
        check_room(group, ask.member_id, self._env)
        member_id = ask.member_id or self._env.new_member_suffix()
        old: Member | None
        if not is_joining:
            old = base = _known_member(group, ask, member_id)
        elif (away := group.find_static(ask.instance_id)) is not None:
            if away.classic is None:
                _check_is_released(away, ask)
            old, base = away, take_place_of(away, member_id, group, records)
        else:
            old = group.members.get(member_id)
            base = old or Member(member_id)
        return Draft(group, old, base, _updated(base, ask, client), now_ms, records, effects, client.sees)

    def _find_group(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            why = "was not found" if group is None else "is not a consumer group"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")
        return group

    def _reply(self, ask: ConsumerGroupHeartbeatRequest, draft: Draft) -> ConsumerGroupHeartbeatResponse:
        """Tell the member its epoch; and its assignment, if that changed or the member may not know it."""
        member = draft.new
        is_full_request = (
            ask.rebalance_timeout_ms != _UNCHANGED_MS
            and (ask.subscribed_topic_names is not None or ask.subscribed_topic_regex is not None)
            and ask.topic_partitions is not None
        )
        assignment = None
        if (
            ask.member_epoch == JOIN_EPOCH
            or is_full_request
            or draft.base.assignment.assigned != member.assignment.assigned
        ):
            assignment = _answered(member.assignment.assigned)
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._env.consumer_intervals(ask.group_id).heartbeat_interval_ms,
            assignment=assignment,
        )


def refused_heartbeat(error_code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to a heartbeat that is not served."""
    return ConsumerGroupHeartbeatResponse(
        error_code=error_code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def check_room(group: ConsumerGroup, member_id: str, env: Environment) -> None:
    """Refuse somebody new in a group that is full."""
    most = env.settings.consumer_group_size_max
    if len(group.members) >= most and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {most} members."
        raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def take_place_of(
    old: Member, member_id: str, group: ConsumerGroup, records: list[CoordinatorRecord]
) -> Member:
    """Return a static member that begins where the one that had its instance id has stopped."""
    begun = replace(old.assignment, member_epoch=0, previous_epoch=0)
    successor = replace(old, member_id=member_id, assignment=begun)
    target = group.targets.get(old.member_id, NO_PARTITIONS)
    records += [
        *member_tombstones(group.group_id, old.member_id),
        member_record(group.group_id, successor),
        target_record(group.group_id, member_id, target),
        current_record(group.group_id, successor),
    ]
    return successor


def _known_member(group: ConsumerGroup, ask: ConsumerGroupHeartbeatRequest, member_id: str) -> Member:
    if ask.instance_id is None:
        member = find_member(group, member_id)
    else:
        member = find_static_member(group, ask.instance_id, member_id)
    _check_epoch(member, ask)
    return member


def _check_epoch(member: Member, ask: ConsumerGroupHeartbeatRequest) -> None:
    """Fence a member whose epoch is not the one it was given.

    The one before is fine while it owns no more than it has now: the answer with the new one may be lost.
    """
    asked, known = ask.member_epoch, member.epoch
    if asked == known:
        return
    if asked < known:
        is_the_one_before = asked == member.assignment.previous_epoch
        if is_the_one_before and _is_subset(_owned(ask), member.assignment.assigned):
            return
    relation = "greater" if asked > known else "smaller"
    message = (
        f"The member epoch {asked} is {relation} than the one the coordinator knows ({known}). "
        "The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _check_is_released(old: Member, ask: ConsumerGroupHeartbeatRequest) -> None:
    if old.epoch != LEFT_FOR_NOW:
        message = (
            f"Static member {ask.member_id} cannot join: its instance id {ask.instance_id} "
            f"is owned by member {old.member_id}."
        )
        raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def _updated(base: Member, ask: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member with what the request says. What it leaves out has not changed."""
    names, timeout_ms = ask.subscribed_topic_names, ask.rebalance_timeout_ms
    if (
        (ask.instance_id, ask.rack_id, names, ask.subscribed_topic_regex, ask.server_assignor)
        == _NOTHING_SAID
        and timeout_ms in (_UNCHANGED_MS, base.rebalance_timeout_ms)
        and (client.client_id, client.host, None) == (base.client_id, base.client_host, base.classic)
    ):
        # Nearly all heartbeats end here.
        return base
    return Member(
        base.member_id,
        base.instance_id if ask.instance_id is None else ask.instance_id,
        base.rack_id if ask.rack_id is None else ask.rack_id,
        client.client_id,
        client.host,
        base.topic_names if names is None else frozenset(names),
        base.topic_regex if ask.subscribed_topic_regex is None else ask.subscribed_topic_regex,
        base.rebalance_timeout_ms if timeout_ms == _UNCHANGED_MS else timeout_ms,
        base.server_assignor if ask.server_assignor is None else ask.server_assignor,
        None,
        base.assignment,
    )


def _owned(ask: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if ask.topic_partitions is None:
        return None
    owned: dict[Uuid, frozenset[int]] = {}
    for topic in ask.topic_partitions:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned


def _is_subset(owned: Partitions | None, held: Held) -> bool:
    if owned is None:
        return False
    return all(topic in held and numbers <= held[topic].keys() for topic, numbers in owned.items())


def _answered(assigned: Held) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic, partitions=tuple(sorted(assigned[topic])))
            for topic in sorted(assigned)
        )
    )

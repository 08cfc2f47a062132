"""StreamsGroupHeartbeat: a member joins, stays, or leaves (KIP-1071).

1. What the member says of itself is written down if it has changed.
2. The first member brings the topology.
3. The topology is fitted to the topics that exist. Internal topics that are missing are named in the outcome;
   the broker creates them, and they are there when a later heartbeat looks.
4. If members, topics or configs have changed, the group's epoch increases, and a new target is computed: not
   before a new group has waited for more members, and not too often.
5. The member makes its next step towards its target.

Nothing changes before the records are appended and replayed; then the effects follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.deadlines import decide_later
from ottla.coordination.group.environment import Client, Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.modern.member import LEFT
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.streams.answers import HeartbeatOutcome, answer, refused_heartbeat, task_ids
from ottla.coordination.group.streams.claims import check_owned, known_member, not_a_member, owned, updated
from ottla.coordination.group.streams.endpoints import partitions_by_endpoint
from ottla.coordination.group.streams.group import NOT_VALIDATED, StreamsGroup
from ottla.coordination.group.streams.internal_topics import (
    ConfiguredTopology,
    configure,
)
from ottla.coordination.group.streams.member import Member, MemberState
from ottla.coordination.group.streams.reconciliation import Goal, reconcile
from ottla.coordination.group.streams.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    topology_record,
)
from ottla.coordination.group.streams.status import StatusCode
from ottla.coordination.group.streams.target import (
    STANDBY_REPLICAS,
    Target,
    compute_target,
    is_too_soon,
    target_records,
)
from ottla.coordination.group.streams.tasks import NO_TARGET
from ottla.coordination.group.streams.topology import Topology, record_of_request, topology_of_record
from ottla.coordination.group.streams.validation import JOIN_EPOCH, LEFT_FOR_NOW
from ottla.coordination.runtime.decision import Decision, Effect, in_order
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


@dataclass(slots=True)
class _Draft:
    """What a heartbeat of one member is about to change."""

    group: StreamsGroup
    is_new_id: bool
    """Whether nothing of this id was known. Kafka then tells no endpoint epoch: it forgets it at once."""
    old: Member
    """The member as it was; a new one as if it had said nothing yet."""
    new: Member
    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)

    def tell(self, code: StatusCode, detail: str) -> None:
        """Add something that the member should know."""
        self.statuses.append(Status(status_code=code, status_detail=detail))


class Heartbeats:
    """The heartbeats of all streams groups of a shard."""

    def __init__(
        self,
        env: Environment,
        groups: dict[str, Group],
        hashes: MetadataHashes,
        sessions: Sessions,
        rebalances: Rebalances,
    ) -> None:
        self._env = env
        self._groups = groups
        self._hashes = hashes
        self._sessions = sessions
        self._rebalances = rebalances

    def decide(
        self, ask: StreamsGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[HeartbeatOutcome]:
        """Answer a heartbeat that is valid in itself."""
        try:
            if ask.member_epoch in (LEFT, LEFT_FOR_NOW):
                return self._leave(ask)
            return self._stay(ask, client, now_ms)
        except Refused as refused:
            return Decision(reply=refused_heartbeat(refused.error_code, refused.message))

    def fence(self, group: StreamsGroup, member_id: str, reply: Any = None) -> Decision[Any]:
        """Take a member out of the group."""
        group_id = group.group_id
        epoch = epoch_record(
            group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
        records = (*member_tombstones(group_id, member_id), epoch)
        return Decision(records, reply, partial(self._sessions.forget, group_id, member_id))

    # Leaving

    def _leave(self, ask: StreamsGroupHeartbeatRequest) -> Decision[HeartbeatOutcome]:
        group = self._groups.get(ask.group_id)
        if not isinstance(group, StreamsGroup):
            why = "not found" if group is None else "is not a streams group"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {ask.group_id} {why}.")
        member_id = ask.member_id
        shut_down = partial(_request_shutdown, group, member_id) if ask.shutdown_application else None
        if member_id not in group.members:
            # As in Kafka, even a member that was removed already can have the application shut down.
            refused = refused_heartbeat(ErrorCode.UNKNOWN_MEMBER_ID, not_a_member(group, member_id))
            return Decision(reply=refused, after_append=shut_down)
        response = answer(ask, member_epoch=ask.member_epoch)
        decision = self.fence(group, member_id, HeartbeatOutcome(response))
        if shut_down is not None and len(group.members) > 1:
            forget = partial(self._sessions.forget, group.group_id, member_id)
            decision = Decision(decision.records, decision.reply, in_order([forget, shut_down]))
        return decision

    # Joining and staying

    def _stay(
        self, ask: StreamsGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[HeartbeatOutcome]:
        draft = self._draft(ask, client, now_ms)
        group, member_id = draft.group, ask.member_id
        is_changed = draft.new != draft.old
        if is_changed:
            draft.records.append(member_record(group.group_id, draft.new))
        topology = self._take_topology(draft, ask)
        configured, metadata_hash = self._configure(draft, topology)
        check_owned(ask, configured)
        configs = self._assignment_configs(group.group_id)
        validated = topology.epoch if configured.is_ready else NOT_VALIDATED
        epoch = group.epoch
        if (
            is_changed
            or metadata_hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            epoch += 1
            draft.records.append(epoch_record(group.group_id, epoch, metadata_hash, validated, configs))
        target = self._renew_target(draft, epoch, configured, configs)
        self._reconcile(draft, target, ask)
        timeout_ms = self._env.streams_intervals(group.group_id).session_timeout_ms
        expect = partial(self._sessions.expect_heartbeat, group.group_id, member_id, timeout_ms)
        draft.effects.append(expect)
        if ask.shutdown_application:
            draft.effects.append(partial(_request_shutdown, group, member_id))
        reply = HeartbeatOutcome(self._reply(draft, ask, configured), configured.missing)
        return Decision(tuple(draft.records), reply, in_order(draft.effects))

    def _draft(self, ask: StreamsGroupHeartbeatRequest, client: Client, now_ms: int) -> _Draft:
        """Find the group and the member, or make them, and take over what the request says."""
        known = self._groups.get(ask.group_id)
        is_joining = ask.member_epoch == JOIN_EPOCH
        records: list[CoordinatorRecord] = []
        effects: list[Effect] = []
        if isinstance(known, StreamsGroup):
            group = known
        elif is_joining and (known is None or (isinstance(known, ClassicGroup) and known.is_empty)):
            group = StreamsGroup(ask.group_id)
            if isinstance(known, ClassicGroup):
                # An empty classic group gives way: the application has moved to the new protocol offline.
                records += known.tombstones()
                effects.append(partial(self._rebalances.retire, known, ErrorCode.REBALANCE_IN_PROGRESS))
        elif known is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {ask.group_id} not found.")
        else:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {ask.group_id} is not a streams group.")
        if is_joining:
            self._check_room(group)
            old = group.members.get(ask.member_id) or Member(ask.member_id)
        else:
            old = known_member(group, ask)
        new = updated(old, ask, client)
        return _Draft(group, known is None, old, new, now_ms, records, effects)

    def _check_room(self, group: StreamsGroup) -> None:
        most = self._env.settings.streams_group_size_max
        if len(group.members) >= most:
            message = f"The streams group has reached its maximum capacity of {most} members."
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    # The topology

    def _take_topology(self, draft: _Draft, ask: StreamsGroupHeartbeatRequest) -> Topology:
        topology = draft.group.topology
        if ask.topology is not None:
            record = record_of_request(ask.topology)
            told = topology_of_record(record)
            if topology is None:
                draft.records.append(topology_record(draft.group.group_id, record))
                return told
            if told != topology and told.epoch >= topology.epoch:
                raise Refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        if topology is None:
            # Its record is gone. A member that joins again brings it back.
            message = f"The topology of group {draft.group.group_id} is not known: join again."
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)
        if draft.new.topology_epoch < topology.epoch:
            detail = (
                f"The member's topology epoch {draft.new.topology_epoch} is behind "
                f"the group's topology epoch {topology.epoch}."
            )
            draft.tell(StatusCode.STALE_TOPOLOGY, detail)
        return topology

    def _configure(self, draft: _Draft, topology: Topology) -> tuple[ConfiguredTopology, int]:
        """Fit the topology to the topics, if they have changed. Return it, and the hash of the topics."""
        group = draft.group
        configured = None if group.topology is None else group.configured
        if configured is not None and group.topics_are_checked:
            return configured, group.metadata_hash
        metadata_hash = self._hashes.of_group(topology.required_topics)
        if configured is None or metadata_hash != group.metadata_hash:
            configured = configure(topology, self._env.topics)
        draft.effects.append(partial(_take_configured, group, configured))
        return configured, metadata_hash

    def _assignment_configs(self, group_id: str) -> dict[str, str]:
        return {STANDBY_REPLICAS: str(self._env.streams_intervals(group_id).standby_replicas)}

    # The target

    def _renew_target(
        self, draft: _Draft, epoch: int, configured: ConfiguredTopology, configs: Mapping[str, str]
    ) -> Target:
        """Compute a new target if it is time. Return what the member should have."""
        group, member_id = draft.group, draft.new.member_id
        intervals = self._env.streams_intervals(group.group_id)
        timer = _initial_delay(group.group_id)
        is_delayed = timer in self._env.timers
        if group.is_empty and intervals.initial_rebalance_delay_ms > 0 and not is_delayed:
            is_delayed = True
            draft.effects.append(partial(self._delay_first_target, group.group_id))
        if is_delayed:
            detail = "Assignment delayed due to the configured initial rebalance delay."
            draft.tell(StatusCode.ASSIGNMENT_DELAYED, detail)
            return Target(group.assignment_epoch, NO_TARGET)
        if group.assignment_epoch < epoch:
            if not is_too_soon(group, intervals.assignment_interval_ms, draft.now_ms):
                targets = compute_target(group, draft.new, configured, configs)
                draft.records += target_records(group, targets, epoch, draft.now_ms)
                return Target(epoch, targets[member_id])
            detail = "Assignment delayed due to the configured assignment interval."
            draft.tell(StatusCode.ASSIGNMENT_DELAYED, detail)
        return Target(group.assignment_epoch, group.find_target(member_id))

    def _delay_first_target(self, group_id: str) -> None:
        """Wait for more members before tasks are assigned for the first time."""
        delay_ms = self._env.streams_intervals(group_id).initial_rebalance_delay_ms
        decide = partial(self._decide_first_target, group_id)
        decide_later(self._env, _initial_delay(group_id), delay_ms, decide)

    def _decide_first_target(self, group_id: str, now_ms: int) -> Decision[None]:
        group = self._groups.get(group_id)
        if (
            not isinstance(group, StreamsGroup)
            or group.is_empty
            or group.epoch <= group.assignment_epoch
            or group.configured is None
            or is_too_soon(group, self._env.streams_intervals(group_id).assignment_interval_ms, now_ms)
        ):
            # The next heartbeat computes the target, if one is due.
            return Decision()
        targets = compute_target(group, None, group.configured, group.assignment_configs)
        return Decision(tuple(target_records(group, targets, group.epoch, now_ms)))

    def forget_group(self, group_id: str) -> None:
        """Wait no longer for members of a group that is gone."""
        self._env.timers.cancel(_initial_delay(group_id))

    # The member's own step

    def _reconcile(self, draft: _Draft, target: Target, ask: StreamsGroupHeartbeatRequest) -> None:
        """Bring the member one step closer to its target."""
        group, member = draft.group, draft.new
        if member.assignment.is_reconciled_to(target.epoch):
            return
        process = member.process_id

        def is_free_as_active(subtopology: str, partition: int) -> bool:
            return not (
                group.is_active(subtopology, partition) or group.is_copied_on(process, subtopology, partition)
            )

        def is_free_as_copy(subtopology: str, partition: int) -> bool:
            return not (
                group.is_active_on(process, subtopology, partition)
                or group.is_copied_on(process, subtopology, partition)
            )

        goal = Goal(target.epoch, target.tasks, is_free_as_active, is_free_as_copy)
        assignment = reconcile(member.assignment, goal, owned(ask))
        if assignment == member.assignment:
            return
        draft.new = member = member.with_assignment(assignment)
        draft.records.append(current_record(group.group_id, member))
        sessions, group_id = self._sessions, group.group_id
        if assignment.state is MemberState.UNREVOKED_TASKS:
            draft.effects.append(partial(sessions.expect_revocation, group_id, member))
        else:
            draft.effects.append(partial(sessions.stop_expecting_revocation, group_id, member.member_id))

    # The answer

    def _reply(
        self, draft: _Draft, ask: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology
    ) -> StreamsGroupHeartbeatResponse:
        """Tell the member its epoch, its tasks if they have changed, and what the group waits for."""
        group, member = draft.group, draft.new
        held = member.assignment.held
        tells_tasks = ask.member_epoch == JOIN_EPOCH or held != draft.old.assignment.held
        endpoint_epoch = group.endpoint_epoch
        if tells_tasks and member.user_endpoint is not None:
            endpoint_epoch += 1
            draft.effects.append(partial(_take_endpoint_epoch, group, endpoint_epoch))
        by_endpoint = None
        if endpoint_epoch != ask.endpoint_information_epoch:
            others = [other for one, other in group.members.items() if one != member.member_id]
            by_endpoint = partitions_by_endpoint(
                [*others, member], configured.subtopologies, self._env.topics
            )
        if configured.problem is not None:
            draft.tell(*configured.problem)
        shutdown = group.shutdown_requested_by or (member.member_id if ask.shutdown_application else None)
        if shutdown is not None:
            detail = (
                f"Streams group member {shutdown} encountered a fatal error and "
                "requested a shutdown for the entire application."
            )
            draft.tell(StatusCode.SHUTDOWN_APPLICATION, detail)
        return answer(
            ask,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._env.streams_intervals(group.group_id).heartbeat_interval_ms,
            status=tuple(draft.statuses),
            active_tasks=task_ids(held.active) if tells_tasks else None,
            standby_tasks=task_ids(held.standby) if tells_tasks else None,
            warmup_tasks=task_ids(held.warmup) if tells_tasks else None,
            endpoint_information_epoch=0 if draft.is_new_id else endpoint_epoch,
            partitions_by_user_endpoint=by_endpoint,
        )


def _initial_delay(group_id: str) -> tuple[str, str]:
    return ("first streams target", group_id)


# What is in memory only


def _take_configured(group: StreamsGroup, configured: ConfiguredTopology) -> None:
    group.configured = configured
    group.topics_are_checked = True


def _take_endpoint_epoch(group: StreamsGroup, epoch: int) -> None:
    group.endpoint_epoch = epoch


def _request_shutdown(group: StreamsGroup, member_id: str) -> None:
    if group.shutdown_requested_by is None:
        group.shutdown_requested_by = member_id

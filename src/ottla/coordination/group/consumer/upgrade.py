"""A classic group becomes a consumer group: a member of the new protocol joins it (KIP-848).

An empty classic group just gives way. One with members is converted if they are consumers: each keeps what
its leader assigned to it, and goes on to use the classic protocol, which the consumer group serves too.
"""

from typing import NamedTuple

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.group import Member as ClassicMember
from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.consumer.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    with_ids,
)
from ottla.coordination.group.consumer.group import NO_PARTITIONS, ConsumerGroup
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.consumer.reconciliation import Assignment
from ottla.coordination.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Effect
from ottla.wire.coordinator_records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes


class Upgrade(NamedTuple):
    """The group to go on with, the records that bring it about, and what is to be done after."""

    group: ConsumerGroup
    records: list[CoordinatorRecord]
    effects: list[Effect]


class Upgrades:
    """The upgrading of classic groups of a shard."""

    def __init__(
        self, env: Environment, hashes: MetadataHashes, sessions: Sessions, rebalances: Rebalances
    ) -> None:
        self._env = env
        self._hashes = hashes
        self._sessions = sessions
        self._rebalances = rebalances

    def group_to_join(self, group_id: str, group: Group | None) -> Upgrade:
        """Return the consumer group that a member of the new protocol joins. Raises `Refused`."""
        if isinstance(group, ConsumerGroup):
            return Upgrade(group, [], [])
        if group is None:
            return Upgrade(ConsumerGroup(group_id), [], [])
        if not isinstance(group, ClassicGroup):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if group.is_empty:
            return Upgrade(ConsumerGroup(group_id), group.tombstones(), [lambda: self._retire(group)])
        self._check(group)
        return self._convert(group)

    def _check(self, group: ClassicGroup) -> None:
        if not self._env.settings.may_upgrade:
            raise _cannot(group, "online upgrade is disabled")
        if group.protocol_type != PROTOCOL_TYPE:
            raise _cannot(group, "its members are not consumers")
        if len(group.members) > self._env.settings.consumer_group_size_max:
            raise _cannot(group, "it has more members than a consumer group may have")

    def _convert(self, group: ClassicGroup) -> Upgrade:
        try:
            successor = self._successor(group)
        except MalformedBytes as error:
            raise _cannot(group, "the metadata of its members is malformed") from error
        members = list(successor.members.values())
        group_id, epoch = group.group_id, successor.epoch
        records = [
            *group.tombstones(),
            *(member_record(group_id, member) for member in members),
            epoch_record(group_id, epoch, successor.metadata_hash),
            *(target_record(group_id, one.member_id, successor.targets[one.member_id]) for one in members),
            target_epoch_record(group_id, epoch, 0),
            *(current_record(group_id, member) for member in members),
        ]

        def watch_members() -> None:
            # Those who wait join again, and find the consumer group.
            self._retire(group)
            for member in members:
                assert member.classic is not None, "it was converted"
                self._sessions.expect_heartbeat(group_id, member.member_id, member.classic.session_timeout_ms)

        return Upgrade(successor, records, [watch_members])

    def _successor(self, group: ClassicGroup) -> ConsumerGroup:
        successor = ConsumerGroup(group.group_id)
        successor.epoch = successor.assignment_epoch = group.generation
        for classic in group.members.values():
            assigned = NO_PARTITIONS
            if classic.assignment:
                assignment = decode_assignment(classic.assignment)
                if assignment.user_data:
                    # The data that it hands to its members would be lost.
                    raise _cannot(group, _CUSTOM_ASSIGNOR)
                named = {item.topic: frozenset(item.partitions) for item in assignment.assigned_partitions}
                assigned = with_ids(named, self._env.topics)
            held = {topic: dict.fromkeys(sorted(have), group.generation) for topic, have in assigned.items()}
            has = Assignment(group.generation, group.generation, assigned=held)
            successor.targets[classic.member_id] = assigned
            successor.put(_member(group, classic).with_assignment(has))
        successor.metadata_hash = self._hashes.of_group(successor.name_counts)
        return successor

    def _retire(self, group: ClassicGroup) -> None:
        self._rebalances.retire(group, ErrorCode.REBALANCE_IN_PROGRESS)


# In Kafka's words, because programs look for them.
_CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
    "assignor before re-attempting the upgrade"
)


def _member(group: ClassicGroup, classic: ClassicMember) -> Member:
    protocols = classic.protocols
    # Before the first generation no protocol is chosen. What a consumer subscribes to is the same in all.
    blob = protocols.get(group.protocol_name or "") or next(iter(protocols.values()))
    subscription = decode_subscription(blob)
    return Member(
        classic.member_id,
        classic.instance_id,
        subscription.rack_id or None,
        classic.client_id,
        classic.client_host,
        frozenset(subscription.topics),
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()
            ),
        ),
    )


def _cannot(group: ClassicGroup, reason: str) -> Refused:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)

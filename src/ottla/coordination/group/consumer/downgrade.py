"""A consumer group becomes a classic one: its last member of the new protocol has gone, or was replaced.

The members that stay keep what the target gives them, as the blobs they know. The group goes on as a classic
group of the same generation as its epoch, and is asked to rebalance.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.group.classic import group as classic
from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.consumer.embedded_protocol import PROTOCOL_TYPE, encode_assignment, version_of
from ottla.coordination.group.consumer.group import NO_PARTITIONS, ConsumerGroup
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.runtime.decision import Effect
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.errors import MalformedBytes


class Downgrade(NamedTuple):
    """The records of a group's change, and what is to be done once they are appended and replayed."""

    records: tuple[CoordinatorRecord, ...]
    after_append: Effect


class Downgrades:
    """The downgrading of consumer groups of a shard."""

    def __init__(
        self, env: Environment, groups: dict[str, Group], sessions: Sessions, rebalances: Rebalances
    ) -> None:
        self._env = env
        self._groups = groups
        self._sessions = sessions
        self._rebalances = rebalances

    def after_departure(
        self, group: ConsumerGroup, leaving: Sequence[Member], now_ms: int
    ) -> Downgrade | None:
        """Return the downgrade that the departure of members brings, if it does."""
        staying_count = len(group.members) - len(leaving)
        staying_classic = group.classic_member_count - sum(one.classic is not None for one in leaving)
        if staying_count == 0 or staying_classic < staying_count or not self._may_be_classic(staying_count):
            return None
        gone = {member.member_id for member in leaving}
        staying = [member for member_id, member in group.members.items() if member_id not in gone]
        successor = self._successor(group, staying, {}, now_ms)
        if successor is None:
            return None
        records = (*group.tombstones(), successor.record())
        return Downgrade(records, self._installer(group, successor, True, now_ms))

    def is_due_after_replacement(self, group: ConsumerGroup, replaced: Member) -> bool:
        """Say whether a classic member that takes the place of a static one makes the group classic."""
        count = len(group.members)
        is_the_last = replaced.classic is None and group.classic_member_count == count - 1
        return is_the_last and self._may_be_classic(count)

    def after_replacement(
        self, group: ConsumerGroup, replaced: Member, joining: Member, rebalance: bool, now_ms: int
    ) -> Downgrade | None:
        """Return the downgrade by a classic member that takes a static one's place.

        Its records come after those that replaced the member, so they delete the new one.
        """
        ids = {member_id: member_id for member_id in group.members} | {replaced.member_id: joining.member_id}
        staying = [member for member_id, member in group.members.items() if member_id != replaced.member_id]
        targets_from = {joining.member_id: replaced.member_id}
        successor = self._successor(group, [*staying, joining], targets_from, now_ms)
        if successor is None:
            return None
        records = (*group.tombstones_of(ids.values()), successor.record())
        return Downgrade(records, self._installer(group, successor, rebalance, now_ms))

    def _may_be_classic(self, member_count: int) -> bool:
        settings = self._env.settings
        return settings.may_downgrade and member_count <= settings.classic_group_size_max

    def _successor(
        self, group: ConsumerGroup, members: Sequence[Member], targets_from: dict[str, str], now_ms: int
    ) -> classic.ClassicGroup | None:
        """Return the classic group, or None if what the members once said of themselves cannot be read."""
        successor = classic.ClassicGroup(
            group.group_id, state=GroupState.STABLE, state_since_ms=now_ms, generation=group.epoch
        )
        for member in members:
            successor.add(_classic_member(member))
        successor.protocol_name = successor.select_protocol()
        successor.subscribed_topics = successor.find_subscribed_topics()
        for member_id, moved in successor.members.items():
            target = group.targets.get(targets_from.get(member_id, member_id), NO_PARTITIONS)
            try:
                version = version_of(moved.protocols[successor.protocol_name])
            except MalformedBytes:
                return None
            moved.assignment = encode_assignment(target, self._env.topics, version)
        return successor

    def _installer(
        self, group: ConsumerGroup, successor: classic.ClassicGroup, rebalance: bool, now_ms: int
    ) -> Effect:
        members = list(group.members)

        def install() -> None:
            # The record has one protocol for each member, the members know more.
            self._groups[group.group_id] = successor
            for member_id in members:
                self._sessions.forget(group.group_id, member_id)
            self._rebalances.resume(successor, now_ms)
            if rebalance:
                self._rebalances.write(self._rebalances.start(successor, now_ms))

        return install


def _classic_member(member: Member) -> classic.Member:
    assert member.classic is not None, "only members of the classic protocol stay"
    return classic.Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        PROTOCOL_TYPE,
        {protocol.name: protocol.metadata for protocol in member.classic.supported_protocols},
    )

"""The consumer groups of a shard: requests to them, and changes that they learn of."""

from collections.abc import Iterable
from typing import Any

from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.consumer.classic_members import ClassicMembers
from ottla.coordination.group.consumer.departures import Departures
from ottla.coordination.group.consumer.downgrade import Downgrades
from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.heartbeat import Heartbeats
from ottla.coordination.group.consumer.reconciliation import MemberState
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.consumer.steps import Steps
from ottla.coordination.group.consumer.upgrade import Upgrades
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.runtime.decision import Decision


class ConsumerGroups:
    """The parts, put together. `groups` are those of the shard, of all kinds."""

    def __init__(self, env: Environment, groups: dict[str, Group], rebalances: Rebalances) -> None:
        self._env = env
        self._groups = groups
        self._sessions = Sessions(env, self._fence)
        self._steps = Steps(env, self.find, self._sessions)
        hashes = self._steps.hashes
        downgrades = Downgrades(env, groups, self._sessions, rebalances)
        upgrades = Upgrades(env, hashes, self._sessions, rebalances)
        self._departures = Departures(hashes, self._sessions, downgrades)
        self.heartbeats = Heartbeats(env, groups, self._steps, self._sessions, upgrades, self._departures)
        self.classic_members = ClassicMembers(env, self._steps, self._sessions, self._departures, downgrades)

    def find(self, group_id: str) -> ConsumerGroup | None:
        """Return a group of the consumer kind."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def activate(self) -> None:
        """Give every member that was loaded a new session."""
        # Topics may have been created while no coordinator was here to notice.
        self._steps.newest_topic_version = self._env.topics.version()
        for group_id, group in self._groups.items():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._sessions.expect_heartbeat(group_id, member.member_id)
                    if member.assignment.state is MemberState.UNREVOKED_PARTITIONS:
                        self._sessions.expect_revocation(group_id, member)

    def topics_changed(self, names: Iterable[str], has_new: bool) -> None:
        """Have groups look at topics that were created, changed or deleted."""
        names = list(names)
        if has_new:
            self._steps.newest_topic_version = self._env.topics.version()
        self._steps.hashes.forget(names)
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and any(map(group.is_subscribed_to, names)):
                group.topics_have_changed()

    def _fence(self, group_id: str, member_id: str, epoch: int | None, now_ms: int) -> Decision[Any]:
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.epoch):
            return Decision()
        return self._departures.fence(group, [member], now_ms)

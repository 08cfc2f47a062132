"""The streams groups of a shard: requests to them, and changes that they learn of."""

from collections.abc import Iterable
from typing import Any

from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.group.streams.heartbeat import Heartbeats
from ottla.coordination.group.streams.member import MemberState
from ottla.coordination.runtime.decision import Decision


class StreamsGroups:
    """The parts, put together. `groups` are those of the shard, of all kinds."""

    def __init__(self, env: Environment, groups: dict[str, Group], rebalances: Rebalances) -> None:
        self._env = env
        self._groups = groups
        self._sessions = Sessions(env, self._fence)
        self._hashes = MetadataHashes(env.topics)
        self.heartbeats = Heartbeats(env, groups, self._hashes, self._sessions, rebalances)

    def activate(self) -> None:
        """Give every member that was loaded a new session."""
        for group_id, group in self._groups.items():
            if isinstance(group, StreamsGroup):
                timeout_ms = self._env.streams_intervals(group_id).session_timeout_ms
                for member in group.members.values():
                    self._sessions.expect_heartbeat(group_id, member.member_id, timeout_ms)
                    if member.assignment.state is MemberState.UNREVOKED_TASKS:
                        self._sessions.expect_revocation(group_id, member)

    def topics_changed(self, names: Iterable[str]) -> None:
        """Have groups look at topics that were created, changed or deleted."""
        names = list(names)
        self._hashes.forget(names)
        for group in self._groups.values():
            if (
                isinstance(group, StreamsGroup)
                and group.topology is not None
                and not group.topology.required_topics.isdisjoint(names)
            ):
                group.topics_are_checked = False

    def _fence(self, group_id: str, member_id: str, epoch: int | None, _now_ms: int) -> Decision[Any]:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if not isinstance(group, StreamsGroup) or member is None or epoch not in (None, member.epoch):
            return Decision()
        return self.heartbeats.fence(group, member_id)

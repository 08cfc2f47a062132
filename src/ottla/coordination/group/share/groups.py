"""The share groups of a shard: heartbeats, sessions, and the state of their partitions."""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.share.group import ShareGroup
from ottla.coordination.group.share.heartbeat import Heartbeat, Heartbeats
from ottla.coordination.group.share.persister import NO_START, Errors
from ottla.coordination.group.share.records import state_topics_record
from ottla.coordination.group.share.sessions import Sessions
from ottla.coordination.runtime.decision import Decision
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode


class ShareGroups:
    """The parts, put together. `groups` are those of the shard, of all kinds."""

    def __init__(self, env: Environment, groups: dict[str, Group]) -> None:
        self._env = env
        self._groups = groups
        self._sessions = Sessions(env, lambda group_id, member_id: self.heartbeats.fence(group_id, member_id))
        self.heartbeats = Heartbeats(env, groups, self._sessions)

    def find(self, group_id: str) -> ShareGroup | None:
        """Return a group of the share kind."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def activate(self) -> None:
        """Give every member that was loaded a new session, and forget topics that have gone meanwhile."""
        gone: set[Uuid] = set()
        for group_id, group in self._groups.items():
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    self._sessions.expect_heartbeat(group_id, member_id)
                known = group.state_topics.topic_ids()
                gone.update(topic for topic in known if self._env.topics.find_by_id(topic) is None)
        if gone:
            self._env.submit(lambda: self.decide_topics_deleted(frozenset(gone)))

    def topics_changed(self, names: Iterable[str]) -> None:
        """Have groups look at topics that were created, changed or deleted."""
        names = list(names)
        self.heartbeats.hashes.forget(names)
        for group in self._groups.values():
            if isinstance(group, ShareGroup) and any(map(group.is_subscribed_to, names)):
                group.are_topics_checked = False

    # The state of partitions

    def initialize(self, group_id: str, heartbeat: Heartbeat) -> None:
        """Have the share coordinators make the state that the partitions of a heartbeat need."""
        partitions = heartbeat.uninitialized

        def done(errors: Errors) -> None:
            has_failed = any(code is not ErrorCode.NONE for code in errors.values())
            self._env.submit(lambda: self._decide_initialized(group_id, partitions, has_failed))

        starts = {topic: dict.fromkeys(numbers, NO_START) for topic, numbers in partitions.items()}
        self._env.share_state.initialize(group_id, heartbeat.group_epoch, starts, done)

    def initialized(self, group_id: str, partitions: Partitions, done: Callable[[], None]) -> None:
        """Take note of states that administrators have begun again."""
        self._env.submit(
            lambda: self._decide_initialized(group_id, partitions, has_failed=False),
            lambda _: done(),
            lambda _: done(),
        )

    def decide_deletion(self, group: ShareGroup) -> Decision[Partitions]:
        """Begin to delete an empty group. The reply is what has states, which are deleted first."""
        state = group.state_topics
        partitions = state.find_deletable(self._env.topics)
        if not partitions:
            return Decision(reply=partitions)
        return Decision(
            (state_topics_record(group.group_id, state.with_deleting(partitions), self._env.topics),),
            partitions,
        )

    def decide_topics_deleted(self, topic_ids: frozenset[Uuid]) -> Decision[Any]:
        """Forget the states of topics that are gone. The share coordinators delete them by themselves."""
        records = []
        for group_id, group in self._groups.items():
            if isinstance(group, ShareGroup):
                state = group.state_topics.without(topic_ids)
                if state != group.state_topics:
                    records.append(state_topics_record(group_id, state, self._env.topics))
        return Decision(tuple(records), is_atomic=False)

    def _decide_initialized(self, group_id: str, partitions: Partitions, has_failed: bool) -> Decision[bool]:
        group = self.find(group_id)
        if group is None:
            return Decision(reply=False)
        if has_failed:
            state = group.state_topics.without_initializing(partitions)
        else:
            state = group.state_topics.with_initialized(partitions, self._env.topics)
        if state == group.state_topics:
            return Decision(reply=False)
        return Decision((state_topics_record(group_id, state, self._env.topics),), True)

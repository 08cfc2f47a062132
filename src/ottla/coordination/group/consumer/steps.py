"""The steps that every request of a member goes through, whichever protocol it uses.

1. What the member says of itself is written down if it has changed.
2. If subscriptions or the subscribed topics have changed, the group's epoch increases.
3. If the target is older than that, a new one is computed, but not too often.
4. The member makes its next step towards its target.

Each step adds its records to a draft, and its effects: timers, and what is only known in memory. Nothing
changes before the records are appended and replayed; then the effects follow.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.metadata_hash import MetadataHashes
from ottla.coordination.group.consumer.reconciliation import Goal, MemberState, reconcile
from ottla.coordination.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
    regex_record,
    regex_tombstone,
)
from ottla.coordination.group.consumer.regexes import Resolution, compile_regex, is_refresh_due, timer_name
from ottla.coordination.group.consumer.sessions import Sessions
from ottla.coordination.group.consumer.target import Target, compute_target, is_due, target_records
from ottla.coordination.group.environment import Environment, sees_everything
from ottla.coordination.runtime.decision import Decision, Effect
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord

FindGroup = Callable[[str], ConsumerGroup | None]


class RegexChange(Enum):
    """What became of a member's regular expression."""

    NONE = auto()
    UPDATED = auto()
    """It is a new one, and its topics are not known yet: the target has to wait for them."""
    UPDATED_AND_RESOLVED = auto()


@dataclass(slots=True)
class Draft:
    """What a request of one member is about to change."""

    group: ConsumerGroup
    old: Member | None
    """The member of the group whose place `new` takes: itself, or the static member that it replaces."""
    base: Member
    """The member as it was; a new one as if it had said nothing yet."""
    new: Member
    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    """What follows when the records are appended, in this order."""
    sees: Callable[[str], bool] = sees_everything
    """Which topics the member may describe."""


class Steps:
    """The steps, for all consumer groups of a shard."""

    def __init__(self, env: Environment, find_group: FindGroup, sessions: Sessions) -> None:
        self._env = env
        self._find_group = find_group
        self._sessions = sessions
        self.hashes = MetadataHashes(env.topics)
        self.newest_topic_version = -1
        """The version of the metadata that had a new topic last."""

    # 1. What the member says of itself

    def describe(self, draft: Draft) -> bool:
        """Write down who the member is. True when it subscribes to other names than before."""
        if draft.new is draft.base or draft.new == draft.base:
            return False
        draft.records.append(member_record(draft.group.group_id, draft.new))
        return draft.new.topic_names != draft.base.topic_names

    def take_regex(self, draft: Draft) -> RegexChange:
        """Take note of another regular expression, and have those of the group resolved if it is time."""
        group, before, after = draft.group, draft.base.topic_regex, draft.new.topic_regex
        change = RegexChange.NONE
        if before != after:
            change = RegexChange.UPDATED
            if before and group.regex_counts[before] == 1:
                draft.records.append(regex_tombstone(group.group_id, before))
            if after and group.regex_counts[after] == 0:
                compile_regex(after)
            elif not after or after in group.resolved_regexes:
                change = RegexChange.UPDATED_AND_RESOLVED
        subscribed = set(group.regex_counts)
        if before and group.regex_counts[before] == 1:
            subscribed.discard(before)
        if after:
            subscribed.add(after)
        if subscribed and timer_name(group.group_id) not in self._env.timers:
            interval_ms = self._env.settings.regex_refresh_interval_ms
            if is_refresh_due(group, subscribed, interval_ms, self.newest_topic_version, draft.now_ms):
                draft.effects.append(partial(self._resolve, group.group_id, subscribed, draft.sees))
        return change

    def _resolve(self, group_id: str, regexes: set[str], sees: Callable[[str], bool]) -> None:
        def done(resolved: dict[str, ResolvedRegex], done_ms: int) -> None:
            self._env.submit(lambda: self._decide_resolved(group_id, resolved, done_ms))

        Resolution(regexes, self._env, done, sees).begin_soon(group_id)

    def _decide_resolved(
        self, group_id: str, resolved: dict[str, ResolvedRegex], now_ms: int
    ) -> Decision[Any]:
        group = self._find_group(group_id)
        if group is None:
            return Decision()
        # Meanwhile the last member that subscribed to one of them may have gone.
        resolved = {regex: found for regex, found in resolved.items() if group.regex_counts[regex]}
        topics, has_changed, records = set(group.name_counts), False, []
        for regex, found in resolved.items():
            known = group.resolved_regexes.get(regex)
            has_changed |= found.topics != (frozenset() if known is None else known.topics)
            records.append(regex_record(group_id, regex, *found))
        for regex, found in {**group.resolved_regexes, **resolved}.items():
            if group.regex_counts[regex]:
                topics |= found.topics
        metadata_hash = self.hashes.of_group(topics)
        if has_changed or metadata_hash != group.metadata_hash:
            records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))
        return Decision(tuple(records), after_append=partial(self._topics_are_checked, group_id, now_ms))

    # 2. The epoch of the group

    def renew_epoch(self, draft: Draft, is_changed: bool) -> int:
        """Count the epoch up if subscriptions have changed, or the topics have. Return what it will be."""
        group = draft.group
        if not is_changed and group.topics_are_checked(draft.now_ms):
            return group.epoch
        metadata_hash = self.hashes.of_group(group.topics_with(draft.old, draft.new))
        epoch = group.epoch
        if is_changed or metadata_hash != group.metadata_hash:
            epoch += 1
            draft.records.append(epoch_record(group.group_id, epoch, metadata_hash))
        draft.effects.append(partial(self._topics_are_checked, group.group_id, draft.now_ms))
        if group.has_partition_metadata:
            draft.records.append(partition_metadata_tombstone(group.group_id))
        return epoch

    def _topics_are_checked(self, group_id: str, now_ms: int) -> None:
        # The group of the draft may have been a new one. What counts is the group that the records made.
        group = self._find_group(group_id)
        if group is not None:
            group.expect_topics_unchanged(now_ms)

    # 3. The target

    def renew_target(self, draft: Draft, epoch: int) -> Target:
        """Compute a new target if it is time. Return what the member should have."""
        group, new, now_ms = draft.group, draft.new, draft.now_ms
        interval_ms = self._env.consumer_intervals(group.group_id).assignment_interval_ms
        if not is_due(group, epoch, interval_ms, now_ms):
            return Target(group.assignment_epoch, group.find_target(new))
        targets = compute_target(group, draft.old, new, self._assignor(draft), self._env)
        draft.records += target_records(group, targets, epoch, now_ms)
        return Target(epoch, targets[new.member_id])

    def _assignor(self, draft: Draft) -> str:
        supported = self._env.settings.consumer_assignors
        preferred = draft.group.preferred_assignor(draft.old, draft.new)
        # A group that another cluster began may ask for one that this node does not have.
        return preferred if preferred in supported else supported[0]

    # 4. The member's own step

    def reconcile(
        self, draft: Draft, target: Target, owned: Partitions | None, subscription_changed: bool
    ) -> None:
        """Bring the member one step closer to its target."""
        group, member = draft.group, draft.new
        if not subscription_changed and member.assignment.is_reconciled_to(target.epoch):
            return
        topics, names = self._env.topics, group.topics_of(member)

        def is_subscribed(topic_id: Uuid) -> bool:
            facts = topics.find_by_id(topic_id)
            return facts is not None and facts.name in names

        goal = Goal(target.epoch, target.partitions, is_subscribed, group.is_held, wants_nothing=not names)
        assignment = reconcile(member.assignment, goal, owned, subscription_changed)
        if assignment == member.assignment:
            return
        draft.new = member = member.with_assignment(assignment)
        draft.records.append(current_record(group.group_id, member))
        # A member of the classic protocol is watched when it joins and syncs.
        if member.classic is None:
            sessions, group_id = self._sessions, group.group_id
            if assignment.state is MemberState.UNREVOKED_PARTITIONS:
                draft.effects.append(partial(sessions.expect_revocation, group_id, member))
            else:
                draft.effects.append(partial(sessions.stop_expecting_revocation, group_id, member.member_id))

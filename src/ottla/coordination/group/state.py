"""The state of one shard: its groups of all kinds and their offsets, folded from its records.

Each kind of group brings a table that says how its records are applied, by the type of their keys.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from ottla.coordination.group.classic.group import ClassicGroup, group_of_record
from ottla.coordination.group.classic.join import Joins
from ottla.coordination.group.classic.membership import Memberships
from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.consumer.groups import ConsumerGroups
from ottla.coordination.group.consumer.replay import consumer_replays
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group, Replay
from ottla.coordination.group.offsets.committed_offsets import CommittedOffsets
from ottla.coordination.group.offsets.expiry import decide_expiry
from ottla.coordination.group.offsets.repeated import RepeatedOffsets
from ottla.coordination.group.share.groups import ShareGroups
from ottla.coordination.group.share.replay import share_replays
from ottla.coordination.group.streams.groups import StreamsGroups
from ottla.coordination.group.streams.replay import streams_replays
from ottla.coordination.runtime.decision import Decision, ProducerIdentity
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from ottla.wire.error_code import ErrorCode

GROUPS_EXPIRED_AT_ONCE: Final = 200
"""A shard with many groups goes through them in pieces, so that requests are served in between."""


_STATES_WITH_SESSIONS: Final = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)


class GroupShard:
    """Groups and offsets. Implements the runtime's `State`."""

    def __init__(self, environment: Environment) -> None:
        self.env = environment
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self.rebalances = Rebalances(environment, self.find_classic)
        self.joins = Joins(environment, self.rebalances)
        self.memberships = Memberships(environment, self.rebalances)
        self.consumers = ConsumerGroups(environment, self.groups, self.rebalances)
        self.streams = StreamsGroups(environment, self.groups, self.rebalances)
        self.shares = ShareGroups(environment, self.groups)
        self._serves = False
        self._replays: dict[type[Any], Replay] = {
            OffsetCommitKey: self._replay_offset,
            LegacyOffsetCommitKey: self._replay_legacy_offset,
            GroupMetadataKey: self._replay_classic_group,
            **consumer_replays(self.groups),
            **streams_replays(self.groups, self.streams.heartbeats.forget_group),
            **share_replays(self.groups),
        }

    def find_classic(self, group_id: str) -> ClassicGroup | None:
        """Return a group of the classic kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def keep_alive(self, group: Group, member_id: str) -> None:
        """Take a commit as a sign of life of its member."""
        if type(group) is ClassicGroup:
            member = group.members.get(member_id)
            if member is not None and group.state in _STATES_WITH_SESSIONS:
                self.rebalances.expect_heartbeat(group, member)

    # Replaying

    def replay(self, records: Iterable[CoordinatorRecord], producer: ProducerIdentity | None) -> None:
        """Apply records. Those of a type that is not known here are skipped."""
        if type(records) is RepeatedOffsets:
            records.replay(self.offsets)
            return
        find = self._replays.get
        for key, value, _ in records:
            replay = find(type(key))
            if replay is not None:
                replay(key, value, producer)

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        """End a transaction that committed offsets here."""
        self.offsets.replay_marker(producer, committed)

    def _replay_offset(self, key: OffsetCommitKey, value: Any, producer: ProducerIdentity | None) -> None:
        group_id = key.group
        # Offsets without a group are a simple consumer's: the group exists by having them.
        if group_id not in self.groups and value is not None:
            self.groups[group_id] = ClassicGroup(group_id)
        self.offsets.replay(key, value, producer)

    def _replay_classic_group(
        self, key: GroupMetadataKey, value: Any, _producer: ProducerIdentity | None
    ) -> None:
        if value is None:
            self.groups.pop(key.group, None)
        elif not self._serves or self.find_classic(key.group) is None:
            self.groups[key.group] = group_of_record(key.group, value)
        # Otherwise the record was made from the group in memory, which may be ahead of it already: no record
        # has a rebalance that is under way.

    def _replay_legacy_offset(
        self, key: LegacyOffsetCommitKey, value: Any, producer: ProducerIdentity | None
    ) -> None:
        newer = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        if value is not None:
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        self._replay_offset(newer, value, producer)

    # The life of the shard

    def activate(self, now_ms: int) -> None:
        """Give every member that was loaded a new session, and start looking for what expires."""
        self._serves = True
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                self.rebalances.resume(group, now_ms)
        self.consumers.activate()
        self.streams.activate()
        self.shares.activate()
        self._schedule_expiry()

    def deactivate(self) -> None:
        """Tell those who wait that this node is not their coordinator any more."""
        self.env.timers.clear()
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                self.rebalances.give_up_all(group, ErrorCode.NOT_COORDINATOR)

    # Expiration

    def _schedule_expiry(self) -> None:
        self.env.timers.schedule(
            ("expiry",),
            self.env.settings.offsets_retention_check_interval_ms,
            lambda now_ms: self._expire_some(iter(list(self.groups)), now_ms),
        )

    def _expire_some(self, group_ids: Iterator[str], now_ms: int) -> None:
        some = list(islice(group_ids, GROUPS_EXPIRED_AT_ONCE))
        if not some:
            self._schedule_expiry()
            return
        self.env.submit(lambda: self._decide_expiry(some, now_ms))
        self.env.timers.schedule(("expiry",), 0, lambda then_ms: self._expire_some(group_ids, then_ms))

    def _decide_expiry(self, group_ids: list[str], now_ms: int) -> Decision[None]:
        groups = (self.groups[group_id] for group_id in group_ids if group_id in self.groups)
        return decide_expiry(groups, self.offsets, self.env, now_ms)

"""The state of one shard: its groups of all kinds and their offsets, folded from its records."""

from typing import Any

from ottla.coordination.group.classic.group import ClassicGroup, group_of_record
from ottla.coordination.group.classic.join import Joins
from ottla.coordination.group.classic.membership import Memberships
from ottla.coordination.group.classic.rebalance import Rebalances
from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.offsets.ledger import OffsetLedger
from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue


class GroupShard:
    """Groups and offsets. Implements the runtime's `State`."""

    def __init__(self, environment: Environment) -> None:
        self.env = environment
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetLedger()
        self.rebalances = Rebalances(environment, self.find_classic)
        self.joins = Joins(environment, self.rebalances)
        self.memberships = Memberships(self.rebalances)

    def find_classic(self, group_id: str) -> ClassicGroup | None:
        """Return a group of the classic kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def classic_or_new(self, group_id: str) -> ClassicGroup:
        """Return a classic group, making it if there is none of any kind."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        assert isinstance(group, ClassicGroup), "the caller has looked at the kind"
        return group

    def replay(self, record: CoordinatorRecord, producer: ProducerIdentity | None) -> None:
        """Apply a record."""
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(key, value, producer)
        elif isinstance(key, LegacyOffsetCommitKey):
            self._replay_legacy_offset(key, value, producer)
        elif isinstance(key, GroupMetadataKey):
            if value is None:
                self.groups.pop(key.group, None)
            else:
                self.groups[key.group] = group_of_record(key.group, value)

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        """End a transaction that committed offsets here."""
        self.offsets.replay_marker(producer, committed)

    def activate(self, now_ms: int) -> None:
        """Give every member that was loaded its session anew."""
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    self.rebalances.expect_heartbeat(group, member, now_ms)

    def deactivate(self) -> None:
        """Tell whoever waits that this node is not their coordinator any more."""

    def _replay_offset(self, key: OffsetCommitKey, value: Any, producer: ProducerIdentity | None) -> None:
        # Offsets without a group are a simple consumer's: the group exists by having them.
        if value is not None and key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group)
        self.offsets.replay(key, value, producer)

    def _replay_legacy_offset(
        self, key: LegacyOffsetCommitKey, value: Any, producer: ProducerIdentity | None
    ) -> None:
        newer = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        if value is not None:
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        self._replay_offset(newer, value, producer)

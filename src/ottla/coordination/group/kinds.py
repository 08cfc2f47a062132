"""What all kinds of groups have in common, so that offsets and administration need not know the kind."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord

Replay = Callable[[Any, Any, ProducerIdentity | None], None]
"""Applies a record of one type: key, value (None for a tombstone), and whose transaction it is part of."""


class GroupKind(Enum):
    """The kinds of groups, by the names that clients see."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Commit:
    """Who commits offsets, and as what."""

    __slots__ = ("generation", "instance_id", "is_transactional", "member_id", "version")

    def __init__(
        self, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, version: int
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.generation = generation
        self.is_transactional = is_transactional
        self.version = version


class Group(Protocol):
    """A group of any kind. The checks raise `Refused`."""

    group_id: str

    @property
    def kind(self) -> GroupKind:
        """The kind of group."""

    @property
    def state_name(self) -> str:
        """The state, by the name that clients see."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def expires(self) -> bool:
        """Whether the group goes by itself once it has neither members nor committed offsets."""

    @property
    def protocol_type_name(self) -> str:
        """The protocol type, by the name that ListGroups shows."""

    def check_commit(self, commit: Commit) -> None:
        """Refuse a commit of somebody who may not."""

    def check_commit_to(self, commit: Commit, topic: str, topic_id: Uuid, partition: int) -> None:
        """Refuse a commit for a partition that its committer may not commit for any more."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse to show offsets to somebody who is not a member as it says."""

    def check_offset_delete(self) -> None:
        """Refuse to delete offsets of a group that is busy."""

    def check_delete(self) -> None:
        """Refuse to delete a group that is not empty."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether a member reads the topic."""

    def expiry_base_ms(self, committed: CommittedOffset) -> int | None:
        """Return from when on an offset ages, or None while it does not."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, without its offsets."""

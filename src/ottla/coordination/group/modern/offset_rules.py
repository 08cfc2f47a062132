"""What consumer and streams groups allow to be done with their offsets, and when offsets age."""

from abc import abstractmethod
from typing import TypeVar

from ottla.coordination.group.kinds import Commit
from ottla.coordination.group.modern.group import ModernGroup
from ottla.coordination.group.modern.member import ModernMember
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")

_FIRST_COMMIT_VERSION_WITH_EPOCHS = 9
_NOBODY = (-1, "", None)


class OffsetRules(ModernGroup[M, T]):
    """The rules for groups whose members commit offsets with their epochs."""

    def check_commit(self, commit: Commit) -> None:
        """Refuse a commit of somebody who is not a member, or is ahead of the epoch that it was given.

        Without a member id it is a simple consumer's or an administrator's: fine while there are no members.
        A transaction need not say who commits. An older epoch is looked at for each partition.
        """
        if commit.generation < 0 and not self.members:
            return
        if commit.is_transactional and (commit.generation, commit.member_id, commit.instance_id) == _NOBODY:
            return
        member = self.members.get(commit.member_id)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if (
            commit.version < _FIRST_COMMIT_VERSION_WITH_EPOCHS
            and not commit.is_transactional
            and self.sends_epochs(member)
        ):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION)
        if commit.generation > member.epoch:
            raise Refused(self.stale_error(member))

    def check_commit_to(self, commit: Commit, topic: str, topic_id: Uuid, partition: int) -> None:
        """Refuse a commit from before a partition was assigned to its committer (KIP-1251)."""
        member = self.members.get(commit.member_id)
        if member is None or commit.generation == member.epoch:
            # If it is no member, `check_commit` has let it through.
            return
        since = self.find_assigned_epoch(member, commit, topic, topic_id, partition)
        if since is None or commit.generation < since:
            raise Refused(self.stale_error(member))

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse to show offsets to a member that is behind. A request without a member id is fine."""
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise Refused(self.stale_error(member))

    def check_offset_delete(self) -> None:
        """Offsets of topics that the group does not read may be deleted at any time."""

    def expiry_base_ms(self, committed: CommittedOffset) -> int | None:
        """Return from when on an offset ages, if the group does not read its topic: since the commit."""
        return committed.commit_timestamp_ms

    def sends_epochs(self, _member: M) -> bool:
        """Say whether a member must commit in a version that has room for its epoch."""
        return True

    def stale_error(self, _member: M) -> ErrorCode:
        """Return the error for a member whose epoch is not the current one."""
        return ErrorCode.STALE_MEMBER_EPOCH

    @abstractmethod
    def find_assigned_epoch(
        self, member: M, commit: Commit, topic: str, topic_id: Uuid, partition: int
    ) -> int | None:
        """Return the epoch in which a partition was assigned to a member, or None if it does not have it."""

"""What a consumer group allows to be done with its offsets, and when they age."""

from collections.abc import Mapping

from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.kinds import Commit
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

_FIRST_COMMIT_VERSION_WITH_EPOCHS = 9
_NOBODY = (-1, "", None)


class OffsetRules:
    """The rules, over what a consumer group is made of."""

    members: Mapping[str, Member]

    def check_commit(self, commit: Commit) -> None:
        """Refuse a commit of somebody who is not a member, or is ahead of what it was told.

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
            not commit.is_transactional
            and member.classic is None
            and commit.version < _FIRST_COMMIT_VERSION_WITH_EPOCHS
        ):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION)
        if commit.generation > member.epoch:
            raise Refused(_stale(member))

    def check_commit_to(self, commit: Commit, _topic: str, topic_id: Uuid, partition: int) -> None:
        """Refuse a commit from before a partition was assigned to its committer (KIP-1251)."""
        member = self.members.get(commit.member_id)
        if member is None or commit.generation == member.epoch:
            # If it is no member, it has been let through above.
            return
        has = member.assignment
        since = has.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = has.pending_revocation.get(topic_id, {}).get(partition)
        if since is None or commit.generation < since:
            raise Refused(_stale(member))

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse to show offsets to a member that is behind. Who is no member need not say who it is."""
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise Refused(_stale(member))

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go at any time."""

    def check_delete(self) -> None:
        """Refuse while the group has members."""
        if self.members:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)

    def expiry_base_ms(self, committed: CommittedOffset) -> int | None:
        """Return from when on an offset ages, if nobody subscribes to its topic: since the commit."""
        return committed.commit_timestamp_ms


def _stale(member: Member) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION

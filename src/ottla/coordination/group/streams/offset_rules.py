"""What a streams group allows to be done with its offsets, and when they age."""

from collections.abc import Mapping

from ottla.coordination.group.kinds import Commit
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.streams.member import Member
from ottla.coordination.group.streams.topology import Topology
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode

_FIRST_COMMIT_VERSION_WITH_EPOCHS = 9
_NOBODY = (-1, "", None)


class OffsetRules:
    """The rules, over what a streams group is made of."""

    members: Mapping[str, Member]
    topology: Topology | None

    def check_commit(self, commit: Commit) -> None:
        """Refuse a commit of somebody who is not a member, or is ahead of what it was told.

        Without a member id it is an administrator's: fine while there are no members. A transaction need not
        say who commits. An older epoch is looked at for each partition.
        """
        if commit.generation < 0 and not self.members:
            return
        if commit.is_transactional and (commit.generation, commit.member_id, commit.instance_id) == _NOBODY:
            return
        member = self.members.get(commit.member_id)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if not commit.is_transactional and commit.version < _FIRST_COMMIT_VERSION_WITH_EPOCHS:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION)
        if commit.generation > member.epoch:
            raise Refused(ErrorCode.STALE_MEMBER_EPOCH)

    def check_commit_to(self, commit: Commit, topic: str, topic_id: Uuid, partition: int) -> None:
        """Refuse a commit from before the partition's task was assigned to its committer (KIP-1251)."""
        member = self.members.get(commit.member_id)
        if member is None or commit.generation == member.epoch:
            # If it is no member, it has been let through above.
            return
        since = None
        subtopology = None if self.topology is None else self.topology.by_source_topic.get(topic)
        if subtopology is not None and not (commit.is_transactional and topic_id == ZERO_UUID):
            has = member.assignment
            since = has.held.active.get(subtopology, {}).get(partition)
            if since is None:
                since = has.pending_revocation.active.get(subtopology, {}).get(partition)
        if since is None or commit.generation < since:
            raise Refused(ErrorCode.STALE_MEMBER_EPOCH)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse to show offsets to a member that is behind. Who is no member need not say who it is."""
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise Refused(ErrorCode.STALE_MEMBER_EPOCH)

    def check_offset_delete(self) -> None:
        """Offsets of topics that the group does not read may go at any time."""

    def check_delete(self) -> None:
        """Refuse while the group has members."""
        if self.members:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether the group reads the topic. Without members it reads nothing."""
        return bool(self.members) and self.topology is not None and topic in self.topology.by_source_topic

    def expiry_base_ms(self, committed: CommittedOffset) -> int | None:
        """Return from when on an offset ages, if the group does not read its topic: since the commit."""
        return committed.commit_timestamp_ms

"""The offsets a group has committed: stored, and asked for.

The coordinator is followed when it moves. A commit carries who commits (`GroupMetadata`). That is
asked for with every try, because the epoch of a member may go up while its commit is under way.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.client.cluster import GROUP, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.group import GroupMetadata, OffsetAndMetadata
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

# The newest versions that name topics by name.
_LAST_VERSION_BY_NAME: Final = 9
_FIRST_VERSION_OF_GROUPS: Final = 8
_FIRST_STABLE_VERSION: Final = 7
MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_NO_MEMBER: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)


class CommitFailed(ClientError):
    """The group went on without this member: others may have its partitions now."""


class RebalanceInProgress(ClientError):
    """The group is being shared out again. Call `poll`, then commit what is still assigned."""


class GroupOffsets:
    """The committed offsets of one group."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._committing = asyncio.Lock()

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], who: Callable[[], GroupMetadata]
    ) -> None:
        """Store offsets. Returns when they are stored.

        Commits go one after the other. One that is tried again must not undo a later one.
        """
        if not offsets:
            return
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for where, item in offsets.items():
            part = OffsetCommitRequestPartition(
                partition_index=where.partition,
                committed_offset=item.offset,
                committed_leader_epoch=item.leader_epoch,
                committed_metadata=item.metadata,
            )
            topics.setdefault(where.topic, []).append(part)

        async def once() -> None:
            member = who()
            request = OffsetCommitRequest(
                group_id=self._group_id,
                generation_id_or_member_epoch=member.generation,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                topics=tuple(
                    OffsetCommitRequestTopic(name=name, partitions=tuple(parts))
                    for name, parts in topics.items()
                ),
            )
            answer = await self._ask(OffsetCommitRequest, lambda _version: request)
            for topic in answer.topics:
                for part in topic.partitions:
                    self._check(part.error_code, f"the offset of {topic.name}-{part.partition_index}")

        async with self._committing:
            await self._cluster.retry(once)

    async def fetch(
        self, partitions: Iterable[TopicPartition], who: Callable[[], GroupMetadata | None] = lambda: None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Ask for committed offsets. Partitions without one are left out.

        Where a transaction that commits offsets is still open, this waits for its end.
        """
        by_topic: dict[str, list[int]] = {}
        for where in partitions:
            by_topic.setdefault(where.topic, []).append(where.partition)
        if not by_topic:
            return {}

        async def once() -> dict[TopicPartition, OffsetAndMetadata]:
            answer = await self._ask(
                OffsetFetchRequest, lambda version: self._fetch_request(version, by_topic, who())
            )
            result = answer.groups[0] if answer.groups else answer
            self._check(result.error_code, f"the offsets of group {self._group_id!r}")
            found = {}
            for topic in result.topics:
                for part in topic.partitions:
                    where = TopicPartition(topic.name, part.partition_index)
                    self._check(part.error_code, f"the committed offset of {where}")
                    if part.committed_offset >= 0:
                        found[where] = OffsetAndMetadata(
                            part.committed_offset, part.metadata or "", part.committed_leader_epoch
                        )
            return found

        return await self._cluster.retry(once)

    def _fetch_request(
        self, version: int, by_topic: Mapping[str, list[int]], member: GroupMetadata | None
    ) -> OffsetFetchRequest:
        if version < _FIRST_VERSION_OF_GROUPS:
            topics = tuple(
                OffsetFetchRequestTopic(name=name, partition_indexes=tuple(numbers))
                for name, numbers in by_topic.items()
            )
            return OffsetFetchRequest(
                group_id=self._group_id, topics=topics, require_stable=version >= _FIRST_STABLE_VERSION
            )
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            member_id=None if member is None else member.member_id,
            member_epoch=-1 if member is None else member.generation,
            topics=tuple(
                OffsetFetchRequestTopics(name=name, partition_indexes=tuple(numbers))
                for name, numbers in by_topic.items()
            ),
        )
        return OffsetFetchRequest(groups=(group,), require_stable=True)

    async def _ask(self, kind: type[Any], build: Callable[[int], Any]) -> Any:
        node_id = await self._cluster.coordinator(GROUP, self._group_id)
        try:
            connection = await self._cluster.connection(node_id)
            version = connection.version_for(kind, _LAST_VERSION_BY_NAME)
            return await connection.ask(build(version), version)
        except ClientError:
            self._cluster.forget_coordinator(GROUP, self._group_id)
            raise

    def _check(self, code: ErrorCode, what: str) -> None:
        if code is ErrorCode.NONE:
            return
        if code in MOVED:
            self._cluster.forget_coordinator(GROUP, self._group_id)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            raise RebalanceInProgress(
                f"{what} was not committed: group {self._group_id!r} is rebalancing. Call poll, then commit "
                "again"
            )
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            # The next heartbeat tells the new epoch; the commit is as good with that one.
            raise _Retriable(code, what)
        if code in _NO_MEMBER:
            raise CommitFailed(
                f"{what} was not committed: group {self._group_id!r} has removed this member ({code.name}). "
                "Raise max.poll.interval.ms or lower max.poll.records if processing takes long"
            )
        raise BrokerError(code, f"{what} was refused")


class _Retriable(BrokerError):
    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(code, what)
        self.retriable = True

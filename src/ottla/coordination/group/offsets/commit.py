"""OffsetCommit and TxnOffsetCommit: one error for all if the sender may not, else one per partition."""

from ottla.coordination.group.environment import Environment
from ottla.coordination.group.journal import Event
from ottla.coordination.group.kinds import Commit, Group
from ottla.coordination.group.offsets.ledger import CommittedOffset, offset_record
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def decide_commit(
    group: Group, ask: OffsetCommitRequest, version: int, env: Environment, now_ms: int
) -> Decision[OffsetCommitResponse]:
    """Commit offsets. Topics are given by name and id both: the broker has filled in what was missing."""
    commit = Commit(ask.member_id, ask.group_instance_id, ask.generation_id_or_member_epoch, False, version)
    expire_ms = -1 if ask.retention_time_ms == -1 else now_ms + ask.retention_time_ms
    records: list[CoordinatorRecord] = []
    topics = []
    try:
        group.check_commit(commit)
        for topic in ask.topics:
            parts = []
            for part in topic.partitions:
                code = ErrorCode.NONE
                metadata = part.committed_metadata or ""
                if len(metadata) > env.settings.offset_metadata_bytes_max:
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    group.check_commit_to(commit, topic.name, part.partition_index)
                    committed = CommittedOffset(
                        part.committed_offset, part.committed_leader_epoch, metadata, now_ms, expire_ms,
                        topic.topic_id,
                    )  # fmt: skip
                    where = TopicPartition(topic.name, part.partition_index)
                    records.append(offset_record(group.group_id, where, committed))
                parts.append(
                    OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                )
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(parts))
            )
    except Refused as refused:
        env.journal.add(
            group.group_id,
            now_ms,
            Event.COMMIT_REFUSED,
            commit.member_id,
            commit.generation,
            refused.error_code,
        )
        return Decision(reply=refused_commit(ask, refused.error_code))
    env.journal.add(
        group.group_id, now_ms, Event.COMMIT_ACCEPTED, commit.member_id, commit.generation, tuple(records)
    )
    return Decision(records=tuple(records), reply=OffsetCommitResponse(topics=tuple(topics)))


def decide_transactional_commit(
    group: Group, ask: TxnOffsetCommitRequest, version: int, env: Environment, now_ms: int
) -> Decision[TxnOffsetCommitResponse]:
    """Commit offsets as part of a transaction. A stale member gets the older code."""
    commit = Commit(ask.member_id, ask.group_instance_id, ask.generation_id, True, version)
    records: list[CoordinatorRecord] = []
    topics = []
    try:
        group.check_commit(commit)
        for topic in ask.topics:
            parts = []
            facts = env.topics.find_by_name(topic.name)
            for part in topic.partitions:
                code = ErrorCode.NONE
                metadata = part.committed_metadata or ""
                if len(metadata) > env.settings.offset_metadata_bytes_max:
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    group.check_commit_to(commit, topic.name, part.partition_index)
                    committed = CommittedOffset(
                        part.committed_offset, part.committed_leader_epoch, metadata, now_ms, -1,
                        ZERO_UUID if facts is None else facts.topic_id,
                    )  # fmt: skip
                    where = TopicPartition(topic.name, part.partition_index)
                    records.append(offset_record(group.group_id, where, committed))
                parts.append(
                    TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(parts)))
    except Refused as refused:
        code = refused.error_code
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            code = ErrorCode.ILLEGAL_GENERATION
        env.journal.add(
            group.group_id, now_ms, Event.COMMIT_REFUSED, commit.member_id, commit.generation, code
        )
        return Decision(reply=refused_transactional_commit(ask, code))
    env.journal.add(
        group.group_id, now_ms, Event.COMMIT_ACCEPTED, commit.member_id, commit.generation, tuple(records)
    )
    return Decision(records=tuple(records), reply=TxnOffsetCommitResponse(topics=tuple(topics)))


def refused_commit(ask: OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse:
    """Return an answer that has the same error for every partition."""
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error_code)
                    for part in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )


def refused_transactional_commit(
    ask: TxnOffsetCommitRequest, error_code: ErrorCode
) -> TxnOffsetCommitResponse:
    """Return an answer that has the same error for every partition."""
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=part.partition_index, error_code=error_code
                    )
                    for part in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )

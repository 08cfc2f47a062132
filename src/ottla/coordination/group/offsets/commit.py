"""OffsetCommit and TxnOffsetCommit: one error for all if the sender may not, else one per partition."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from ottla.coordination.group.environment import Environment
from ottla.coordination.group.journal import Event
from ottla.coordination.group.kinds import Commit, Group
from ottla.coordination.group.offsets.ledger import commit_record
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision
from ottla.model.uuid import ZERO_UUID, Uuid
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

R = TypeVar("R")


class _Partition(Protocol):
    """What both requests say of a partition."""

    @property
    def partition_index(self) -> int: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def committed_leader_epoch(self) -> int: ...
    @property
    def committed_metadata(self) -> str | None: ...


class _Taking:
    """The offsets of one commit that were taken so far, with their records."""

    __slots__ = ("_commit", "_expire_ms", "_group", "_metadata_max", "_now_ms", "offsets", "records")

    def __init__(self, group: Group, commit: Commit, env: Environment, now_ms: int, expire_ms: int) -> None:
        self._group = group
        self._commit = commit
        self._metadata_max = env.settings.offset_metadata_bytes_max
        self._now_ms = now_ms
        self._expire_ms = expire_ms
        self.records: list[CoordinatorRecord] = []
        self.offsets: list[tuple[str, int, int]] = []

    def take(self, topic: str, topic_id: Uuid, asked: _Partition) -> ErrorCode:
        """Take the offset of one partition. Raises `Refused` if the whole commit is to be refused."""
        metadata = asked.committed_metadata or ""
        if 2 * len(metadata) > self._metadata_max and _java_length(metadata) > self._metadata_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        partition, offset = asked.partition_index, asked.committed_offset
        self._group.check_commit_to(self._commit, topic_id, partition)
        record = commit_record(
            self._group.group_id, topic, partition, offset, asked.committed_leader_epoch, metadata,
            self._now_ms, self._expire_ms, topic_id,
        )  # fmt: skip
        self.records.append(record)
        self.offsets.append((topic, partition, offset))
        return ErrorCode.NONE


def decide_commit(
    group: Group, ask: OffsetCommitRequest, version: int, env: Environment, now_ms: int
) -> Decision[OffsetCommitResponse]:
    """Commit offsets. Topics are given by name and id both: the broker has filled in what was missing."""
    commit = Commit(ask.member_id, ask.group_instance_id, ask.generation_id_or_member_epoch, False, version)
    expire_ms = -1 if ask.retention_time_ms == -1 else now_ms + ask.retention_time_ms
    taking = _Taking(group, commit, env, now_ms, expire_ms)
    try:
        group.check_commit(commit)
        reply = _answer(ask, taking.take)
    except Refused as refused:
        _note_refusal(group, commit, refused, env, now_ms)
        return Decision(reply=refused_commit(ask, refused.error_code))
    return _taken(group, commit, taking, reply, env, now_ms)


def decide_transactional_commit(
    group: Group, ask: TxnOffsetCommitRequest, version: int, env: Environment, now_ms: int
) -> Decision[TxnOffsetCommitResponse]:
    """Commit offsets as part of a transaction. A stale member gets the older code."""
    commit = Commit(ask.member_id, ask.group_instance_id, ask.generation_id, True, version)
    taking = _Taking(group, commit, env, now_ms, -1)
    try:
        group.check_commit(commit)
        reply = _transactional_answer(ask, taking.take, env)
    except Refused as refused:
        _note_refusal(group, commit, refused, env, now_ms)
        code = refused.error_code
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            code = ErrorCode.ILLEGAL_GENERATION
        return Decision(reply=refused_transactional_commit(ask, code))
    return _taken(group, commit, taking, reply, env, now_ms)


def _taken(
    group: Group, commit: Commit, taking: _Taking, reply: R, env: Environment, now_ms: int
) -> Decision[R]:
    env.journal.add(
        group.group_id, now_ms, Event.COMMIT_ACCEPTED, commit.member_id, commit.generation,
        tuple(taking.offsets),
    )  # fmt: skip
    return Decision(tuple(taking.records), reply)


def _note_refusal(group: Group, commit: Commit, refused: Refused, env: Environment, now_ms: int) -> None:
    env.journal.add(
        group.group_id, now_ms, Event.COMMIT_REFUSED, commit.member_id, commit.generation, refused.error_code
    )


def refused_commit(ask: OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse:
    """Return an answer that has the same error for every partition."""
    return _answer(ask, lambda _name, _id, _part: error_code)


def refused_transactional_commit(
    ask: TxnOffsetCommitRequest, error_code: ErrorCode
) -> TxnOffsetCommitResponse:
    """Return an answer that has the same error for every partition."""
    return _transactional_answer(ask, lambda _name, _id, _part: error_code)


def _answer(
    ask: OffsetCommitRequest, outcome: Callable[[str, Uuid, _Partition], ErrorCode]
) -> OffsetCommitResponse:
    topics = []
    for topic in ask.topics:
        name, topic_id = topic.name, topic.topic_id
        partitions = [
            OffsetCommitResponsePartition(
                partition_index=part.partition_index, error_code=outcome(name, topic_id, part)
            )
            for part in topic.partitions
        ]
        topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=tuple(partitions)))
    return OffsetCommitResponse(topics=tuple(topics))


def _transactional_answer(
    ask: TxnOffsetCommitRequest,
    outcome: Callable[[str, Uuid, _Partition], ErrorCode],
    env: Environment | None = None,
) -> TxnOffsetCommitResponse:
    topics = []
    for topic in ask.topics:
        facts = None if env is None else env.topics.find_by_name(topic.name)
        topic_id = ZERO_UUID if facts is None else facts.topic_id
        partitions = [
            TxnOffsetCommitResponsePartition(
                partition_index=part.partition_index, error_code=outcome(topic.name, topic_id, part)
            )
            for part in topic.partitions
        ]
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(partitions)))
    return TxnOffsetCommitResponse(topics=tuple(topics))


def _java_length(text: str) -> int:
    """Return the length as Kafka counts it: characters beyond the first 65,536 count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

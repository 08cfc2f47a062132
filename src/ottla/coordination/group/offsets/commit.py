"""OffsetCommit and TxnOffsetCommit: one error for all if the sender may not, else one per partition."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Commit, Group
from ottla.coordination.group.offsets.committed_offsets import commit_record
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision, Effect
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


class _Partition(Protocol):
    """What both requests say of a partition, in this order."""

    @property
    def partition_index(self) -> int: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def committed_leader_epoch(self) -> int: ...
    @property
    def committed_metadata(self) -> str | None: ...


Outcome = Callable[[str, Uuid, Iterable[_Partition]], list[ErrorCode]]
"""What becomes of the partitions of a topic, which is given by name and id."""

_new_tuple: Final = tuple.__new__


class _Taking:
    """The offsets of one commit that were taken so far, with their records."""

    __slots__ = ("_commit", "_expire_ms", "_group", "_metadata_max", "_now_ms", "records")

    def __init__(self, group: Group, commit: Commit, env: Environment, now_ms: int, expire_ms: int) -> None:
        self._group = group
        self._commit = commit
        self._metadata_max = env.settings.offset_metadata_bytes_max
        self._now_ms = now_ms
        self._expire_ms = expire_ms
        self.records: list[CoordinatorRecord] = []

    def take(self, topic: str, topic_id: Uuid, partitions: Iterable[_Partition]) -> list[ErrorCode]:
        """Take the offsets of a topic. Raises `Refused` if the whole commit is to be refused."""
        group, metadata_max = self._group, self._metadata_max
        codes = []
        asked: Any
        for asked in partitions:
            # Unpacked, as the tuples they are: four look-ups by name take longer than all the rest.
            partition, offset, leader_epoch, metadata = asked
            if metadata and 2 * len(metadata) > metadata_max and _java_length(metadata) > metadata_max:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            group.check_commit_to(self._commit, topic, topic_id, partition)
            record = commit_record(
                group.group_id, topic, partition, offset, leader_epoch, metadata or "",
                self._now_ms, self._expire_ms, topic_id,
            )  # fmt: skip
            self.records.append(record)
            codes.append(ErrorCode.NONE)
        return codes


def commit_of(ask: OffsetCommitRequest, version: int) -> Commit:
    """Return who commits."""
    return Commit(ask.member_id, ask.group_instance_id, ask.generation_id_or_member_epoch, False, version)


def decide_commit(
    group: Group,
    ask: OffsetCommitRequest,
    version: int,
    env: Environment,
    now_ms: int,
    keep_alive: Effect | None = None,
) -> Decision[OffsetCommitResponse]:
    """Commit offsets. Topics are given by name and id both: the broker has filled in what was missing.

    `keep_alive` is done if offsets are taken: a member that commits is alive.
    """
    commit = commit_of(ask, version)
    expire_ms = -1 if ask.retention_time_ms == -1 else now_ms + ask.retention_time_ms
    taking = _Taking(group, commit, env, now_ms, expire_ms)
    try:
        group.check_commit(commit)
        reply = _answer(ask, taking.take)
    except Refused as refused:
        return Decision(reply=refused_commit(ask, refused.error_code))
    records = tuple(taking.records)
    return Decision(records, reply, keep_alive if records else None)


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
        code = refused.error_code
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            code = ErrorCode.ILLEGAL_GENERATION
        return Decision(reply=refused_transactional_commit(ask, code))
    return Decision(tuple(taking.records), reply)


def refused_commit(ask: OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse:
    """Return an answer that has the same error for every partition."""
    return _answer(ask, lambda _name, _id, partitions: [error_code for _ in partitions])


def refused_transactional_commit(
    ask: TxnOffsetCommitRequest, error_code: ErrorCode
) -> TxnOffsetCommitResponse:
    """Return an answer that has the same error for every partition."""
    return _transactional_answer(ask, lambda _name, _id, partitions: [error_code for _ in partitions])


def _answer(ask: OffsetCommitRequest, outcome: Outcome) -> OffsetCommitResponse:
    topics = []
    for topic in ask.topics:
        name, topic_id, partitions = topic.name, topic.topic_id, topic.partitions
        codes = outcome(name, topic_id, partitions)
        answers: tuple[OffsetCommitResponsePartition, ...] = tuple(
            [
                _new_tuple(OffsetCommitResponsePartition, (part.partition_index, code))  # type: ignore[type-var]
                for part, code in zip(partitions, codes, strict=True)
            ]
        )
        topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answers))
    return OffsetCommitResponse(topics=tuple(topics))


def _transactional_answer(
    ask: TxnOffsetCommitRequest, outcome: Outcome, env: Environment | None = None
) -> TxnOffsetCommitResponse:
    topics = []
    for topic in ask.topics:
        facts = None if env is None else env.topics.find_by_name(topic.name)
        topic_id = ZERO_UUID if facts is None else facts.topic_id
        codes = outcome(topic.name, topic_id, topic.partitions)
        partitions = [
            TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part, code in zip(topic.partitions, codes, strict=True)
        ]
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(partitions)))
    return TxnOffsetCommitResponse(topics=tuple(topics))


def _java_length(text: str) -> int:
    """Return the length as Kafka counts it: characters beyond the first 65,536 count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

"""ShareFetch: a member of a share group acquires records, and says what became of earlier ones.

Partitions are read in the order of the session, which puts those that were served last behind the others. An
answer waits until there is something to acquire, something to tell, or the time is over.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from ottla.broker.apis.share.share_acknowledge import check_member, leader_of
from ottla.broker.deferred import Deferred, gather
from ottla.broker.handling.acknowledging import Acknowledged, acknowledge
from ottla.broker.limits.quotas import QuotaKind
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.broker.share.acquiring import Wanted
from ottla.broker.share.reading import SharedRead
from ottla.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, TopicIdPartition
from ottla.broker.share.share_partition import SharePartition, Status
from ottla.coordination.share.state import ShareKey
from ottla.security.rights import Operation, on_group, on_topic
from ottla.storage.errors import LogDirectoryOffline
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

_RECORD_LIMIT: Final = 1
_EMPTY: Final = memoryview(b"")
_READ: Final = on_topic(Operation.READ)
_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_NO_LEADER: Final = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


@serves(
    ShareFetchRequest,
    "1-2",
    on_group(Operation.READ),
    on_topic(Operation.READ),
    checked_by=CheckedBy.HANDLER,
    sends_files=True,
    has_short_answers=True,
)
def share_fetch(ask: ShareFetchRequest, context: BrokerContext) -> Deferred[ShareFetchResponse]:
    """Answer when what was said is written, and there are records or the time is over."""
    refusal, message = check_member(ask, context)
    wants_records = any((ask.max_bytes, ask.min_bytes, ask.max_records, ask.max_wait_ms))
    if not refusal and ask.is_renew_ack and wants_records:
        refusal = ErrorCode.INVALID_REQUEST
        message = "maxBytes, minBytes, maxRecords and maxWaitMs must be 0 if isRenewAck is true."
    if refusal:
        return Deferred.of(_refused(refusal, message))
    session = _find_session(ask, context)
    if session is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        # Otherwise the member would come back at once.
        late: Deferred[ShareFetchResponse] = Deferred()
        context.broker.world.scheduler.call_later(ask.max_wait_ms, late.resolve, _refused(session))
        return late
    if isinstance(session, ErrorCode):
        return Deferred.of(_refused(session))
    asked = [
        ((topic.topic_id, one.partition_index), one.acknowledgement_batches)
        for topic in ask.topics
        for one in topic.partitions
        if one.acknowledgement_batches
    ]
    outcomes = acknowledge(session.group_id, session.member_id, asked, ask.is_renew_ack, context)
    fetch = _Fetch(ask, session, context)
    acknowledged = gather(list(outcomes.values()))
    response: Deferred[ShareFetchResponse] = Deferred()

    def both(found: list[Acknowledged]) -> None:
        fetched = fetch.begin()
        fetched.when_done(
            lambda answers: response.resolve(fetch.respond(answers, dict(zip(outcomes, found, strict=True)))),
            response.fail,
        )

    acknowledged.when_done(both, response.fail)
    return response


def _find_session(ask: ShareFetchRequest, context: BrokerContext) -> ShareSession | ErrorCode:
    sharing = context.broker.sharing
    group_id, member_id = ask.group_id or "", ask.member_id or ""
    partitions = [(topic.topic_id, one.partition_index) for topic in ask.topics for one in topic.partitions]
    known = sharing.sessions.find(group_id, member_id)
    if ask.share_session_epoch == INITIAL_EPOCH:
        if any(one.acknowledgement_batches for topic in ask.topics for one in topic.partitions):
            return ErrorCode.INVALID_REQUEST
        session = ShareSession(group_id, member_id, partitions)
        if not sharing.sessions.begin(session, context.broker.config.group_share_max_share_sessions):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        sharing.belongs_to(session, context)
        context.when_closed = partial(sharing.connection_closed, context)
        return session
    if known is None:
        return ErrorCode.SHARE_SESSION_NOT_FOUND
    if ask.share_session_epoch == FINAL_EPOCH:
        return known
    error_code = known.check_epoch(ask.share_session_epoch)
    if error_code is not ErrorCode.NONE:
        return error_code
    forgotten = [(topic.topic_id, one) for topic in ask.forgotten_topics_data for one in topic.partitions]
    known.update(partitions, forgotten)
    return known


def _refused(error_code: ErrorCode, message: str | None = None) -> ShareFetchResponse:
    return ShareFetchResponse(
        error_code=error_code,
        error_message=message,
        acquisition_lock_timeout_ms=0,
        responses=(),
        node_endpoints=(),
    )


Answers = dict[TopicIdPartition, PartitionData]


class _Fetch:
    """One fetch, as often as it is tried. Implements `FetchAttempt`."""

    def __init__(self, ask: ShareFetchRequest, session: ShareSession, context: BrokerContext) -> None:
        self._ask = ask
        self._session = session
        self._context = context
        self._sharing = context.broker.sharing
        self._limit = self._sharing.read_limit_of(session.group_id)
        self._bytes_max = min(ask.max_bytes, context.broker.config.fetch_max_bytes)
        self._answers: Deferred[Answers] = Deferred()
        self._keys: list[TopicIdPartition] = []
        self._size_bytes = 0

    def begin(self) -> Deferred[Answers]:
        """Try, and wait if there is nothing yet."""
        ask = self._ask
        is_last = ask.share_session_epoch == FINAL_EPOCH or not self._has_session
        if is_last or ask.is_renew_ack or ask.max_records <= 0 or self._bytes_max <= 0:
            return Deferred.of({})
        self._keys = list(self._session.partitions)
        answers, partitions, missing_bytes = self._try(is_late=ask.max_wait_ms <= 0)
        if missing_bytes <= 0 or not partitions or ask.max_wait_ms <= 0:
            self._answers.resolve(answers)
            return self._answers
        self._context.abandon = self._context.broker.parked_fetches.park(
            self, partitions, missing_bytes, ask.max_wait_ms
        )
        return self._answers

    def retry(self) -> int:
        """Try again, and answer if there is something. Return how many bytes are missing."""
        answers, _, missing_bytes = self._try(is_late=False)
        if missing_bytes <= 0:
            self._answers.resolve(answers)
        return missing_bytes

    def give_up(self) -> None:
        """Answer with what there is."""
        self._answers.resolve(self._try(is_late=True)[0])

    @property
    def _has_session(self) -> bool:
        """Whether the member is still there. Nobody else would release what it acquires."""
        session = self._session
        return self._sharing.sessions.find(session.group_id, session.member_id) is session

    def _try(self, is_late: bool) -> tuple[Answers, list[Partition], int]:
        """Acquire what there is. Return the answers, where to wait, and how many bytes are missing."""
        answers: Answers = {}
        if not self._has_session:
            return answers, [], 0
        active: list[tuple[TopicIdPartition, SharePartition]] = []
        partitions: list[Partition] = []
        for one in self._keys:
            found = self._find(one)
            if isinstance(found, ErrorCode):
                answers[one] = self._refusal(one, found)
                continue
            partitions.append(found.partition)
            if found.status is Status.ACTIVE:
                active.append((one, found))
        if active and not answers and not is_late and self._ask.min_bytes > 1:
            missing_bytes = self._ask.min_bytes - self._readable_bytes([found for _, found in active])
            if missing_bytes > 0:
                return {}, partitions, missing_bytes
        self._acquire(active, answers)
        is_enough = answers or (active and self._ask.min_bytes <= 0)
        if self._ask.share_session_epoch == INITIAL_EPOCH and (is_enough or is_late):
            # As in Kafka, the first answer of a session names all that was read. Later ones leave out what
            # has neither records nor an error.
            for one, _ in active:
                answers.setdefault(one, self._refusal(one, ErrorCode.NONE))
        return answers, partitions, 0 if is_enough else 1

    def _acquire(self, active: Sequence[tuple[TopicIdPartition, SharePartition]], answers: Answers) -> None:
        ask = self._ask
        left = ask.max_records
        bytes_each = max(1, self._bytes_max // max(1, len(active)))
        is_record_limit = ask.share_acquire_mode == _RECORD_LIMIT
        for one, share_partition in active:
            if left <= 0:
                break
            wanted = Wanted(left, ask.batch_size, is_record_limit)
            try:
                read = share_partition.fetch(self._session.member_id, wanted, bytes_each, self._limit)
            except LogDirectoryOffline:
                answers[one] = self._refusal(one, ErrorCode.KAFKA_STORAGE_ERROR)
                continue
            if read is not None:
                left -= sum(part.last - part.first + 1 for part in read.acquired)
                answers[one] = self._acquired(one, share_partition.partition, read)

    def _readable_bytes(self, active: Sequence[SharePartition]) -> int:
        bytes_each = max(1, self._bytes_max // max(1, len(active)))
        try:
            return sum(one.readable_bytes(bytes_each, self._limit) for one in active)
        except LogDirectoryOffline:
            return self._ask.min_bytes

    def _find(self, one: TopicIdPartition) -> SharePartition | ErrorCode:
        topic = self._context.broker.image.topics.find_by_id(one[0])
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not self._context.allows(_READ, topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return self._sharing.find_or_load(ShareKey(self._session.group_id, *one))

    def _acquired(self, one: TopicIdPartition, partition: Partition, read: SharedRead) -> PartitionData:
        records = read.records
        partition.bytes_out += len(records)
        self._size_bytes += len(records)
        return PartitionData(
            partition_index=one[1],
            acknowledge_error_code=ErrorCode.NONE,
            current_leader=_NO_LEADER,
            records=records,  # type: ignore[arg-type]
            acquired_records=tuple(
                AcquiredRecords(
                    first_offset=part.first, last_offset=part.last, delivery_count=part.deliveries
                )
                for part in read.acquired
            ),
        )

    def _refusal(self, one: TopicIdPartition, error_code: ErrorCode) -> PartitionData:
        leader = _NO_LEADER
        if error_code in _ELSEWHERE:
            leader_id, leader_epoch = leader_of(one, self._context)
            leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        return PartitionData(
            partition_index=one[1],
            error_code=error_code,
            acknowledge_error_code=ErrorCode.NONE,
            current_leader=leader,
            records=_EMPTY,
            acquired_records=(),
        )

    # Answering

    def respond(
        self, answers: Answers, acknowledged: dict[TopicIdPartition, Acknowledged]
    ) -> ShareFetchResponse:
        """Put together what was acquired and what became of acknowledgements."""
        self._session.move_to_end(one for one, data in answers.items() if data.records)
        if self._ask.share_session_epoch == FINAL_EPOCH:
            self._sharing.release_session(self._session)
        topics: dict[Any, list[PartitionData]] = {}
        leaders = set()
        for one in dict.fromkeys((*answers, *acknowledged)):
            data = answers.get(one) or self._refusal(one, ErrorCode.NONE)
            outcome = acknowledged.get(one)
            if outcome is not None:
                data = self._with_outcome(one, data, outcome)
            if data.current_leader is not _NO_LEADER:
                leaders.add(data.current_leader.leader_id)
            topics.setdefault(one[0], []).append(data)
        return ShareFetchResponse(
            throttle_time_ms=self._throttle(),
            acquisition_lock_timeout_ms=self._sharing.limits_of(self._session.group_id).lock_ms,
            responses=tuple(
                ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
            node_endpoints=tuple(
                NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
                for node in self._context.broker.endpoints.living(self._context)
                if node.node_id in leaders
            )
            if leaders
            else (),
        )

    def _with_outcome(
        self, one: TopicIdPartition, data: PartitionData, outcome: Acknowledged
    ) -> PartitionData:
        leader = data.current_leader
        if outcome.error_code in _ELSEWHERE and leader is _NO_LEADER:
            leader_id, leader_epoch = leader_of(one, self._context)
            leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        return PartitionData(
            partition_index=data.partition_index,
            error_code=data.error_code,
            error_message=data.error_message,
            acknowledge_error_code=outcome.error_code,
            acknowledge_error_message=outcome.message,
            current_leader=leader,
            records=data.records,
            acquired_records=data.acquired_records,
        )

    def _throttle(self) -> int:
        """Count the answer against the reader's quota. Over it, the reader has to wait after the answer.

        Deviation: Kafka answers without the records then, which stay locked for nothing.
        """
        quotas, context = self._context.broker.quotas, self._context
        if not quotas.limits_fetch or not self._size_bytes:
            return 0
        now_ms = context.broker.clock.monotonic_ms()
        throttle_ms = quotas.record(
            QuotaKind.FETCH, context.user, context.client_id or "", self._size_bytes, now_ms
        )
        if throttle_ms > 0:
            context.mute(throttle_ms, QuotaKind.FETCH.value)
        return throttle_ms

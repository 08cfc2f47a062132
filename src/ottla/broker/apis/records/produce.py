"""Produce: append a batch to each partition, and answer when it is as safe as the producer asked for.

    acks 0    no answer at all; after an error the connection is closed, so that the producer learns of it
    acks 1    answered when the leader has it
    acks -1   answered when it is committed: see `ottla.storage.syncing.committed`
    acks -2   the same, for a mirror: batches of another cluster keep their offsets (`append_mirrored`)
    acks -3   the same, for dead letters of another broker's share groups (`Letterbox`)

Each partition is answered for itself: one that is refused spoils no other. Batches are patched and written
where they were received, so nothing of the request may be needed after this handler has returned. A large
batch that has to be opened is the exception: see `openings`.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.broker.deferred import Deferred, gather
from ottla.broker.handling.producing import find_refusal
from ottla.broker.handling.transactional_produce import (
    NOTHING_TO_CONFIRM,
    Confirmations,
    Confirmed,
    start_confirmation,
)
from ottla.broker.limits.quotas import QuotaKind
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.produce.delayed_produce import Answer
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.broker.serving.lanes import Lanes
from ottla.broker.serving.replies import NO_REPLY, CloseConnection, NoReply
from ottla.security.rights import Operation, on_topic, on_transactional_id
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.appending.verification import Verification
from ottla.storage.errors import AppendError, LogDirectoryOffline, MustBeOpened
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import (
    ACKS_LETTERS,
    ACKS_MIRRORED,
    LEADER_HINTS_FROM,
    TOPIC_IDS_FROM,
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

T = TypeVar("T")

_IS_MIRROR: Final = (
    "This topic is a copy of a topic of another cluster: write to the source, or make the copy writable with "
    "`ottla mirror failover`."
)
_NOTHING: Final = memoryview(b"")
_NOT_EVEN_OPENED: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
)
"""Errors for which Kafka does not tell the log start, as it does for all others of a batch."""


def _new_lanes(
    context: BrokerContext, answer_later: Callable[[Any], None], fail: Callable[[Exception], None]
) -> Lanes:
    # Imported only here: most connections do not write.
    from ottla.broker.lanes.produce_lane import ProduceLanes

    return ProduceLanes(context, answer_later, fail)


@serves(
    ProduceRequest,
    "3-13",
    on_transactional_id(Operation.WRITE),
    on_topic(Operation.WRITE),
    checked_by=CheckedBy.GUARD,
    carries_records=True,
    has_short_answers=True,
    cuts=(Cut("topic_data.partition_data", "responses.partition_responses", at_once=250),),
    element_bytes_min=6,
    is_exempt=lambda ask, _: ask.acks == 0,
    new_lanes=_new_lanes,
)
def produce(ask: ProduceRequest, context: BrokerContext) -> ProduceResponse | Deferred[Answer] | NoReply:
    """Append all batches, then answer or wait; of a transaction, when its coordinator has confirmed it."""
    if ask.transactional_id is not None:
        confirmed = start_confirmation(ask, context)
        if isinstance(confirmed, ErrorCode):
            return _refuse_all(ask, confirmed)
        if confirmed is not None:
            return _when_confirmed(confirmed, context)
    return _produce(ask, context, NOTHING_TO_CONFIRM)


def _when_confirmed(
    confirmed: Deferred[Confirmed], context: BrokerContext
) -> ProduceResponse | Deferred[Answer] | NoReply:
    if confirmed.is_done:
        return _produce(confirmed.value().ask, context, confirmed.value().confirmations)
    answer: Deferred[Any] = Deferred()
    go_on(confirmed, lambda value: _produce(value.ask, context, value.confirmations), answer)
    return answer


def go_on(first: Deferred[T], then: Callable[[T], Any], answer: Deferred[Any]) -> None:
    """Do what comes next when the first is done. What it returns, now or later, is the answer."""

    def next_step(value: T) -> None:
        try:
            response = then(value)
        except Exception as error:
            # Whatever it is, the connection that waits has to learn of it.
            answer.fail(error)
            return
        if isinstance(response, Deferred):
            response.when_done(answer.resolve, answer.fail)
        else:
            answer.resolve(response)

    first.when_done(next_step, answer.fail)


def _produce(
    ask: ProduceRequest, context: BrokerContext, confirmations: Confirmations
) -> ProduceResponse | Deferred[Answer] | NoReply:
    broker = context.broker
    partitions = broker.partitions
    by_id = context.version >= TOPIC_IDS_FROM
    now_ms = broker.clock.now_ms()
    asked = 0
    appended: list[Partition] = []
    topics: list[TopicProduceResponse] = []
    opened: list[Deferred[PartitionProduceResponse]] = []
    for topic in ask.topic_data:
        name = topic.topic_id if by_id else topic.name
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            asked += 1
            partition = partitions.by_key.get((name, data.partition_index))
            if partition is None:
                answers.append(_refused(data, partitions.why_missing(name, data.partition_index)))
            else:
                answer = _append(ask, data, partition, context, now_ms, appended, confirmations)
                if isinstance(answer, Deferred):
                    # Its place is kept until it is there.
                    opened.append(answer)
                answers.append(answer)  # type: ignore[arg-type]
        topics.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(answers))
        )
    throttle_ms = _throttle(context, now_ms) if broker.quotas.limits_produce else 0
    if opened:
        return _when_opened(ask, context, topics, opened, appended, throttle_ms)
    return _respond(ask, context, topics, appended, asked, throttle_ms)


def _when_opened(
    ask: ProduceRequest,
    context: BrokerContext,
    topics: list[TopicProduceResponse],
    opened: list[Deferred[PartitionProduceResponse]],
    appended: list[Partition],
    throttle_ms: int,
) -> Deferred[Any]:
    """Answer when the batches that a thread opens are appended, or refused."""

    def respond(_: list[PartitionProduceResponse]) -> ProduceResponse | Deferred[Answer] | NoReply:
        complete = [
            replace(topic, partition_responses=tuple(map(_settled, topic.partition_responses)))
            for topic in topics
        ]
        asked = sum(len(topic.partition_responses) for topic in complete)
        return _respond(ask, context, complete, appended, asked, throttle_ms)

    answer: Deferred[Any] = Deferred()
    # What waits for them may be a part of the request only: the rest must not be needed any more.
    ask = replace(ask, topic_data=())
    go_on(gather(opened), respond, answer)
    return answer


def _settled(answer: Any) -> PartitionProduceResponse:
    settled: PartitionProduceResponse = answer.value() if isinstance(answer, Deferred) else answer
    return settled


def _respond(
    ask: ProduceRequest,
    context: BrokerContext,
    topics: list[TopicProduceResponse],
    appended: list[Partition],
    asked: int,
    throttle_ms: int,
) -> ProduceResponse | Deferred[Answer] | NoReply:
    broker = context.broker
    response = ProduceResponse(responses=tuple(topics), throttle_time_ms=throttle_ms)
    if len(appended) < asked:
        if ask.acks == 0:
            raise _unanswered(response)
        response = _with_endpoints(response, context)
    elif ask.acks == 0:
        return NO_REPLY
    if ask.acks < 0 and not all(one.log.is_committed(one.log.log_end_offset) for one in appended):
        return broker.delayed_produces.wait(appended, ask.timeout_ms, lambda: response)
    return response


def _append(
    ask: ProduceRequest,
    data: PartitionProduceData,
    partition: Partition,
    context: BrokerContext,
    now_ms: int,
    appended: list[Partition],
    confirmations: Confirmations,
) -> PartitionProduceResponse | Deferred[PartitionProduceResponse]:
    records = _NOTHING if data.records is None else data.records
    refusal = find_refusal(ask, records, partition, context)
    if refusal is ErrorCode.NONE and confirmations.refusals:
        refusal = confirmations.refusals.get(partition, ErrorCode.NONE)
    if refusal is not ErrorCode.NONE:
        return _refused(data, refusal, partition, context)
    if partition.log.config.is_mirror and ask.acks != ACKS_MIRRORED:
        return replace(_refused(data, ErrorCode.POLICY_VIOLATION), error_message=_IS_MIRROR)
    if partition.is_internal:
        # It has told its shard the offsets of what it holds back already.
        context.broker.coordinators.write_out(partition.topic, partition.index)
    if ask.acks == ACKS_MIRRORED:
        return _append_mirrored(data, records, partition, now_ms, appended)
    if ask.acks == ACKS_LETTERS:
        return _append_letters(data, records, partition, context, appended)
    verification = confirmations.verifications.get(partition)
    if partition.is_opening:
        return _append_opened(data, records, partition, context, appended, verification)
    try:
        info = partition.append(records, now_ms, verification=verification, opens_large=False)
    except MustBeOpened:
        return _append_opened(data, records, partition, context, appended, verification)
    except AppendError as error:
        return _refused_batch(data, error, partition)
    except LogDirectoryOffline:
        return _refused(data, ErrorCode.KAFKA_STORAGE_ERROR)
    appended.append(partition)
    return _appended(data, info)


def _append_mirrored(
    data: PartitionProduceData,
    records: memoryview,
    partition: Partition,
    now_ms: int,
    appended: list[Partition],
) -> PartitionProduceResponse:
    try:
        info = partition.append_mirrored(records, now_ms)
    except AppendError as error:
        return _refused_batch(data, error, partition)
    except LogDirectoryOffline:
        return _refused(data, ErrorCode.KAFKA_STORAGE_ERROR)
    appended.append(partition)
    return _appended(data, info)


def _append_letters(
    data: PartitionProduceData,
    records: memoryview,
    partition: Partition,
    context: BrokerContext,
    appended: list[Partition],
) -> PartitionProduceResponse:
    broker = context.broker
    try:
        info = broker.sharing.dead_letters.letterbox.append(partition, records, broker.clock.now_ms())
    except AppendError as error:
        return _refused_batch(data, error, partition)
    except LogDirectoryOffline:
        return _refused(data, ErrorCode.KAFKA_STORAGE_ERROR)
    # Also if it has them all: they may not be committed yet.
    appended.append(partition)
    if info is None:
        return PartitionProduceResponse(partition_index=data.partition_index, base_offset=-1)
    return _appended(data, info)


def _append_opened(
    data: PartitionProduceData,
    records: memoryview,
    partition: Partition,
    context: BrokerContext,
    appended: list[Partition],
    verification: Verification | None,
) -> Deferred[PartitionProduceResponse]:
    """Have a thread open a batch, and append it behind all that wait for the partition."""
    answer: Deferred[PartitionProduceResponse] = Deferred()
    # Of the request only this is needed later: the batch is copied.
    data = replace(data, records=None)

    def done(info: AppendInfo) -> None:
        appended.append(partition)
        answer.resolve(_appended(data, info))

    def failed(error: Exception) -> None:
        if isinstance(error, AppendError):
            answer.resolve(_refused_batch(data, error, partition))
        elif isinstance(error, LogDirectoryOffline):
            answer.resolve(_refused(data, ErrorCode.KAFKA_STORAGE_ERROR))
        else:
            answer.fail(error)

    context.broker.openings.append(partition, records, verification).when_done(done, failed)
    return answer


def _appended(data: PartitionProduceData, info: AppendInfo) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        partition_index=data.partition_index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
    )


def _refuse_all(ask: ProduceRequest, error_code: ErrorCode) -> ProduceResponse:
    response = ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(_refused(data, error_code) for data in topic.partition_data),
            )
            for topic in ask.topic_data
        )
    )
    if ask.acks == 0:
        raise _unanswered(response)
    return response


def _refused(
    data: PartitionProduceData,
    error_code: ErrorCode,
    partition: Partition | None = None,
    context: BrokerContext | None = None,
) -> PartitionProduceResponse:
    refused = PartitionProduceResponse(
        partition_index=data.partition_index, error_code=error_code, base_offset=-1
    )
    if (
        error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        and partition is not None
        and context is not None
        and context.version >= LEADER_HINTS_FROM
    ):
        leader = LeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
        return replace(refused, current_leader=leader)
    return refused


def _refused_batch(
    data: PartitionProduceData, error: AppendError, partition: Partition
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        partition_index=data.partition_index,
        error_code=error.error_code,
        base_offset=-1,
        log_start_offset=-1 if error.error_code in _NOT_EVEN_OPENED else partition.log.log_start_offset,
        record_errors=tuple(
            BatchIndexAndErrorMessage(
                batch_index=record.batch_index, batch_index_error_message=record.message
            )
            for record in error.record_errors
        ),
        error_message=error.message,
    )


def _throttle(context: BrokerContext, now_ms: int) -> int:
    throttle_ms = context.broker.quotas.record(
        QuotaKind.PRODUCE, context.user, context.client_id or "", context.request_bytes, now_ms
    )
    if throttle_ms > 0:
        context.mute(throttle_ms, QuotaKind.PRODUCE.value)
    return throttle_ms


def _unanswered(response: ProduceResponse) -> CloseConnection:
    errors = [
        f"{topic.name or topic.topic_id}-{answer.partition_index}: {answer.error_code.name}"
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code is not ErrorCode.NONE
    ]
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    return CloseConnection(
        f"a producer with acks=0 gets no answer, so its connection is closed to report {errors[0]}{more}"
    )


def _with_endpoints(response: ProduceResponse, context: BrokerContext) -> ProduceResponse:
    """Tell where the leaders are that the answer points to."""
    leaders = {
        answer.current_leader.leader_id
        for topic in response.responses
        for answer in topic.partition_responses
    }
    endpoints = tuple(
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in context.broker.endpoints.living(context)
        if node.node_id in leaders
    )
    return replace(response, node_endpoints=endpoints) if endpoints else response

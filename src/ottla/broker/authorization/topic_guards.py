"""The guards of Produce and DeleteTopics, which depend on more than one field."""

from collections.abc import Sequence

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import MESSAGES
from ottla.broker.authorization.sorting import sort_out
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import CloseConnection, Reply, then
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.security.rights import (
    CLUSTER,
    Operation,
    on_cluster,
    on_topic,
    on_transactional_id,
)
from ottla.wire.apis import ApiKey
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.messages.produce import (
    ACKS_LETTERS,
    ACKS_MIRRORED,
    TOPIC_IDS_FROM,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_WRITE, _DELETE, _DESCRIBE = (
    on_topic(Operation.WRITE),
    on_topic(Operation.DELETE),
    on_topic(Operation.DESCRIBE),
)


@guards(ApiKey.PRODUCE)
def produce(ask: ProduceRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the transactional id as a whole, and for each topic. What batches say, the handler checks."""
    if ask.transactional_id is not None and not context.allows(
        on_transactional_id(Operation.WRITE), ask.transactional_id
    ):
        return _refuse_produce(ask, ask.topic_data, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if ask.acks in (ACKS_MIRRORED, ACKS_LETTERS) and not context.allows(
        on_cluster(Operation.CLUSTER_ACTION), CLUSTER
    ):
        # Who keeps offsets writes as replicas do, and only brokers write letters.
        return _refuse_produce(ask, ask.topic_data, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if ask.acks == ACKS_LETTERS:
        return serve(ask)
    allowed: list[TopicProduceData] = []
    denied: list[TopicProduceData] = []
    for topic in ask.topic_data:
        (allowed if _may_write(topic, context) else denied).append(topic)
    if not denied:
        return serve(ask)
    if ask.acks == 0:
        if allowed:
            serve(replace(ask, topic_data=tuple(allowed)))
        _refuse_produce(ask, denied, _DENIED)
    refusal = _refuse_produce(ask, denied, _DENIED)
    if not allowed:
        return refusal
    return then(
        serve(replace(ask, topic_data=tuple(allowed))),
        lambda response: replace(response, responses=(*refusal.responses, *response.responses)),
    )


def _may_write(topic: TopicProduceData, context: RequestContext) -> bool:
    name = topic.name
    if context.version >= TOPIC_IDS_FROM:
        found = context.node.image.topics.find_by_id(topic.topic_id)
        if found is None:
            # The handler says that there is no such topic.
            return True
        name = found.name
    return context.allows(_WRITE, name)


def _refuse_produce(
    ask: ProduceRequest, topics: Sequence[TopicProduceData], error_code: ErrorCode
) -> ProduceResponse:
    if ask.acks == 0:
        of_what = topics[0].name or str(topics[0].topic_id) if topics else "no topic"
        raise CloseConnection(
            "a producer with acks=0 gets no answer, so its connection is closed to report "
            f"{error_code.name} for {of_what}"
        )
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduceResponse(
                        partition_index=data.partition_index, error_code=error_code, base_offset=-1
                    )
                    for data in topic.partition_data
                ),
            )
            for topic in topics
        )
    )


@guards(ApiKey.DELETE_TOPICS)
def delete_topics(ask: DeleteTopicsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the cluster or for each topic. Its name, and that it does not exist, is for users who may
    describe it.
    """
    if context.may(on_cluster(Operation.DELETE), CLUSTER):
        return serve(ask)
    topics = context.node.image.topics

    def refuse(asked: DeleteTopicState | str) -> DeletableTopicResult | None:
        name = asked if isinstance(asked, str) else asked.name
        if name is not None:
            if context.allows(_DELETE, name):
                return None
            if topics.find(name) is None and context.may(_DESCRIBE, name):
                return _deletion_refused(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return _deletion_refused(name, ZERO_UUID)
        assert not isinstance(asked, str), "only newer versions ask by id"
        found = topics.find_by_id(asked.topic_id)
        if found is None or context.allows(_DELETE, found.name):
            return None
        is_known = context.may(_DESCRIBE, found.name)
        return _deletion_refused(found.name if is_known else None, asked.topic_id)

    field = "topics" if ask.topics else "topic_names"
    return sort_out(context, ask, serve, field, "responses", refuse, DeleteTopicsResponse)


def _deletion_refused(
    name: str | None, topic_id: Uuid, error_code: ErrorCode = _DENIED
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error_code, error_message=MESSAGES[error_code]
    )

"""The guard of OffsetFetch, whose groups and topics are lists inside each other and may be left out."""

from typing import Final, NamedTuple

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply, then
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.apis import ApiKey
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import offset_fetch as fetch_messages
from ottla.wire.messages.offset_fetch import (
    GROUP_ERROR_FROM,
    SEVERAL_GROUPS_FROM,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_DESCRIBE_GROUP, _DESCRIBE = on_group(Operation.DESCRIBE), on_topic(Operation.DESCRIBE)


@guards(ApiKey.OFFSET_FETCH)
def offset_fetch(ask: OffsetFetchRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each group, and for each of its topics. Topics that nobody named are left out."""
    if context.version < SEVERAL_GROUPS_FROM:
        return _fetch_of_one(ask, context, serve)
    # An entry is judged for itself: a group may be named twice, with topics and without.
    judged = [_judge(group, context) for group in ask.groups]
    allowed = tuple(entry.allowed for entry in judged if entry.allowed is not None)
    if not allowed:
        return OffsetFetchResponse(groups=tuple(entry.refusal for entry in judged))

    def put_together(response: OffsetFetchResponse) -> OffsetFetchResponse:
        served = iter(response.groups)
        return replace(
            response,
            groups=tuple(
                entry.refusal if entry.allowed is None else _with_hidden(next(served), entry, context)
                for entry in judged
            ),
        )

    return then(serve(replace(ask, groups=allowed)), put_together)


class _Judged(NamedTuple):
    """An entry of a request: what of it the client may ask for, and what it is refused."""

    allowed: OffsetFetchRequestGroup | None
    refusal: OffsetFetchResponseGroup


def _judge(group: OffsetFetchRequestGroup, context: RequestContext) -> _Judged:
    refusal = OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=_GROUP)
    if not context.allows(_DESCRIBE_GROUP, group.group_id):
        return _Judged(None, refusal)
    if group.topics is None:
        return _Judged(group, refusal)
    allowed: list[OffsetFetchRequestTopics] = []
    denied: list[OffsetFetchResponseTopics] = []
    for topic in group.topics:
        if _may_see(topic, context):
            allowed.append(topic)
        else:
            denied.append(_refused_topics(topic))
    return _Judged(replace(group, topics=tuple(allowed)), replace(refusal, topics=tuple(denied)))


def _with_hidden(
    group: OffsetFetchResponseGroup, judged: _Judged, context: RequestContext
) -> OffsetFetchResponseGroup:
    assert judged.allowed is not None, "who is refused a group is not served"
    assert group.group_id == judged.allowed.group_id, "groups are answered in the order of the request"
    if group.error_code is not ErrorCode.NONE:
        return group
    if judged.allowed.topics is not None:
        return replace(group, topics=(*group.topics, *judged.refusal.topics))
    return replace(
        group, topics=tuple(topic for topic in group.topics if _may_see(topic, context, is_named=False))
    )


def _may_see(
    topic: OffsetFetchRequestTopics | OffsetFetchResponseTopics,
    context: RequestContext,
    *,
    is_named: bool = True,
) -> bool:
    name = topic.name
    if context.version >= fetch_messages.TOPIC_IDS_FROM:
        found = context.node.image.topics.find_by_id(topic.topic_id)
        if found is None:
            return True
        name = found.name
    return context.allows(_DESCRIBE, name) if is_named else context.may(_DESCRIBE, name)


def _refused_topics(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=number, committed_offset=-1, metadata="", error_code=_TOPIC
            )
            for number in topic.partition_indexes
        ),
    )


def _fetch_of_one(ask: OffsetFetchRequest, context: RequestContext, serve: Serve) -> Reply:
    """The same for versions that ask about one group."""
    if not context.allows(_DESCRIBE_GROUP, ask.group_id):
        topics: tuple[OffsetFetchResponseTopic, ...] = ()
        if context.version < GROUP_ERROR_FROM:
            topics = tuple(_refused_topic(topic, _GROUP) for topic in ask.topics or ())
        return OffsetFetchResponse(error_code=_GROUP, topics=topics)
    if ask.topics is None:
        return then(
            serve(ask),
            lambda response: replace(
                response,
                topics=tuple(topic for topic in response.topics if context.may(_DESCRIBE, topic.name)),
            ),
        )
    hidden = tuple(
        _refused_topic(topic, _TOPIC) for topic in ask.topics if not context.allows(_DESCRIBE, topic.name)
    )
    if not hidden:
        return serve(ask)
    allowed = tuple(topic for topic in ask.topics if context.may(_DESCRIBE, topic.name))

    def put_together(response: OffsetFetchResponse) -> OffsetFetchResponse:
        if response.error_code is not ErrorCode.NONE:
            if context.version >= GROUP_ERROR_FROM:
                return response
            # The first version says what is wrong with a group for each partition.
            refusals = tuple(_refused_topic(topic, response.error_code) for topic in ask.topics or ())
            return replace(response, topics=refusals)
        return replace(response, topics=(*response.topics, *hidden))

    return then(serve(replace(ask, topics=allowed)), put_together)


def _refused_topic(topic: OffsetFetchRequestTopic, error_code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(
                partition_index=number, committed_offset=-1, metadata="", error_code=error_code
            )
            for number in topic.partition_indexes
        ),
    )

"""StreamsGroupDescribe: the state, the topology and the members of streams groups. Each stands for itself."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.group.streams.describe import refused_streams_description
from ottla.security.rights import Operation, ResourceType, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


@serves(
    StreamsGroupDescribeRequest,
    "0",
    on_group(Operation.DESCRIBE),
    on_topic(Operation.DESCRIBE),
    checked_by=CheckedBy.HANDLER,
    cuts=(Cut("group_ids", "groups"),),
)
def streams_group_describe(
    ask: StreamsGroupDescribeRequest, context: BrokerContext
) -> Deferred[StreamsGroupDescribeResponse]:
    """Describe every group that was asked for."""
    if not context.broker.groups.serves_streams_protocol:
        refused = (
            refused_streams_description(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in ask.group_ids
        )
        return Deferred.of(StreamsGroupDescribeResponse(groups=tuple(refused)))
    answers: list[Deferred[DescribedGroup]] = []
    for group_id in ask.group_ids:
        if not context.allows(on_group(Operation.DESCRIBE), group_id):
            refusal = refused_streams_description(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            answers.append(Deferred.of(refusal))
            continue
        answer: Deferred[DescribedGroup] = Deferred()
        context.broker.groups.coordinator.describe_streams_group(group_id, answer.resolve)
        if ask.include_authorized_operations:
            answer = answer.then(lambda group: _with_operations(group, context))
        answers.append(answer.then(lambda group: _without_hidden(group, context)))
    return gather(answers).then(lambda groups: StreamsGroupDescribeResponse(groups=tuple(groups)))


def _without_hidden(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    """Hide a group that uses topics which the client may not describe."""
    if all(context.may(on_topic(Operation.DESCRIBE), name) for name in _topic_names(group)):
        return group
    return refused_streams_description(
        group.group_id,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The described group uses topics that the client is not authorized to describe.",
    )


def _topic_names(group: DescribedGroup) -> set[str]:
    names: set[str] = set()
    for subtopology in () if group.topology is None else group.topology.subtopologies or ():
        names.update(subtopology.source_topics, subtopology.repartition_sink_topics)
        names.update(topic.name for topic in subtopology.repartition_source_topics)
        names.update(topic.name for topic in subtopology.state_changelog_topics)
    return names


def _with_operations(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=context.operations(ResourceType.GROUP, group.group_id))

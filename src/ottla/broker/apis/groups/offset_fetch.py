"""OffsetFetch: how far groups have read.

Up to version 7 a request is about one group. Version 1 has no place for an error of the whole group, so each
partition gets it. From version 10 on topics are named by id.
"""

from functools import partial

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.group.offsets.fetch import refused_fetch
from ottla.metadata.topics import Topics
from ottla.model.uuid import ZERO_UUID
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_fetch import (
    GROUP_ERROR_FROM,
    SEVERAL_GROUPS_FROM,
    TOPIC_IDS_FROM,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)


@serves(
    OffsetFetchRequest,
    "1-10",
    on_group(Operation.DESCRIBE),
    on_topic(Operation.DESCRIBE),
    checked_by=CheckedBy.GUARD,
    cuts=(
        Cut("groups.topics.partition_indexes", "groups.topics.partitions", at_once=250),
        Cut("topics.partition_indexes", "topics.partitions", at_once=250),
    ),
)
def offset_fetch(ask: OffsetFetchRequest, context: BrokerContext) -> Deferred[OffsetFetchResponse]:
    """Answer for every group on its own."""
    if context.version < SEVERAL_GROUPS_FROM:
        group = _as_group(ask)
        answer = _fetch(group, ask.require_stable, context)
        return answer.then(lambda found: _as_single(found, group, context.version))
    answers = [_fetch(group, ask.require_stable, context) for group in ask.groups]
    return gather(answers).then(lambda groups: OffsetFetchResponse(groups=tuple(groups)))


def _fetch(
    ask: OffsetFetchRequestGroup, require_stable: bool, context: BrokerContext
) -> Deferred[OffsetFetchResponseGroup]:
    groups, topics = context.broker.groups, context.broker.image.topics
    unknown: list[OffsetFetchResponseTopics] = []
    if context.version >= TOPIC_IDS_FROM and ask.topics is not None:
        ask, unknown = _with_names(ask, topics)
    answer: Deferred[OffsetFetchResponseGroup] = Deferred()

    def read(is_coordinator: bool) -> None:
        if is_coordinator:
            groups.coordinator.fetch_offsets(ask, require_stable, answer.resolve)
        else:
            answer.resolve(refused_fetch(ask.group_id, ErrorCode.NOT_COORDINATOR))

    groups.confirm(ask.group_id).when_done(read)
    if context.version < TOPIC_IDS_FROM:
        return answer
    return answer.then(partial(_with_ids, topics=topics, unknown=unknown))


def _with_names(
    ask: OffsetFetchRequestGroup, topics: Topics
) -> tuple[OffsetFetchRequestGroup, list[OffsetFetchResponseTopics]]:
    """Name the topics, and answer for those that nobody knows."""
    known: list[OffsetFetchRequestTopics] = []
    unknown: list[OffsetFetchResponseTopics] = []
    for asked in ask.topics or ():
        topic = topics.find_by_id(asked.topic_id)
        if topic is None:
            unknown.append(_unknown_topic(asked))
        else:
            known.append(replace(asked, name=topic.name))
    return replace(ask, topics=tuple(known)), unknown


def _unknown_topic(asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=asked.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=-1,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for index in asked.partition_indexes
        ),
    )


def _with_ids(
    answer: OffsetFetchResponseGroup, topics: Topics, unknown: list[OffsetFetchResponseTopics]
) -> OffsetFetchResponseGroup:
    """Give topics that were found by name their ids. One that is gone has none, and is left out."""
    if answer.error_code is not ErrorCode.NONE:
        return answer
    named = []
    for topic in answer.topics:
        topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else topics.names.get(topic.name)
        if topic_id is not None:
            named.append(replace(topic, topic_id=topic_id))
    return replace(answer, topics=(*named, *unknown))


def _as_group(ask: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if ask.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in ask.topics
        )
    return OffsetFetchRequestGroup(group_id=ask.group_id, topics=topics)


def _as_single(
    found: OffsetFetchResponseGroup, ask: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponse:
    topics = found.topics
    if found.error_code is not ErrorCode.NONE and version < GROUP_ERROR_FROM:
        topics = tuple(_refused_topic(topic, found.error_code) for topic in ask.topics or ())
    return OffsetFetchResponse(
        error_code=found.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=part.partition_index,
                        committed_offset=part.committed_offset,
                        committed_leader_epoch=part.committed_leader_epoch,
                        metadata=part.metadata,
                        error_code=part.error_code,
                    )
                    for part in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


def _refused_topic(topic: OffsetFetchRequestTopics, error_code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=error_code
            )
            for index in topic.partition_indexes
        ),
    )

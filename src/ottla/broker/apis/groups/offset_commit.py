"""OffsetCommit: a group writes down how far it has read. Answered when that is on disk.

Topics are named by name or, from version 10 on, by id. Partitions that do not exist are refused here, each
for itself; the others are for the group coordinator.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach, OfRequest
from ottla.broker.serving.handlers import serves
from ottla.broker.serving.lanes import Lanes
from ottla.metadata.topics import Topic
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import (
    TOPIC_IDS_FROM,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_new_tuple: Final = tuple.__new__


def _new_lanes(
    context: BrokerContext, answer_later: Callable[[Any], None], _fail: Callable[[Exception], None]
) -> Lanes:
    # Imported only here: most connections commit nothing.
    from ottla.broker.lanes.commit_lane import CommitLanes

    return CommitLanes(context, answer_later)


@serves(
    OffsetCommitRequest,
    "2-10",
    OfRequest(on_group(Operation.READ), "group_id"),
    OfEach(on_topic(Operation.READ), "topics.name", "topics"),
    has_short_answers=True,
    cuts=(Cut("topics.partitions", "topics.partitions", at_once=250),),
    element_bytes_min=12,
    new_lanes=_new_lanes,
)
def offset_commit(
    ask: OffsetCommitRequest, context: BrokerContext
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Sort out what does not exist, and let the group coordinator take the rest."""
    broker = context.broker
    topics = broker.image.topics
    by_id = context.version >= TOPIC_IDS_FROM
    known: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in ask.topics:
        found = topics.find_by_id(topic.topic_id) if by_id else topics.find(topic.name)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refused(topic, topic.partitions, code))
        else:
            _sort_out(topic, found, known, refused)
    if not known:
        return OffsetCommitResponse(topics=tuple(refused))
    answer: Deferred[OffsetCommitResponse] = Deferred()
    # The same request with other topics, which come last. Made as the tuple it is: a third of the time.
    *rest, _ = cast("tuple[object, ...]", ask)
    sorted_out = _new_tuple(OffsetCommitRequest, (*rest, tuple(known)))  # type: ignore[type-var]
    broker.groups.coordinator.commit_offsets(
        sorted_out, client_of(context), broker.clock.now_ms(), answer.resolve
    )
    return answer.then(lambda response: _merge(response, refused)) if refused else answer


def _sort_out(
    asked: OffsetCommitRequestTopic,
    found: Topic,
    known: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
) -> None:
    name, topic_id, partitions = found
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=asked.partitions)
    missing = [part for part in asked.partitions if part.partition_index not in partitions]
    if missing:
        present = tuple(part for part in asked.partitions if part.partition_index in partitions)
        topic = replace(topic, partitions=present)
        refused.append(_refused(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if topic.partitions:
        known.append(topic)


def _refused(
    topic: OffsetCommitRequestTopic,
    partitions: tuple[OffsetCommitRequestPartition, ...] | list[OffsetCommitRequestPartition],
    error_code: ErrorCode,
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error_code)
            for part in partitions
        ),
    )


def _merge(response: OffsetCommitResponse, refused: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    """Give the partitions of a topic one entry, those that were refused first."""
    taken = {(topic.name, topic.topic_id): topic for topic in response.topics}
    topics = []
    for topic in refused:
        also = taken.pop((topic.name, topic.topic_id), None)
        topics.append(
            topic if also is None else replace(topic, partitions=topic.partitions + also.partitions)
        )
    return OffsetCommitResponse(topics=(*topics, *taken.values()))

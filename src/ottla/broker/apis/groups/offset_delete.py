"""OffsetDelete: a group forgets offsets of topics that it does not read any more."""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach, OfRequest
from ottla.broker.serving.handlers import serves
from ottla.metadata.topics import Topic
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@serves(
    OffsetDeleteRequest,
    "0",
    OfRequest(on_group(Operation.DELETE), "group_id"),
    OfEach(on_topic(Operation.READ), "topics.name", "topics", is_request_checked=True),
    cuts=(Cut("topics.partitions", "topics.partitions"),),
)
def offset_delete(ask: OffsetDeleteRequest, context: BrokerContext) -> Deferred[OffsetDeleteResponse]:
    """Sort out what does not exist, and let the group coordinator delete the rest."""
    broker = context.broker
    known: list[OffsetDeleteRequestTopic] = []
    refused: list[OffsetDeleteResponseTopic] = []
    for topic in ask.topics:
        _sort_out(topic, broker.image.topics.find(topic.name), known, refused)
    answer: Deferred[OffsetDeleteResponse] = Deferred()
    broker.groups.coordinator.delete_offsets(
        replace(ask, topics=tuple(known)), client_of(context), broker.clock.now_ms(), answer.resolve
    )
    return answer.then(lambda response: _merge(response, refused)) if refused else answer


def _sort_out(
    asked: OffsetDeleteRequestTopic,
    found: Topic | None,
    known: list[OffsetDeleteRequestTopic],
    refused: list[OffsetDeleteResponseTopic],
) -> None:
    numbers = () if found is None else found.partitions
    missing = [part.partition_index for part in asked.partitions if part.partition_index not in numbers]
    present = tuple(part for part in asked.partitions if part.partition_index in numbers)
    if missing:
        refused.append(
            OffsetDeleteResponseTopic(
                name=asked.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                    for index in missing
                ),
            )
        )
    if present:
        known.append(replace(asked, partitions=present))


def _merge(response: OffsetDeleteResponse, refused: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    """Give the partitions of a topic one entry. An error of the whole group is the only answer then."""
    if response.error_code is not ErrorCode.NONE:
        return response
    taken = {topic.name: topic for topic in response.topics}
    topics = []
    for topic in refused:
        also = taken.pop(topic.name, None)
        topics.append(
            topic if also is None else replace(topic, partitions=topic.partitions + also.partitions)
        )
    return OffsetDeleteResponse(topics=(*topics, *taken.values()))

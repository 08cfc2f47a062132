"""The ends of partitions, wherever their leaders are: what the lag of a share group is counted from."""

from collections.abc import Sequence
from typing import Any, Final

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.share.sessions import TopicIdPartition
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

_LATEST: Final = -1

Found = dict[TopicIdPartition, int | ErrorCode]


def find_latest_offsets(wanted: Sequence[TopicIdPartition], context: BrokerContext) -> Deferred[Found]:
    """Return the high watermarks of partitions, or why they cannot be had."""
    broker = context.broker
    found: Found = {}
    elsewhere: dict[int, list[TopicIdPartition]] = {}
    for one in wanted:
        partition = broker.partitions.by_key.get(one)
        if partition is not None and partition.is_leader:
            found[one] = partition.log.high_watermark
            continue
        topic = broker.image.topics.find_by_id(one[0])
        record = None if topic is None else topic.partitions.get(one[1])
        if record is None:
            found[one] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif record.leader < 0 or record.leader == broker.node_id:
            found[one] = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            elsewhere.setdefault(record.leader, []).append(one)
    asked = [_ask(leader, some, context) for leader, some in elsewhere.items()]

    def put_together(parts: list[Found]) -> Found:
        for part in parts:
            found.update(part)
        return found

    return gather(asked).then(put_together)


def _ask(leader: int, wanted: list[TopicIdPartition], context: BrokerContext) -> Deferred[Found]:
    topics = context.broker.image.topics
    ids: dict[str, list[int]] = {}
    by_name = {}
    for topic_id, number in wanted:
        topic = topics.find_by_id(topic_id)
        assert topic is not None, "its leader was just looked up"
        ids.setdefault(topic.name, []).append(number)
        by_name[topic.name] = topic_id
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=tuple(
            ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    ListOffsetsPartition(partition_index=number, timestamp=_LATEST) for number in numbers
                ),
            )
            for name, numbers in ids.items()
        ),
    )
    answer: Deferred[Found] = Deferred()

    def answered(response: Any) -> None:
        found: Found = dict.fromkeys(wanted, ErrorCode.LEADER_NOT_AVAILABLE)
        if not isinstance(response, Unanswered):
            for topic in response.topics:
                for one in topic.partitions:
                    key = (by_name[topic.name], one.partition_index)
                    found[key] = one.offset if one.error_code is ErrorCode.NONE else one.error_code
        answer.resolve(found)

    context.broker.share_persister.ask(leader, request, answered)
    return answer

"""WriteTxnMarkers: a coordinator wants markers written, or who ends a hanging transaction by hand.

A marker without a producer id or without an epoch, for a partition that is there, spoils the request from
there on, as it does with Kafka: the markers before it are written, those after it are not, and all of them
are answered with UNKNOWN_SERVER_ERROR. Nobody but an operator with odd numbers asks for one.
"""

from typing import Final

from ottla.broker.coordinators.groups import TOPIC as GROUP_TOPIC
from ottla.broker.coordinators.markers import WrittenMarker, append_marker, when_markers_committed
from ottla.broker.coordinators.remote_markers import Marker
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.model.ids import TopicPartition
from ottla.security.rights import Operation, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Codes = dict[TopicPartition, ErrorCode]

_NOBODY: Final = -1


@serves(
    WriteTxnMarkersRequest,
    "1-2",
    OfRequest(on_cluster(Operation.CLUSTER_ACTION), unless=on_cluster(Operation.ALTER)),
    cuts=(Cut("markers.topics.partition_indexes", "markers.topics.partitions"),),
)
def write_txn_markers(
    ask: WriteTxnMarkersRequest, context: BrokerContext
) -> Deferred[WriteTxnMarkersResponse]:
    """Write all markers, and answer when they are on disk."""
    results: dict[int, Codes] = {}
    written: list[tuple[int, TopicPartition, WrittenMarker]] = []
    is_spoiled = False
    for marker in ask.markers:
        if _spoils(marker, context):
            is_spoiled = True
            break
        codes = results.setdefault(marker.producer_id, {})
        for topic_partition in _partitions(marker):
            outcome = append_marker(context.broker, topic_partition, _marker_of(marker))
            if isinstance(outcome, WrittenMarker):
                written.append((marker.producer_id, topic_partition, outcome))
                codes[topic_partition] = ErrorCode.NONE
            else:
                codes[topic_partition] = outcome
    answer: Deferred[WriteTxnMarkersResponse] = Deferred()

    def synced(failed: list[WrittenMarker]) -> None:
        if is_spoiled:
            answer.resolve(_answer(_all_failed(ask)))
            return
        for producer_id, topic_partition, one in written:
            if one in failed:
                results[producer_id][topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
        answer.resolve(_answer(results))

    when_markers_committed([one for _, _, one in written], synced)
    return answer


def _spoils(marker: WritableTxnMarker, context: BrokerContext) -> bool:
    """Say whether Kafka would fail to make a batch of this marker. For groups it makes it elsewhere."""
    if _NOBODY not in (marker.producer_id, marker.producer_epoch):
        return False
    find = context.broker.partitions.find
    return any(
        topic_partition.topic != GROUP_TOPIC
        and find(topic_partition.topic, topic_partition.partition) is not None
        for topic_partition in _partitions(marker)
    )


def _all_failed(ask: WriteTxnMarkersRequest) -> dict[int, Codes]:
    return {
        marker.producer_id: dict.fromkeys(_partitions(marker), ErrorCode.UNKNOWN_SERVER_ERROR)
        for marker in ask.markers
    }


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, number) for topic in marker.topics for number in topic.partition_indexes
    ]


def _marker_of(marker: WritableTxnMarker) -> Marker:
    return Marker(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


def _answer(results: dict[int, Codes]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(producer_id=producer_id, topics=_by_topic(codes))
            for producer_id, codes in results.items()
        )
    )


def _by_topic(codes: Codes) -> tuple[WritableTxnMarkerTopicResult, ...]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for topic_partition, code in codes.items():
        topics.setdefault(topic_partition.topic, []).append(
            WritableTxnMarkerPartitionResult(partition_index=topic_partition.partition, error_code=code)
        )
    return tuple(
        WritableTxnMarkerTopicResult(name=name, partitions=tuple(partitions))
        for name, partitions in topics.items()
    )

"""WriteTxnMarkers: a coordinator wants markers written, or who ends a hanging transaction by hand."""

from ottla.broker.context import RequestContext
from ottla.broker.coordinators.markers import Marker, WrittenMarker, append_marker, sync_markers
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.model.ids import TopicPartition
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


@handles(WriteTxnMarkersRequest)
def write_txn_markers(
    ask: WriteTxnMarkersRequest, context: RequestContext
) -> Deferred[WriteTxnMarkersResponse]:
    """Write all markers, and answer when they are on disk."""
    results: dict[int, Codes] = {}
    written: list[tuple[int, TopicPartition, WrittenMarker]] = []
    for marker in ask.markers:
        codes = results.setdefault(marker.producer_id, {})
        for where in _partitions(marker):
            outcome = append_marker(context.broker, where, _marker_of(marker))
            if isinstance(outcome, WrittenMarker):
                written.append((marker.producer_id, where, outcome))
                codes[where] = ErrorCode.NONE
            else:
                codes[where] = outcome
    answer: Deferred[WriteTxnMarkersResponse] = Deferred()

    def synced(failed: list[WrittenMarker]) -> None:
        for producer_id, where, one in written:
            if one in failed:
                results[producer_id][where] = ErrorCode.KAFKA_STORAGE_ERROR
        answer.resolve(_answer(results))

    sync_markers(context.broker, [one for _, _, one in written], synced)
    return answer


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
    for where, code in codes.items():
        topics.setdefault(where.topic, []).append(
            WritableTxnMarkerPartitionResult(partition_index=where.partition, error_code=code)
        )
    return tuple(
        WritableTxnMarkerTopicResult(name=name, partitions=tuple(partitions))
        for name, partitions in topics.items()
    )

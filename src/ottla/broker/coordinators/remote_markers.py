"""Transaction markers for partitions that other brokers lead: WriteTxnMarkers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.broker.coordinators.shared_requests import SharedRequests, Sharing
from ottla.model.ids import TopicPartition
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]


class Marker(NamedTuple):
    """How the transaction of a producer ended."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


class _Asked(NamedTuple):
    marker: Marker
    partitions: Sequence[TopicPartition]
    done: Callable[[Codes], None]


class RemoteMarkers:
    """The markers for all other brokers."""

    def __init__(self, peer: Callable[[int], Link]) -> None:
        """`peer` makes a connection to a broker."""
        self._requests: SharedRequests[_Asked] = SharedRequests(
            peer, Sharing(_producer_id, _request, _settle)
        )

    def write(
        self,
        broker_id: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        done: Callable[[Codes], None],
    ) -> None:
        """Have a broker write a marker to partitions that it leads. `done` gets what it says of each."""
        self._requests.add(broker_id, _Asked(marker, partitions, done))

    def close(self) -> None:
        """Stop. Those who wait get NETWORK_EXCEPTION."""
        self._requests.close()


def _producer_id(asked: _Asked) -> int:
    return asked.marker.producer_id


def _request(asked: Sequence[_Asked]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=tuple(map(_writable, asked)))


def _settle(_broker_id: int, sent: Sequence[_Asked], response: Any) -> None:
    codes = {} if isinstance(response, Unanswered) else _codes(response)
    for asked in sent:
        told = codes.get(asked.marker.producer_id, {})
        asked.done({one: told.get(one, ErrorCode.NETWORK_EXCEPTION) for one in asked.partitions})


def _writable(asked: _Asked) -> WritableTxnMarker:
    marker = asked.marker
    topics: dict[str, list[int]] = {}
    for one in asked.partitions:
        topics.setdefault(one.topic, []).append(one.partition)
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=tuple(numbers))
            for name, numbers in topics.items()
        ),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    return {
        marker.producer_id: {
            TopicPartition(topic.name, result.partition_index): result.error_code
            for topic in marker.topics
            for result in topic.partitions
        }
        for marker in response.markers
    }

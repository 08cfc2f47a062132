"""Transaction markers for partitions that other brokers lead: WriteTxnMarkers.

To each broker one request is under way at a time. What comes meanwhile shares the next: a busy coordinator
sends few requests with many markers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.broker.replication.broker_peer import BrokerPeer, Unanswered
from ottla.model.ids import TopicPartition
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


class _Queue:
    """The markers for one broker."""

    def __init__(self, peer: BrokerPeer) -> None:
        self._peer = peer
        self._waiting: list[_Asked] = []
        self._is_asking = False

    def add(self, asked: _Asked) -> None:
        self._waiting.append(asked)
        if not self._is_asking:
            self._send()

    def close(self) -> None:
        self._peer.close()

    def _send(self) -> None:
        sent: dict[int, _Asked] = {}
        later: list[_Asked] = []
        for asked in self._waiting:
            # An answer names producers, so each may be there once.
            if asked.marker.producer_id in sent:
                later.append(asked)
            else:
                sent[asked.marker.producer_id] = asked
        self._waiting = later
        self._is_asking = True

        def answered(response: Any) -> None:
            self._is_asking = False
            codes = {} if isinstance(response, Unanswered) else _codes(response)
            for producer_id, asked in sent.items():
                told = codes.get(producer_id, {})
                asked.done({one: told.get(one, ErrorCode.NETWORK_EXCEPTION) for one in asked.partitions})
            if self._waiting and not self._is_asking:
                self._send()

        self._peer.ask(WriteTxnMarkersRequest(markers=tuple(map(_writable, sent.values()))), answered)


class RemoteMarkers:
    """The markers for all other brokers."""

    def __init__(self, peer: Callable[[int], BrokerPeer]) -> None:
        """`peer` makes a connection to a broker."""
        self._peer = peer
        self._queues: dict[int, _Queue] = {}

    def write(
        self,
        broker_id: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        done: Callable[[Codes], None],
    ) -> None:
        """Have a broker write a marker to partitions that it leads. `done` gets what it says of each."""
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(self._peer(broker_id))
        queue.add(_Asked(marker, partitions, done))

    def close(self) -> None:
        """Stop."""
        queues, self._queues = self._queues, {}
        for queue in queues.values():
            queue.close()


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

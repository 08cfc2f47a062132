"""Markers for other brokers share requests, and whatever is not answered is reported as such."""

from typing import Any

from ottla.broker.coordinators.remote_markers import Marker, RemoteMarkers
from ottla.model.ids import TopicPartition
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

A, B = TopicPartition("a", 0), TopicPartition("b", 3)


class Peer:
    """A broker that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[WriteTxnMarkersRequest, Any]] = []
        self.is_closed = False

    def ask(self, request: Any, answered: Any) -> None:
        self.asked.append((request, answered))

    def close(self) -> None:
        self.is_closed = True

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> WriteTxnMarkersRequest:
        request, answered = self.asked.pop(0)
        results = [
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=number, error_code=code)
                            for number in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        ]
        answered(WriteTxnMarkersResponse(markers=tuple(results)))
        return request


def marker(producer_id: int) -> Marker:
    return Marker(producer_id, 4, True, 7, 2)


def test_markers_that_come_while_one_is_under_way_share_the_next_request() -> None:
    peer = Peer()
    remote = RemoteMarkers(lambda _broker: peer)  # type: ignore[arg-type, return-value]
    told: list[Any] = []
    for producer_id in (1, 2, 3):
        remote.write(2, marker(producer_id), (A, B), told.append)
    assert len(peer.asked) == 1
    first = peer.answer()
    assert [one.producer_id for one in first.markers] == [1]
    assert (first.markers[0].coordinator_epoch, first.markers[0].transaction_version) == (7, 2)
    assert [one.producer_id for one in peer.answer().markers] == [2, 3]
    assert told == [{A: ErrorCode.NONE, B: ErrorCode.NONE}] * 3


def test_a_producer_is_named_once_in_a_request() -> None:
    peer = Peer()
    remote = RemoteMarkers(lambda _broker: peer)  # type: ignore[arg-type, return-value]
    told: list[Any] = []
    for partition in (A, A, B):
        remote.write(2, marker(1), (partition,), told.append)
    for _ in range(3):
        assert len(peer.answer().markers) == 1
    assert len(told) == 3


def test_what_is_not_answered_is_said_to_be_so() -> None:
    peer = Peer()
    remote = RemoteMarkers(lambda _broker: peer)  # type: ignore[arg-type, return-value]
    told: list[Any] = []
    remote.write(2, marker(1), (A,), told.append)
    peer.asked[0][1](Unanswered("it is gone"))
    remote.write(2, marker(1), (A,), told.append)
    peer.asked[1][1](WriteTxnMarkersResponse(markers=()))
    assert told == [{A: ErrorCode.NETWORK_EXCEPTION}] * 2
    remote.close()
    assert peer.is_closed

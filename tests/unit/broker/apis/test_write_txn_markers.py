"""WriteTxnMarkers, as the node serves it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.deciding import new_topic
from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

LATEST = -1


def log_end(client: InProcessClient) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    ask = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(partition,)),), timeout_ms=0
    )
    offset: int = client.ask(ask).topics[0].partitions[0].offset
    return offset


def marker_of(producer_id: int, producer_epoch: int = 0, partition: int = 0) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(partition,)),),
        coordinator_epoch=0,
    )


def write(client: InProcessClient, *markers: WritableTxnMarker) -> list[tuple[int, ErrorCode]]:
    answer = client.ask(WriteTxnMarkersRequest(markers=markers))
    return [(one.producer_id, one.topics[0].partitions[0].error_code) for one in answer.markers]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InProcessClient]:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        client.ask(CreateTopicsRequest(topics=(new_topic("t", 1, 1),)))
        yield client


@pytest.mark.parametrize(
    ("producer_id", "expected", "written"),
    [
        (0, ErrorCode.NONE, 1),
        (-1, ErrorCode.UNKNOWN_SERVER_ERROR, 0),
        (-5, ErrorCode.INVALID_PRODUCER_ID_MAPPING, 0),
    ],
)
def test_a_marker_of_no_producer_is_not_written(
    client: InProcessClient, producer_id: int, expected: ErrorCode, written: int
) -> None:
    assert write(client, marker_of(producer_id)) == [(producer_id, expected)]
    assert log_end(client) == written


@pytest.mark.parametrize("nobody", [marker_of(-1), marker_of(7, producer_epoch=-1)])
def test_a_marker_of_nobody_spoils_those_after_it(client: InProcessClient, nobody: WritableTxnMarker) -> None:
    codes = write(client, marker_of(1), nobody, marker_of(2), marker_of(3))
    assert codes == [
        (producer_id, ErrorCode.UNKNOWN_SERVER_ERROR) for producer_id in (1, nobody.producer_id, 2, 3)
    ]
    assert log_end(client) == 1


def test_a_marker_of_nobody_for_nothing_spoils_nothing(client: InProcessClient) -> None:
    assert write(client, marker_of(-1, partition=9), marker_of(2)) == [
        (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, ErrorCode.NONE),
    ]
    assert log_end(client) == 1

"""WriteTxnMarkers, as the node serves it."""

from pathlib import Path

import pytest
from tests.deciding import new_topic
from tests.in_process import InProcessClient, in_process_node

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


@pytest.mark.parametrize(
    ("producer_id", "expected", "written"),
    [
        (0, ErrorCode.NONE, 1),
        (-1, ErrorCode.INVALID_PRODUCER_ID_MAPPING, 0),
        (-5, ErrorCode.INVALID_PRODUCER_ID_MAPPING, 0),
    ],
)
def test_a_marker_of_no_producer_is_not_written(
    tmp_path: Path, producer_id: int, expected: ErrorCode, written: int
) -> None:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=0,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),),
        coordinator_epoch=0,
    )
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        client.ask(CreateTopicsRequest(topics=(new_topic("t", 1, 1),)))
        (answer,) = client.ask(WriteTxnMarkersRequest(markers=(marker,))).markers
        assert answer.topics[0].partitions[0].error_code is expected
        assert log_end(client) == written

"""AddOffsetsToTxn, as the node serves it."""

from pathlib import Path

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

TRANSACTION = 1


def new_producer(client: InProcessClient) -> InitProducerIdResponse:
    client.ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=("t",)))
    ask = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    answer: InitProducerIdResponse = client.ask(ask)
    assert answer.error_code is ErrorCode.NONE
    return answer


def add_offsets(client: InProcessClient, producer_id: int, version: int) -> ErrorCode:
    ask = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=producer_id, producer_epoch=0, group_id="g"
    )
    code: ErrorCode = client.ask(ask, version).error_code
    return code


@pytest.mark.parametrize("version", range(5))
def test_the_first_word_of_any_group_may_be_part_of_a_transaction(tmp_path: Path, version: int) -> None:
    with in_process_node(tmp_path, {"offsets.topic.num.partitions": "3"}) as node:
        client = InProcessClient(node)
        producer = new_producer(client)
        assert add_offsets(client, producer.producer_id, version) is ErrorCode.NONE
        (told,) = client.ask(DescribeTransactionsRequest(transactional_ids=("t",))).transaction_states
        ((topic, partitions),) = ((one.topic, tuple(one.partitions)) for one in told.topics)
        assert (told.transaction_state, topic) == ("Ongoing", "__consumer_offsets")
        assert len(partitions) == 1


def test_a_stranger_is_refused_though_no_group_is_known_yet(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        producer = new_producer(client)
        assert add_offsets(client, producer.producer_id + 1, 4) is ErrorCode.INVALID_PRODUCER_ID_MAPPING

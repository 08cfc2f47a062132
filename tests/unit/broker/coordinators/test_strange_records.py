"""Records that a coordinator did not write: it loads past what it cannot read, and serves what it can."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import create_topic, produce_request
from tests.support.group_requests import commit_request, fetch_request
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving.dispatch import PENDING
from ottla.coordination.runtime.shard import ShardStatus
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.builder import build_batch
from ottla.storage.read import ReadLimit
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.coordinator_records.framing import (
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    CoordinatorRecords,
)
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request
from ottla.wire.layout import Field, layout_of
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest

ADMIN = "__admin_client"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "ottla.acks.all.sync": "false",
}
WRITABLE = {**SETTINGS, "ottla.internal.topics.writable": "true"}
NUMBERS = (-(2**15), -2, -1, 0, 1, 5, 2**15 - 1000)
WIDE = {
    "int8": (-128, -1, 0, 1, 2, 3, 4, 5, 6, 99, 127),
    "int16": NUMBERS,
    "uint16": (0, 1, 65_535),
    "int32": (*NUMBERS, -(2**31), 2**31 - 1000),
    "uint32": (0, 1, 2**32 - 1),
    "int64": (*NUMBERS, -(2**63), 2**63 - 1000),
}


def any_message(cls: type[Any], version: int, chance: random.Random) -> Any:
    """Return a message that can be encoded, whatever it may mean."""
    return tuple.__new__(
        cls,
        [
            any_value(field, version, chance) if version in field.versions else field.default
            for field in layout_of(cls)
        ],
    )


def any_value(field: Field, version: int, chance: random.Random) -> Any:
    if version in field.nullable and chance.random() < 0.2:
        return None
    if field.is_array:
        return tuple(any_element(field, version, chance) for _ in range(chance.randrange(3)))
    return any_element(field, version, chance)


def any_element(field: Field, version: int, chance: random.Random) -> Any:
    if field.struct is not None:
        return any_message(field.struct, version, chance)
    if field.kind in WIDE:
        return chance.choice(WIDE[field.kind])
    others: dict[str, tuple[Any, ...]] = {
        "bool": (True, False),
        "string": ("", "one", "two", "consumer", "range", "[", "x" * 300),
        "bytes": (b"", b"\0", b"\0\1\0\0\0\1\0\3one", b"\xff" * 20),
        "uuid": (Uuid(bytes(16)), Uuid(b"\1" * 16)),
        "float64": (0.0, -1.5),
    }
    return chance.choice(others[field.kind])


def any_record(kinds: CoordinatorRecords, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Return a key and a value: of a known kind with odd contents, damaged, or mere garbage."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(1, 12)), chance.randbytes(chance.randrange(20))
    key_class, value_class = chance.choice(list(kinds.kinds.values()))
    key = kinds.encode_key(any_message(key_class, 0, chance))
    if chance.random() < 0.1:
        return key, None
    version = chance.choice(list(spec_of(value_class).versions.all))
    value = bytearray(kinds.encode_value(any_message(value_class, version, chance), version))
    if chance.random() < 0.3:
        value[chance.randrange(len(value))] = chance.randrange(256)
    if chance.random() < 0.2:
        del value[chance.randrange(len(value)) :]
    return key, bytes(value)


def write(client: InProcessClient, topic: str, *records: tuple[bytes, bytes | None]) -> ErrorCode:
    now_ms = 1_790_000_000_000
    batch = build_batch([(number, now_ms, key, value, ()) for number, (key, value) in enumerate(records)])
    answer = client.ask(produce_request(topic, batch), 9, ADMIN)
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


def make_coordinators(node: Node, client: InProcessClient) -> None:
    """Have both coordinators' topics, with something in them."""
    create_topic(client, "orders")
    for key_type, key in enumerate(("good", "good-id")):
        client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,)))
    load(node)
    answer = client.ask(commit_request("good", {0: 5}), 8)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


def load(node: Node) -> None:
    """Let all shards be loaded."""
    for coordinator in (node.broker.groups.coordinator, node.broker.transactions.coordinator):
        while not coordinator.shards.partition_count or any(
            shard.status is ShardStatus.LOADING for shard in coordinator.shards
        ):
            loop_of(node).run_until_complete(asyncio.sleep(0))


def test_a_client_id_is_not_enough_to_write_to_a_coordinators_topic(tmp_path: Path) -> None:
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        make_coordinators(node, client)
        for topic in ("__consumer_offsets", "__transaction_state"):
            assert write(client, topic, (b"\0\1", b"")) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_what_a_coordinator_holds_back_is_written_before_a_strangers_batch(tmp_path: Path) -> None:
    with in_process_node(tmp_path, WRITABLE) as node:
        client, committer = InProcessClient(node), InProcessClient(node)
        make_coordinators(node, client)
        partition = node.broker.partitions.find("__consumer_offsets", 0)
        assert partition is not None
        end = partition.log.log_end_offset
        commit = encode_request(commit_request("good", {0: 6}), api_of(ApiKey.OFFSET_COMMIT), 8, 1, "test")
        assert committer.session.receive(memoryview(bytearray(commit))[4:]) is PENDING
        assert partition.log.log_end_offset == end, "it is held back until the turn ends"
        assert write(client, "__consumer_offsets", (b"a stranger's", b"record")) is ErrorCode.NONE
        data = partition.log.read(end, 1 << 20, ReadLimit.LOG_END).read()
        first, second = iter_batches(memoryview(data))
        assert b"good" in bytes(first.records_bytes)
        assert b"a stranger's" in bytes(second.records_bytes)


@pytest.mark.parametrize("seed", range(10))
def test_a_coordinator_serves_whatever_was_written_to_its_topic(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    with in_process_node(tmp_path, WRITABLE) as node:
        client = InProcessClient(node)
        make_coordinators(node, client)
        for kinds in (GROUP_RECORDS, TRANSACTION_RECORDS):
            for _ in range(20):
                records = [any_record(kinds, chance) for _ in range(chance.randrange(1, 10))]
                assert write(client, kinds.topic, *records) is ErrorCode.NONE
    caplog.clear()
    with in_process_node(tmp_path, WRITABLE) as node:
        client = InProcessClient(node)
        load(node)
        ask_everything(node, client)
    assert "skipped a record that cannot be loaded" in caplog.text
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def ask_everything(node: Node, client: InProcessClient) -> None:
    for coordinator in (node.broker.groups.coordinator, node.broker.transactions.coordinator):
        assert [shard.status for shard in coordinator.shards] == [ShardStatus.ACTIVE]
    (group,) = client.ask(fetch_request("good", topics={"orders": (0,)}), 9).groups
    assert group.topics[0].partitions[0].committed_offset == 5
    groups = [group.group_id for group in client.ask(ListGroupsRequest()).groups]
    client.ask(DescribeGroupsRequest(groups=tuple(groups)))
    client.ask(ConsumerGroupDescribeRequest(group_ids=tuple(groups), include_authorized_operations=False))
    for group_id in groups:
        client.ask(fetch_request(group_id), 9)
    ids = [
        one.transactional_id
        for one in client.ask(
            ListTransactionsRequest(state_filters=(), producer_id_filters=())
        ).transaction_states
    ]
    client.ask(DescribeTransactionsRequest(transactional_ids=tuple(ids)))
    request = InitProducerIdRequest(transactional_id="good-id", transaction_timeout_ms=10_000)
    assert client.ask(request).error_code is ErrorCode.NONE
    for transactional_id in ids:
        client.ask(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=10_000))

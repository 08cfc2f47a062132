"""Topics that check schemas take only records that name one of their subject, and read the registry first."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lifecycle.startup import Node
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.schemas.stored.records import schema_record, schema_tombstone
from ottla.schemas.stored.values import StoredSchema
from ottla.schemas.wire_format import KEY_HEADER, VALUE_HEADER, encode_guid, encode_prefix
from ottla.storage.appending.validation import OPENED_AT_ONCE_BYTES
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.produce import PartitionProduceResponse

ORDERS = StoredSchema("orders-value", 1, 7, "AVRO", '"string"')
ELSEWHERE = StoredSchema("other-value", 1, 8, "AVRO", '"int"')
LARGE = b"v" * (OPENED_AT_ONCE_BYTES + 1)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InProcessClient]:
    with in_process_node(tmp_path) as node:
        yield _client(node)


def _client(node: Node) -> InProcessClient:
    client = InProcessClient(node)
    create_topic(client, "orders", 1, {"ottla.value.schema.validation": "true"})
    create_topic(client, "keyed", 1, {"ottla.key.schema.validation": "true"})
    return client


def _register(client: InProcessClient, *schemas: StoredSchema) -> None:
    _write(client, *(schema_record(schema) for schema in schemas))


def _write(client: InProcessClient, *records: tuple[bytes, bytes | None]) -> None:
    for key, value in records:
        answer = produce(client, "_schemas", build_batch([Record(0, 0, key, value)]))
        assert answer.error_code is ErrorCode.NONE


def _send(client: InProcessClient, *values: bytes, codec: Codec = Codec.NONE) -> PartitionProduceResponse:
    return produce(client, "orders", batch_of(*values, codec=codec))


def test_records_of_the_subject_are_taken_and_others_refused(client: InProcessClient) -> None:
    create_topic(client, "_schemas", 1, {"cleanup.policy": "compact"})
    _register(client, ORDERS, ELSEWHERE)
    good = encode_prefix(7) + b"x"
    assert _send(client, good, good).error_code is ErrorCode.NONE
    for bad in (encode_prefix(8) + b"x", encode_prefix(9), b"bare", b"", b"\x00\x00", encode_prefix(-1)):
        answer = _send(client, good, bad, bad)
        assert answer.error_code is ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [1]
        assert "'orders-value'" in (answer.error_message or "")
    assert fetch_all(client, "orders") == [good, good]


def test_a_schema_that_was_registered_just_now_is_known(client: InProcessClient) -> None:
    value = encode_prefix(7) + b"x"
    # There is no registry yet.
    assert _send(client, value).error_code is ErrorCode.INVALID_RECORD
    create_topic(client, "_schemas", 1, {"cleanup.policy": "compact"})
    assert _send(client, value).error_code is ErrorCode.INVALID_RECORD
    _register(client, ORDERS)
    assert _send(client, value).error_code is ErrorCode.NONE


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_large_and_compressed_batches_are_checked_too(client: InProcessClient, codec: Codec) -> None:
    create_topic(client, "_schemas", 1)
    _register(client, ORDERS)
    assert _send(client, encode_prefix(7) + LARGE, codec=codec).error_code is ErrorCode.NONE
    assert _send(client, LARGE, codec=codec).error_code is ErrorCode.INVALID_RECORD


def test_a_guid_in_a_header_names_a_schema_too(client: InProcessClient) -> None:
    create_topic(client, "_schemas", 1)
    _register(client, ORDERS, ELSEWHERE)
    codes = [
        produce(client, "orders", build_batch([Record(0, 0, None, b"bare", ((name, header),))])).error_code
        for name, header in (
            (VALUE_HEADER, encode_guid(ORDERS.guid)),
            (VALUE_HEADER, encode_guid(ELSEWHERE.guid)),
            (VALUE_HEADER, b"\x01short"),
            (KEY_HEADER, encode_guid(ORDERS.guid)),
        )
    ]
    assert codes == [ErrorCode.NONE, *[ErrorCode.INVALID_RECORD] * 3]


def test_nulls_and_the_other_part_are_not_looked_at(client: InProcessClient) -> None:
    create_topic(client, "_schemas", 1)
    _register(client, StoredSchema("keyed-key", 1, 3, "AVRO", '"string"'))
    for key, value, code in (
        (encode_prefix(3) + b"k", b"anything", ErrorCode.NONE),
        (None, b"anything", ErrorCode.NONE),
        (b"bare", b"anything", ErrorCode.INVALID_RECORD),
    ):
        assert produce(client, "keyed", build_batch([Record(0, 0, key, value)])).error_code is code
    assert produce(client, "orders", build_batch([Record(0, 0, b"k", None)])).error_code is ErrorCode.NONE


def test_what_was_deleted_for_good_is_refused_and_what_was_only_deleted_is_not(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.produce.registered_schemas.FRESH_MS", 0)
    create_topic(client, "_schemas", 1)
    _register(client, ORDERS)
    value = encode_prefix(7) + b"x"
    assert _send(client, value).error_code is ErrorCode.NONE
    _register(client, StoredSchema("orders-value", 1, 7, "AVRO", '"string"', is_deleted=True))
    assert _send(client, value).error_code is ErrorCode.NONE
    _write(client, schema_tombstone("orders-value", 1))
    # It is noticed while batches go on.
    for _ in range(100):
        if _send(client, value).error_code is ErrorCode.INVALID_RECORD:
            break
    else:
        pytest.fail("the schema is gone, and records that name it are still taken")


def test_the_topic_of_the_registry_may_be_created_again(client: InProcessClient) -> None:
    create_topic(client, "_schemas", 1)
    _register(client, ELSEWHERE, ORDERS)
    assert _send(client, encode_prefix(7)).error_code is ErrorCode.NONE
    client.ask(DeleteTopicsRequest(topic_names=("_schemas",), timeout_ms=30_000), 5)
    create_topic(client, "_schemas", 1)
    _register(client, StoredSchema("orders-value", 1, 5, "AVRO", '"long"'))
    assert _send(client, encode_prefix(5)).error_code is ErrorCode.NONE
    assert _send(client, encode_prefix(7)).error_code is ErrorCode.INVALID_RECORD


def test_many_batches_may_wait_for_the_registry(client: InProcessClient) -> None:
    """They are appended in a loop: a call for each would not have room for a thousand."""
    create_topic(client, "_schemas", 1)
    _register(client, ORDERS)
    broker = client.context.broker
    partition = broker.partitions.find("orders", 0)
    assert partition is not None
    appended = [
        broker.openings.append(partition, memoryview(batch_of(encode_prefix(7))), None) for _ in range(2000)
    ]
    assert not appended[-1].is_done
    assert _send(client, encode_prefix(7)).base_offset == 2000
    assert [one.value().first_offset for one in appended] == list(range(2000))

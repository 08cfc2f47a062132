"""Batches of columns are compressed as the settings say, and sent to brokers that know the codec."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.errors import UnsupportedByBroker
from ottla.client.producer.settings import ProducerSettings
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.producer import ColumnProducer
from ottla.pipelines.sink.rows import OutgoingRows
from ottla.records.batch import BatchView
from ottla.records.batch_records import iter_batch_records
from ottla.wire.messages.produce import ZSTD_FROM

ORDERS = TopicPartition("orders", 0)


def make_producer(properties: dict[str, str]) -> ColumnProducer:
    cluster: Any = SimpleNamespace()
    settings = ProducerSettings.of(
        {"bootstrap.servers": "127.0.0.1:1", "enable.idempotence": "false", **properties}
    )
    return ColumnProducer(cluster, settings, lambda: 1)


def encoded_bytes(properties: dict[str, str]) -> int:
    values = [b"payment %d of %d" % (number, number * number) for number in range(2_000)]
    column = pa.array(values, pa.binary())
    rows = OutgoingRows(pa.nulls(len(values), pa.binary()), column, None, None, None)
    return len(make_producer(properties)._encode_batch(ORDERS, rows, 0, len(rows)))


@pytest.mark.parametrize(
    ("codec", "low", "high"), [("gzip", "1", "9"), ("zstd", "-50", "15"), ("lz4", "1", "12")]
)
def test_the_level_of_compression_is_that_of_the_settings(codec: str, low: str, high: str) -> None:
    sizes = [
        encoded_bytes({"compression.type": codec, f"compression.{codec}.level": level})
        for level in (low, high)
    ]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(("batch_size", "counts"), [(1, [1, 1, 1, 1, 1]), (300, [2, 2, 1]), (1_000_000, [5])])
def test_each_batch_is_as_large_as_the_settings_allow(batch_size: int, counts: list[int]) -> None:
    column = pa.array([b"%d" % number * 100 for number in range(5)], pa.binary())
    rows = OutgoingRows(pa.nulls(5, pa.binary()), column, None, None, None)
    producer = make_producer({"batch.size": str(batch_size)})
    batches = [BatchView(memoryview(each.content)) for each in producer._encode(ORDERS, rows)]
    assert [batch.count for batch in batches] == counts
    values = [record.value for batch in batches for record in iter_batch_records(batch)]
    assert values == column.to_pylist()


def test_a_broker_too_old_for_zstd_is_refused_before_anything_is_sent() -> None:
    connection: Any = SimpleNamespace(
        version_for=lambda _request, _at_most: ZSTD_FROM - 1, address="old:9092"
    )
    producer = make_producer({"compression.type": "zstd"})
    with pytest.raises(UnsupportedByBroker, match=r"old:9092 is too old for zstd"):
        producer._requests.version_for(connection)

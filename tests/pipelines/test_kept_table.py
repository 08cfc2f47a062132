"""A table that a worker keeps is, at each look, what somebody who reads the whole topic would find."""

from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.pipelines.records import create_topic, produce
from tests.support.ottla_node import OttlaNode

from ottla.pipelines.link import Link
from ottla.pipelines.source.options import parse_source_options
from ottla.pipelines.source.read import read_rows
from ottla.pipelines.source.table import KeptTable, count_records

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)


def table_of(node: OttlaNode, topic: str) -> KeptTable:
    return KeptTable(options_of(node, topic), SCHEMA)


def options_of(node: OttlaNode, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": node.bootstrap, "kafka.isolation.level": "read_committed"}
    return parse_source_options({**options, "subscribe": topic}, is_streaming=False)


def content(table: KeptTable, link: Link) -> dict[bytes, bytes]:
    rows = table.read(link).to_pylist()
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: row["value"] for row in rows}


def test_table_has_the_latest_value_of_each_key_and_no_tombstones(node: OttlaNode, link: Link) -> None:
    create_topic(node.bootstrap, "kept", 2)
    table = table_of(node, "kept")
    assert content(table, link) == {}
    produce(node.bootstrap, "kept", [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")])
    assert content(table, link) == {b"a": b"2", b"b": b"1"}
    produce(node.bootstrap, "kept", [(b"b", None), (b"c", b"3")])
    assert content(table, link) == {b"a": b"2", b"c": b"3"}
    produce(node.bootstrap, "kept", [(b"b", b"back")])
    assert content(table, link) == {b"a": b"2", b"b": b"back", b"c": b"3"}
    assert count_records(link, options_of(node, "kept")) == 6


def test_later_in_time_wins_wherever_it_lies(node: OttlaNode, link: Link) -> None:
    create_topic(node.bootstrap, "kept-times", 2)
    produce(node.bootstrap, "kept-times", [(b"k", b"late")], partition=0, timestamp=2000)
    produce(node.bootstrap, "kept-times", [(b"k", b"early")], partition=1, timestamp=1000)
    table = table_of(node, "kept-times")
    assert content(table, link) == {b"k": b"late"}
    produce(node.bootstrap, "kept-times", [(b"k", b"last")], partition=1, timestamp=3000)
    assert content(table, link) == {b"k": b"last"}


def test_only_what_is_new_is_read_again(node: OttlaNode, link: Link, monkeypatch: Any) -> None:
    create_topic(node.bootstrap, "kept-once", 1)
    produce(node.bootstrap, "kept-once", [(b"%d" % number, b"x") for number in range(50)])
    read: list[tuple[int, int]] = []

    def noting(link: Link, piece: Any, *more: Any) -> Any:
        read.append((piece.start_offset, piece.stop_offset))
        return read_rows(link, piece, *more)

    monkeypatch.setattr("ottla.pipelines.source.table.read_rows", noting)
    table = table_of(node, "kept-once")
    first = table.read(link)
    assert table.read(link) is first
    produce(node.bootstrap, "kept-once", [(b"0", b"y")])
    table.read(link)
    assert read == [(0, 50), (50, 51)]


def test_what_was_deleted_is_forgotten(node: OttlaNode, link: Link) -> None:
    create_topic(node.bootstrap, "kept-deleted", 1)
    produce(node.bootstrap, "kept-deleted", [(b"a", b"1"), (b"b", b"1")])
    table = table_of(node, "kept-deleted")
    assert len(content(table, link)) == 2
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for future in admin.delete_records([TopicPartition("kept-deleted", 0, 1)]).values():
        future.result(30)
    assert content(table, link) == {b"b": b"1"}


def test_topic_that_was_made_again_is_read_again(node: OttlaNode, link: Link) -> None:
    create_topic(node.bootstrap, "kept-remade", 1)
    produce(node.bootstrap, "kept-remade", [(b"a", b"1"), (b"b", b"1")])
    table = table_of(node, "kept-remade")
    assert len(content(table, link)) == 2
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics(["kept-remade"])["kept-remade"].result(30)
    create_topic(node.bootstrap, "kept-remade", 1)
    produce(node.bootstrap, "kept-remade", [(b"c", b"1"), (b"d", b"1"), (b"e", b"1")])
    assert content(table, link) == {b"c": b"1", b"d": b"1", b"e": b"1"}

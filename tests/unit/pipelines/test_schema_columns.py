"""Columns with schemas: what goes out comes back, and what cannot be read is marked alone."""

import datetime
import decimal
import io
import json
from functools import cache
from types import TracebackType
from typing import Any, ClassVar, Self

import fastavro
import pyarrow as pa
import pytest

from ottla.client.registry.client import Registered, RegistryRefused
from ottla.pipelines.columns import encoded_values, values
from ottla.pipelines.columns.encoded_values import Unregistered, avro_schema, make_encoder, register_columns
from ottla.pipelines.columns.values import ValueSource, decode_values, find_source, value_type
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsing import parse_schema
from ottla.schemas.wire_format import encode_prefix


class Registry:
    """A registry in memory. `RegistryClient` makes one of each URL."""

    schemas: ClassVar[dict[int, Registered]] = {}
    asked: ClassVar[list[int]] = []
    refuses: ClassVar[bool] = False

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        pass

    def parse(self, found: Registered) -> Any:
        return parse_schema(found.schema_type, found.text, (), {})

    def by_id(self, schema_id: int, _subject: str | None = None) -> Registered:
        self.asked.append(schema_id)
        if schema_id not in self.schemas:
            raise RegistryRefused(40403, "Schema not found")
        return self.schemas[schema_id]

    def latest(self, subject: str) -> Registered:
        found = [item for item in self.schemas.values() if item.subject == subject]
        if not found:
            raise RegistryRefused(40401, "Subject not found")
        return found[-1]

    def register(self, subject: str, text: str) -> Registered:
        if self.refuses:
            raise RegistryRefused(40901, "not compatible")
        return add(len(self.schemas) + 1, text, subject=subject)


def add(schema_id: int, text: str, schema_type: str = "AVRO", subject: str = "t-value") -> Registered:
    """Register a schema."""
    Registry.schemas[schema_id] = found = Registered(schema_id, schema_type, text, (), subject, 1)
    return found


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "RegistryClient", Registry)
    monkeypatch.setattr(encoded_values, "RegistryClient", Registry)
    monkeypatch.setattr("ottla.client.registry.client.RegistryClient", Registry)
    monkeypatch.setattr(Registry, "schemas", {})
    monkeypatch.setattr(Registry, "asked", [])
    monkeypatch.setattr(Registry, "refuses", False)
    # Tests with a real registry in this process have decoders of their own, with connections.
    monkeypatch.setattr(values, "_decoder", cache(values._Decoder))


def _record(*fields: tuple[str, Any] | tuple[str, Any, Any]) -> str:
    listed = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return json.dumps({"type": "record", "name": "R", "fields": listed})


def _avro(schema_id: int, text: str, row: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(text)), row)
    return encode_prefix(schema_id) + buffer.getvalue()


def _decoded(reader: Registered, *rows: bytes | None) -> list[tuple[Any, bool]]:
    source = ValueSource("http://r", "t-value", reader)
    column = decode_values(source, pa.array(rows, pa.binary()))
    assert column.type.field("value").type == value_type(source)
    return [(row["value"], row["fault"] is not None) for row in column.to_pylist()]


OLD, NEW = _record(("a", "int")), _record(("a", "int"), ("b", "string", "none"))


def test_values_of_older_schemas_are_read_as_the_latest() -> None:
    add(1, OLD)
    latest = add(2, NEW)
    found = _decoded(latest, _avro(1, OLD, {"a": 7}), None, _avro(2, NEW, {"a": 8, "b": "x"}))
    assert found == [({"a": 7, "b": "none"}, False), (None, False), ({"a": 8, "b": "x"}, False)]


def test_what_cannot_be_read_is_marked_alone() -> None:
    latest = add(1, OLD)
    add(2, '{"type":"object"}', "JSON")
    sound = _avro(1, OLD, {"a": 7})
    rows = [sound, b"", b"\x01xxxxx", sound[:-1], _avro(9, OLD, {"a": 1}), encode_prefix(2) + b"{}", sound]
    found = _decoded(latest, *rows)
    assert found[0] == found[-1] == ({"a": 7}, False)
    assert found[1:-1] == [(None, True)] * 5


def test_each_schema_is_asked_for_once() -> None:
    latest = add(1, OLD)
    sound, unknown = _avro(1, OLD, {"a": 7}), _avro(9, OLD, {"a": 7})
    _decoded(latest, sound, sound, unknown, unknown)
    assert Registry.asked == [1, 9]


def test_a_value_that_fits_its_schema_and_not_the_column_is_marked_alone() -> None:
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    latest = add(1, text, "JSON")
    rows = [
        encode_prefix(1) + body for body in (b'{"n":1}', b'{"n":"x"}', b'{"n":%d}' % 2**70, b'{"n":2}', b"{")
    ]
    found = _decoded(latest, *rows)
    assert [is_corrupt for _, is_corrupt in found] == [False, True, True, False, True]
    assert [row and row["n"] for row, _ in found] == [1, None, None, 2, None]


def test_a_subject_that_nobody_registered_has_no_source() -> None:
    assert find_source("http://r", "t-value") is None
    latest = add(1, OLD)
    assert find_source("http://r", "t-value") == ValueSource("http://r", "t-value", latest)


COLUMNS = pa.struct(
    [
        pa.field("flag", pa.bool_(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("small", pa.int16()),
        pa.field("half", pa.float32()),
        pa.field("whole", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("list", pa.list_(pa.field("item", pa.int32(), nullable=False))),
        pa.field("map", pa.map_(pa.string(), pa.struct([pa.field("x", pa.int32())]))),
        pa.field("inner", pa.struct([pa.field("y", pa.string())])),
    ]
)
ROW: dict[str, Any] = {
    "flag": True,
    "count": 2**40,
    "small": 3,
    "half": 0.5,
    "whole": 0.1,
    "text": "ü",
    "raw": b"\0\1",
    "day": datetime.date(2026, 1, 2),
    "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC),
    "local": datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    "price": decimal.Decimal("12.34"),
    "list": [1, 2],
    "map": [("k", {"x": 5}), ("none", None)],
    "inner": {"y": None},
}


def test_columns_are_written_with_their_schema_and_read_again() -> None:
    schema = avro_schema(COLUMNS, "t_value")
    rows = pa.array([ROW, None, {"flag": False}], COLUMNS)

    first, nothing, empty = make_encoder(schema, 258)(rows).to_pylist()

    assert nothing is None
    assert first[:5] == b"\0\0\0\1\2"
    parsed = fastavro.parse_schema(schema)
    found: Any = fastavro.schemaless_reader(io.BytesIO(first[5:]), parsed, None)
    assert found == {**ROW, "map": dict(ROW["map"])}
    others: Any = fastavro.schemaless_reader(io.BytesIO(empty[5:]), parsed, None)
    assert others == {**dict.fromkeys(ROW), "flag": False}
    alone = make_encoder(schema, 258)(pa.array([{"flag": False}], COLUMNS)).to_pylist()
    assert alone == [empty], "nothing of a longer value before it is left"


def test_a_column_that_may_be_null_has_a_default_for_older_records() -> None:
    flag, count, *_ = avro_schema(COLUMNS, "t_value")["fields"]
    assert flag == {"name": "flag", "type": "boolean"}
    assert count == {"name": "count", "type": ["null", "long"], "default": None}
    by_name = {field["name"]: field["type"] for field in avro_schema(COLUMNS, "t_value")["fields"]}
    assert by_name["list"] == ["null", {"type": "array", "items": "int"}]
    assert by_name["at"][1]["logicalType"] == "timestamp-micros"
    assert by_name["local"][1]["logicalType"] == "local-timestamp-micros"
    assert by_name["map"][1]["values"][1]["name"] == "t_value_map_value"


@pytest.mark.parametrize("kind", [pa.map_(pa.int32(), pa.int32()), pa.duration("s"), pa.null()])
def test_what_avro_has_no_type_for_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidSchema):
        avro_schema(pa.struct([pa.field("a", kind)]), "t_value")


def test_the_schema_of_columns_is_registered_for_the_values_of_the_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert register_columns("http://r", "t", OLD) == 1
    assert Registry.schemas[1].subject == "t-value"
    monkeypatch.setattr(Registry, "refuses", True)
    with pytest.raises(Unregistered, match="to topic 't' cannot be registered under 't-value'"):
        register_columns("http://r", "t", NEW)

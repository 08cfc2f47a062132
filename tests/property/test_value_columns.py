"""Rows of all types through JSON, Avro and Protobuf: they come back equal, or with a reason why not."""

import base64
import datetime
import json
import math
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.registry.protobuf import message_class
from ottla.pipelines.columns.encoded_values import avro_schema, make_encoder
from ottla.pipelines.columns.json_values import JsonColumns
from ottla.pipelines.columns.messages import row_reader
from ottla.pipelines.columns.misfits import decode_rows
from ottla.pipelines.columns.schema_types import message_type
from ottla.pipelines.columns.shaping import shape_for
from ottla.pipelines.columns.values import read_avro
from ottla.schemas.protobuf.schema import ProtobufSchema

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
TIMES = st.datetimes(timezones=st.just(datetime.UTC))


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    # By its digits: Python's arithmetic would round what has more than 28.
    return st.integers(-most, most).map(lambda number: Decimal(f"{number}E-{scale}"))


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), _integers(32)),
    (pa.int64(), _integers(64)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.decimal128(20, 4), _decimals(20, 4)),
    (pa.decimal128(38, 0), _decimals(38, 0)),
    (pa.decimal128(38, 38), _decimals(38, 38)),
    (pa.string(), TEXT),
    (pa.binary(), st.binary(max_size=8)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), TIMES),
    (pa.timestamp("us"), st.datetimes()),
]


@st.composite
def _typed_values(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a type of Arrow, and what its values are."""
    form = draw(st.sampled_from(["leaf", "leaf", "leaf", "list", "map", "struct"])) if depth else "leaf"
    if form == "leaf":
        leaf: tuple[Any, st.SearchStrategy[Any]] = draw(st.sampled_from(LEAVES))
        return leaf
    if form == "struct":
        return _struct(draw(st.lists(_typed_values(depth - 1), min_size=1, max_size=3)))
    kind, items = draw(_typed_values(depth - 1))
    items = items | st.none()
    if form == "list":
        return pa.list_(kind), st.lists(items, max_size=3)
    return pa.map_(pa.string(), kind), st.dictionaries(TEXT, items, max_size=3).map(
        lambda entries: list(entries.items())
    )


def _struct(fields: list[tuple[Any, st.SearchStrategy[Any]]]) -> tuple[Any, st.SearchStrategy[Any]]:
    kind = pa.struct([(f"f{place}", field) for place, (field, _) in enumerate(fields)])
    rows = {f"f{place}": items | st.none() for place, (_, items) in enumerate(fields)}
    return kind, st.fixed_dictionaries(rows)


TABLES = (
    st.lists(_typed_values(), min_size=1, max_size=4)
    .map(_struct)
    .flatmap(lambda found: st.tuples(st.just(found[0]), st.lists(found[1], min_size=1, max_size=3)))
)


def _json(value: Any, kind: Any) -> str:
    """Write a value as JSON that has all of it: a second hand, as plain as possible."""
    if value is None:
        return "null"
    if pa.types.is_struct(kind):
        fields = (f'"{field.name}":{_json(value[field.name], field.type)}' for field in kind)
        return "{" + ",".join(fields) + "}"
    if pa.types.is_list(kind):
        return "[" + ",".join(_json(item, kind.value_type) for item in value) + "]"
    if pa.types.is_map(kind):
        return "{" + ",".join(f"{json.dumps(key)}:{_json(item, kind.item_type)}" for key, item in value) + "}"
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, datetime.date):
        return json.dumps(value.isoformat())
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def _same(column: Any, rows: list[Any], kind: Any) -> bool:
    """Compare as Arrow does, and NaN with itself."""
    # The text of a decimal of a float has no NaN, and lists of pairs have no order of their own.
    return repr(column.to_pylist()) == repr(pa.array(rows, kind).to_pylist())


@given(TABLES)
def test_rows_come_back_from_json(table: tuple[Any, list[Any]]) -> None:
    kind, rows = table
    values = pa.array([_json(row, kind).encode() for row in rows], pa.binary())
    found = decode_rows(kind, JsonColumns(kind).row, values)
    assert found.field("fault").null_count == len(rows), found.field("fault")
    assert _same(found.field("value"), rows, kind)


@given(TABLES, st.data())
def test_json_that_was_damaged_is_read_exactly_or_refused(
    table: tuple[Any, list[Any]], data: st.DataObject
) -> None:
    """Whatever is read from damaged text is what an exact reader of JSON finds there."""
    kind, (row, *_) = table
    text = _json(row, kind)
    place = data.draw(st.integers(0, len(text) - 1))
    piece = data.draw(st.sampled_from(["", "9", "e9", '"', "}", ",", "null", "0.5", " ", "-", "x"]))
    damaged = text[:place] + piece + text[place + data.draw(st.integers(0, 2)) :]
    found = decode_rows(kind, JsonColumns(kind).row, pa.array([damaged.encode()], pa.binary()))
    (fault,) = found.field("fault").to_pylist()
    if fault is not None:
        assert fault.startswith(("field '", "the value "))
        return
    written = json.loads(damaged, parse_float=Decimal)
    for name, value in found.field("value").to_pylist()[0].items():
        if isinstance(value, Decimal | int) and not isinstance(value, bool):
            assert Decimal(value) == Decimal(written[name])


@given(TABLES)
def test_rows_come_back_from_avro(table: tuple[Any, list[Any]]) -> None:
    kind, rows = table
    schema = avro_schema(kind, "Row")
    values = make_encoder(schema, 7)(pa.array(rows, kind))
    read, shape = read_avro(fastavro.parse_schema(schema), None), shape_for(kind)
    found = decode_rows(kind, lambda value: shape(read(value)) if shape else read(value), values)
    assert found.field("fault").null_count == len(rows), found.field("fault")
    assert _same(found.field("value"), rows, kind)


@given(st.integers(-(2**62), 2**62))
def test_times_that_python_has_no_form_of_go_out_as_avro(microseconds: int) -> None:
    kind = pa.struct([("at", pa.timestamp("us", "UTC")), ("local", pa.list_(pa.timestamp("us")))])
    number = pa.struct([("at", pa.int64()), ("local", pa.list_(pa.int64()))])
    rows = pa.array([{"at": microseconds, "local": [microseconds, None]}], number)
    schema = avro_schema(kind, "Row")
    (value,) = make_encoder(schema, 7)(rows.cast(kind)).to_pylist()
    plain = json.loads(json.dumps(schema).replace('"logicalType"', '"was"'))
    assert read_avro(fastavro.parse_schema(plain), None)(value) == rows.to_pylist()[0]


PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Row {
  int32 i = 1; sint64 l = 2; uint32 u = 3; uint64 ul = 4; double d = 5; float f = 6; bool b = 7; string s = 8;
  bytes raw = 9; repeated int64 many = 10; map<string, double> named = 11; optional string maybe = 12;
  google.protobuf.Timestamp at = 13;
}
"""
Row = message_class(ProtobufSchema(PROTO), "Row")
MESSAGES = st.fixed_dictionaries(
    {
        "i": _integers(32),
        "l": _integers(64),
        "u": st.integers(0, 2**32 - 1),
        "ul": st.integers(0, 2**64 - 1),
        "d": st.floats(),
        "f": st.floats(width=32),
        "b": st.booleans(),
        "s": TEXT,
        "raw": st.binary(max_size=8),
        "many": st.lists(_integers(64), max_size=3),
        "named": st.dictionaries(TEXT, st.floats(), max_size=2),
    },
    optional={"maybe": TEXT},
)


@given(MESSAGES, TIMES, st.integers(0, 999))
def test_messages_come_back_from_protobuf_or_say_why(
    fields: dict[str, Any], at: datetime.datetime, nanoseconds: int
) -> None:
    message: Any = Row(**fields)
    message.at.FromDatetime(at)
    message.at.nanos += nanoseconds
    kind = message_type(Row.DESCRIPTOR)
    read, shape = row_reader(Row.DESCRIPTOR), shape_for(kind)
    assert shape is not None

    def decode(value: bytes) -> Any:
        return shape(read(Row.FromString(value)))

    found = decode_rows(kind, decode, pa.array([message.SerializeToString()], pa.binary()))
    ((row, fault),) = (tuple(item.values()) for item in found.to_pylist())
    if nanoseconds:
        assert fault.startswith("field 'at' has ")
    elif fields["ul"] >= 2**63:
        assert fault.startswith(f"field 'ul' is {fields['ul']}, ")
    else:
        assert fault is None
        named = dict(row.pop("named"))
        assert row.pop("at") == at
        assert repr(sorted(named.items(), key=str)) == repr(sorted(fields["named"].items(), key=str))
        assert row.keys() == {"maybe", *fields} - {"named"}
        assert [repr(row[name]) for name in row] == [repr(fields.get(name)) for name in row]

"""Schemas of Connect as Protobuf and back, by the rules of Confluent's ProtobufConverter."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import descriptor_pool, message_factory

from ottla.client.registry.protobuf import message_class
from ottla.connect.converters.protobuf_descriptors import from_protobuf
from ottla.connect.converters.protobuf_options import ENUM, TAG, TYPE, UNION, ProtobufOptions
from ottla.connect.converters.protobuf_schemas import to_protobuf
from ottla.connect.converters.protobuf_values import message_reader, message_writer
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    INT32,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Field,
    Schema,
    Type,
    decimal_schema,
    optional,
    struct,
)
from ottla.connect.errors import DataError
from ottla.schemas.protobuf.printing import print_file
from ottla.schemas.protobuf.schema import ProtobufSchema

ROW = struct(
    {
        "id": INT32,
        "small": Schema(Type.INT16),
        "label": optional(STRING),
        "price": decimal_schema(2),
        "day": DATE_SCHEMA,
        "clock": TIME_SCHEMA,
        "at": TIMESTAMP_SCHEMA,
        "raw": BYTES,
        "tags": Schema(Type.ARRAY, values=STRING),
        "counts": Schema(Type.MAP, keys=STRING, values=INT64),
        "inner": struct({"flag": BOOLEAN}, name="shop.inner"),
    },
    name="shop.Row",
)
VALUE = {
    "id": 7,
    "small": -3,
    "label": "tea",
    "price": Decimal("-12.34"),
    "day": datetime.date(2026, 3, 1),
    "clock": datetime.time(12, 30, 1, 5000),
    "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 5000, tzinfo=datetime.UTC),
    "raw": b"\x00\xff",
    "tags": ["a", ""],
    "counts": {"x": 1, "y": 0},
    "inner": {"flag": False},
}
TEXT = """\
syntax = "proto3";
package shop;

import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "google/protobuf/timestamp.proto";

message Row {
  int32 id = 1;
  int32 small = 2 [(confluent.field_meta) = {
    params: [
      {
        key: "connect.type",
        value: "int16"
      }
    ]
  }];
  string label = 3;
  confluent.type.Decimal price = 4 [(confluent.field_meta) = {
    params: [
      {
        value: "2",
        key: "scale"
      }
    ]
  }];
  google.type.Date day = 5;
  google.type.TimeOfDay clock = 6;
  google.protobuf.Timestamp at = 7;
  bytes raw = 8;
  repeated string tags = 9;
  repeated ConnectDefault1Entry counts = 10;
  innerMessage inner = 11;

  message ConnectDefault1Entry {
    string key = 1;
    int64 value = 2;
  }
  message innerMessage {
    bool flag = 1;
  }
}
"""


def _passed(schema: Schema, value: Any, options: ProtobufOptions) -> tuple[Schema, Any]:
    """Write a value, and read the bytes with what the text of the schema says."""
    file, name = to_protobuf(schema, options)
    text = print_file(file)
    message = message_class(ProtobufSchema(text), name)()
    message_writer(schema, options)(message, value)
    return _read(text, message.SerializeToString(), name, options)


def _read(text: str, data: bytes, name: str, options: ProtobufOptions) -> tuple[Schema, Any]:
    parsed = ProtobufSchema(text)
    pool = descriptor_pool.DescriptorPool()
    parsed.add_to_pool(pool)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    schema = from_protobuf(kind.DESCRIPTOR, parsed, options)
    return schema, message_reader(schema, kind.DESCRIPTOR, options)(kind.FromString(data))


def test_a_row_is_the_message_that_confluents_converter_declares() -> None:
    file, name = to_protobuf(ROW, ProtobufOptions())

    assert print_file(file) == TEXT
    assert name == "shop.Row"


def test_a_row_comes_back_as_it_was() -> None:
    schema, value = _passed(ROW, VALUE, ProtobufOptions())

    assert value == VALUE
    kinds = {item.name: (item.schema.type, item.schema.name) for item in schema.fields}
    assert kinds["small"] == (Type.INT16, None)
    assert kinds["price"] == (Type.BYTES, "org.apache.kafka.connect.data.Decimal")
    assert schema.field_named("price") == Field("price", optional(_with_tag(decimal_schema(2), 4))), (
        "the scale is kept"
    )
    assert kinds["counts"] == (Type.MAP, "connect_default1")
    assert all(item.schema.is_optional for item in schema.fields)


def _with_tag(schema: Schema, tag: int) -> Schema:
    return Schema(schema.type, name=schema.name, version=1, parameters={**schema.parameters, TAG: str(tag)})


def test_what_is_missing_is_the_default_of_its_type_unless_it_is_optional_or_wrapped() -> None:
    row = struct({"id": INT32, "label": optional(STRING), "count": optional(INT64)})
    value = {"id": 0, "label": None, "count": None}

    assert _passed(row, value, ProtobufOptions())[1] == {"id": 0, "label": "", "count": 0}
    for options in (
        ProtobufOptions(optional_for_nullables=True),
        ProtobufOptions(wrapper_for_nullables=True),
    ):
        schema, found = _passed(row, value, options)
        assert found == value
        assert [item.schema.is_optional for item in schema.fields] == [False, True, True]
        assert _passed(row, {"id": 1, "label": "", "count": 0}, options)[1] == {
            "id": 1,
            "label": "",
            "count": 0,
        }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (STRING, "tea"),
        (INT64, -5),
        (INT32, 0),
        (BOOLEAN, True),
        (BYTES, b"\x01"),
        (Schema(Type.FLOAT64), 0.5),
    ],
)
def test_a_value_that_is_no_struct_is_a_wrapper(schema: Schema, value: Any) -> None:
    assert _passed(schema, value, ProtobufOptions()) == (schema, value)


FOREIGN = """
syntax = "proto3"; package a.b;
message Order {
  uint64 total = 1; sint32 delta = 2; Kind kind = 3;
  oneof payment { string card = 4; Cash cash = 5; }
  map<string, Line> lines = 6;
  optional int32 rank = 7;
  enum Kind { NONE = 0; EXPRESS = 3; }
  message Cash { int32 cents = 1; }
  message Line { string item = 1; }
}
"""


def _foreign(fill: Callable[[Any], None]) -> bytes:
    message = message_class(ProtobufSchema(FOREIGN), "a.b.Order")()
    fill(message)
    return bytes(message.SerializeToString())


def test_enums_oneofs_maps_and_unsigned_numbers_of_others_are_read_and_written_back() -> None:
    def fill(order: Any) -> None:
        order.total, order.delta, order.kind = (1 << 64) - 1, -4, 3
        order.cash.SetInParent()
        order.lines["x"].item = "tea"

    options = ProtobufOptions()
    schema, value = _read(FOREIGN, _foreign(fill), "a.b.Order", options)

    assert value == {
        "payment_0": {"card": None, "cash": {"cents": 0}},
        "total": -1,
        "delta": -4,
        "kind": "EXPRESS",
        "lines": {"x": {"item": "tea"}},
        "rank": None,
    }
    assert schema.name == "Order"
    assert schema.fields[0].schema.name == f"{UNION}.payment"
    kind = schema.field_named("kind")
    assert kind is not None
    assert kind.schema.parameters == {
        ENUM: "Kind",
        f"{ENUM}.NONE": "0",
        f"{ENUM}.EXPRESS": "3",
        TAG: "3",
    }
    total = schema.field_named("total")
    assert total is not None
    assert total.schema.parameters == {TYPE: "uint64", TAG: "1"}
    again = _passed(schema, value, options)
    # A missing number is 0 where nothing says that it may be missing.
    assert again[1] == {**value, "rank": 0}
    assert [item.name for item in again[0].fields] == [item.name for item in schema.fields]


def test_options_choose_names_numbers_and_the_form_of_oneofs() -> None:
    data = _foreign(lambda order: setattr(order, "card", "c-1"))
    options = ProtobufOptions(enhanced_protobuf_schema_support=True, int_for_enums=True, flatten_unions=True)

    schema, value = _read(FOREIGN, data, "a.b.Order", options)

    assert schema.name == "a.b.Order"
    assert (value["card"], value["cash"], value["kind"]) == ("c-1", None, 0)
    without_index = ProtobufOptions(generate_index_for_unions=False)
    assert _read(FOREIGN, data, "a.b.Order", without_index)[1]["payment"] == {"card": "c-1", "cash": None}


def test_names_that_protobuf_cannot_have_are_cleaned_when_asked() -> None:
    row = struct({"is-new": BOOLEAN, "1st": STRING}, name="shop.my-row")
    options = ProtobufOptions(scrub_invalid_names=True)

    _, value = _passed(row, {"is-new": True, "1st": "a"}, options)

    assert value == {"is_new": True, "x1st": "a"}


def test_the_configuration_names_are_those_of_confluents_converter() -> None:
    options = ProtobufOptions.of({"optional.for.nullables": "true", "generate.index.for.unions": "false"})

    assert options == ProtobufOptions(optional_for_nullables=True, generate_index_for_unions=False)


@pytest.mark.parametrize(
    "schema",
    [
        Schema(Type.ARRAY, values=STRING),
        decimal_schema(2),
        struct({"a": Schema(Type.ARRAY, values=Schema(Type.ARRAY, values=STRING))}),
    ],
)
def test_what_protobuf_cannot_say_is_refused(schema: Schema) -> None:
    with pytest.raises(DataError, match="ProtobufConverter cannot write"):
        to_protobuf(schema, ProtobufOptions())


def test_a_message_within_itself_is_refused_by_name() -> None:
    text = 'syntax = "proto3"; message Tree { repeated Tree children = 1; }'

    with pytest.raises(DataError, match="Tree has itself as a field"):
        _read(text, b"", "Tree", ProtobufOptions())

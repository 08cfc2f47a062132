"""Values to bytes and back, with the envelopes that Kafka's JsonConverter writes."""

import datetime
import json
from decimal import Decimal

import pytest

from ottla.connect.catalog import all_plugins
from ottla.connect.converters.avro import from_avro, to_avro
from ottla.connect.converters.json import JsonConverter
from ottla.connect.converters.json_schema import from_json_schema, to_json_schema
from ottla.connect.data.schema import (
    BYTES,
    DATE_SCHEMA,
    INT32,
    STRING,
    TIMESTAMP_SCHEMA,
    Schema,
    Type,
    decimal_schema,
    optional,
    struct,
)
from ottla.connect.errors import DataError

ROW = struct(
    {
        "id": INT32,
        "name": optional(STRING),
        "price": decimal_schema(2),
        "day": DATE_SCHEMA,
        "at": TIMESTAMP_SCHEMA,
        "raw": BYTES,
        "tags": Schema(Type.ARRAY, values=STRING),
        "counts": Schema(Type.MAP, keys=STRING, values=INT32),
    },
    name="row",
)
VALUE = {
    "id": 7,
    "name": None,
    "price": Decimal("-12.34"),
    "day": datetime.date(2026, 3, 1),
    "at": datetime.datetime(2026, 3, 1, 12, 0, 0, 5000, tzinfo=datetime.UTC),
    "raw": b"\x00\xff",
    "tags": ["a", "b"],
    "counts": {"x": 1},
}


def test_an_envelope_says_everything_and_comes_back_as_it_was() -> None:
    converter = JsonConverter({})

    data = converter.to_bytes("t", ROW, VALUE)

    assert data is not None
    assert converter.from_bytes("t", data) == (ROW, VALUE)
    payload = json.loads(data)["payload"]
    # -1234 in two bytes, days and milliseconds since 1970.
    assert (payload["price"], payload["day"], payload["at"]) == ("+y4=", 20513, 1772366400005)


def test_without_schemas_only_the_value_is_there() -> None:
    converter = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})

    data = converter.to_bytes("t", ROW, VALUE)

    assert data is not None
    assert json.loads(data)["price"] == -12.34
    assert converter.from_bytes("t", b'{"a":[1,null]}') == (None, {"a": [1, None]})


@pytest.mark.parametrize("data", [b"a", b'{"a":1}', b'{"schema":{"type":"int32"},"payload":"x"}', b"\xff"])
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        JsonConverter({}).from_bytes("t", data)


@pytest.mark.parametrize(
    ("name", "schema", "value", "data"),
    [
        ("LongConverter", None, 1, b"\0\0\0\0\0\0\0\1"),
        ("IntegerConverter", None, -1, b"\xff\xff\xff\xff"),
        ("ShortConverter", None, 2, b"\0\2"),
        ("DoubleConverter", None, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        ("BooleanConverter", None, True, b"\1"),
        ("StringConverter", None, "ü", "ü".encode()),
        ("ByteArrayConverter", None, b"\0", b"\0"),
    ],
)
def test_plain_converters_write_kafkas_bytes(
    name: str, schema: Schema | None, value: object, data: bytes
) -> None:
    plugin = all_plugins().find(name)
    assert plugin is not None
    converter = plugin.make({})

    assert converter.to_bytes("t", schema, value) == data
    assert converter.from_bytes("t", data)[1] == value
    assert converter.to_bytes("t", None, None) is None


def test_schemas_for_a_registry_come_back_as_they_were() -> None:
    nested = struct({"row": ROW, "again": optional(ROW), "rows": Schema(Type.ARRAY, values=ROW)}, name="a.b")

    assert from_json_schema(to_json_schema(nested)) == nested
    # Avro names a record once, and has no versions of logical types.
    assert from_avro(to_avro(nested, set()), {}) == nested


@pytest.mark.parametrize(
    "content", [3, {"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "odd"}]
)
def test_json_schemas_that_connect_cannot_express_are_refused(content: object) -> None:
    with pytest.raises(DataError):
        from_json_schema(content)


@pytest.mark.parametrize("text", ["2.50", "12345678901234567890.123456", "-1E-7", "100", "1E+3", "0.00"])
def test_numeric_decimals_have_the_digits_that_kafkas_converter_writes(text: str) -> None:
    converter = JsonConverter({"decimal.format": "NUMERIC"})
    schema = struct({"price": decimal_schema(2), "rate": Schema(Type.FLOAT64)})

    data = converter.to_bytes("t", schema, {"price": Decimal(text), "rate": 0.25})

    assert data is not None
    assert data.decode().endswith('"payload":{"price":' + text + ',"rate":0.25}}')
    _, value = converter.from_bytes("t", data)
    assert str(value["price"]) == text
    assert type(value["rate"]) is float


def test_a_decimal_that_is_no_number_is_refused() -> None:
    with pytest.raises(DataError, match="not a number of JSON"):
        JsonConverter({"decimal.format": "NUMERIC"}).to_bytes("t", decimal_schema(2), Decimal("NaN"))

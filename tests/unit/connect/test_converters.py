"""Values to bytes and back, with the envelopes that Kafka's JsonConverter writes."""

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import pytest

from ottla.connect.catalog import all_plugins
from ottla.connect.converters.avro import from_avro, to_avro
from ottla.connect.converters.json import JsonConverter, schema_from_json, schema_to_json
from ottla.connect.converters.json_schema import from_json_schema, to_json_schema
from ottla.connect.converters.plain import (
    SimpleHeaderConverter,
    StringConverter,
    ValueHeaderConverter,
    text_of,
)
from ottla.connect.data.record import Header
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    Field,
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


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("LongConverter", "1", b"1234"),
        ("IntegerConverter", 1 << 31, b"12345"),
        ("ShortConverter", 1 << 15, b"1"),
        ("DoubleConverter", "x", b""),
        ("FloatConverter", "x", b"123"),
        ("ByteArrayConverter", "text", None),
    ],
)
def test_what_is_no_number_is_refused(name: str, value: object, data: bytes | None) -> None:
    plugin = all_plugins().find(name)
    assert plugin is not None
    converter = plugin.make({})
    with pytest.raises(DataError, match=r"not a number for|not compatible"):
        converter.to_bytes("t", None, value)
    if data is not None:
        with pytest.raises(
            DataError, match=f"{len(data)} bytes are not a number for {name.removesuffix('Converter')}:"
        ):
            converter.from_bytes("t", data)


@pytest.mark.parametrize(
    "name", ["LongConverter", "BooleanConverter", "StringConverter", "ByteArrayConverter"]
)
def test_a_value_that_is_not_there_keeps_its_schema(name: str) -> None:
    plugin = all_plugins().find(name)
    assert plugin is not None
    schema, value = plugin.make({}).from_bytes("t", None)
    assert schema.is_optional
    assert value is None


def test_texts_have_an_encoding() -> None:
    converter = StringConverter({"converter.encoding": "latin-1"})
    assert converter.to_bytes("t", None, "ü") == b"\xfc"
    assert converter.from_bytes("t", b"\xfc") == (optional(STRING), "ü")
    with pytest.raises(DataError, match="there is no such encoding"):
        StringConverter({"converter.encoding": "odd"})
    with pytest.raises(DataError, match="Failed to deserialize string"):
        StringConverter({}).from_bytes("t", b"\xff")


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, True, "true"),
        (None, 1.5, "1.5"),
        (None, b"ab\xff", "ab\ufffd"),
        (None, {"a": [1, None, True, {"b": b"c"}], 2: "ü"}, '{"a":[1,null,true,{"b":"c"}],"2":"ü"}'),
        (None, [Decimal("1.50")], '["1.50"]'),
        (DATE_SCHEMA, datetime.date(1970, 1, 11), "10"),
    ],
)
def test_everything_has_a_text(schema: Schema | None, value: object, text: str) -> None:
    assert text_of(schema, value) == text


@pytest.mark.parametrize(
    ("data", "schema", "value"),
    [
        (None, None, None),
        (b"1", INT64, 1),
        (b"1.5", FLOAT64, 1.5),
        (b"true", BOOLEAN, True),
        (b'"a"', STRING, "a"),
        (b"a b", STRING, "a b"),
        (b"[1]", None, [1]),
        (b'{"a":1}', None, {"a": 1}),
    ],
)
def test_headers_have_the_types_that_they_look_like(
    data: bytes | None, schema: Schema | None, value: object
) -> None:
    converter = SimpleHeaderConverter({})
    header = converter.from_bytes("h", data)
    assert header == Header("h", schema, value)
    assert type(header.value) is type(value)
    back = converter.to_bytes(header)
    assert back == (None if data is None else b"a" if data == b'"a"' else data)


def test_headers_can_have_a_converter_of_values() -> None:
    plugin = all_plugins().find("IntegerConverter")
    assert plugin is not None
    converter = ValueHeaderConverter(plugin.make({}))
    assert converter.to_bytes(Header("h", INT32, 7)) == b"\0\0\0\7"
    assert converter.from_bytes("h", b"\0\0\0\7") == Header("h", optional(INT32), 7)


FULL = Schema(
    Type.STRUCT,
    is_optional=True,
    name="full",
    version=3,
    doc="about it",
    parameters={"p": "q"},
    fields=(
        Field("raw", Schema(Type.BYTES, default=b"\x00\xff")),
        Field("count", Schema(Type.INT32, default=5)),
        Field("by_number", Schema(Type.MAP, keys=INT32, values=optional(STRING))),
        Field(
            "price",
            replace(decimal_schema(2), default=Decimal("1.50")),
        ),
    ),
)


def test_an_envelope_has_all_of_a_schema() -> None:
    content = schema_to_json(FULL)
    assert (content["type"], content["optional"], content["name"]) == ("struct", True, "full")
    assert (content["version"], content["doc"], content["parameters"]) == (3, "about it", {"p": "q"})
    by_name = {item["field"]: item for item in content["fields"]}
    assert by_name["raw"] == {"type": "bytes", "optional": False, "default": "AP8=", "field": "raw"}
    assert by_name["count"]["default"] == 5
    assert by_name["by_number"]["keys"] == {"type": "int32", "optional": False}
    assert by_name["by_number"]["values"] == {"type": "string", "optional": True}
    assert "items" not in by_name["by_number"]
    assert schema_from_json(json.loads(json.dumps(content))) == FULL


def test_what_is_missing_is_a_default_or_nothing_or_an_error() -> None:
    value = {"by_number": {1: None, 2: "b"}}
    converter = JsonConverter({})
    data = converter.to_bytes("t", FULL, value)
    assert data is not None
    assert json.loads(data)["payload"] == {
        "raw": "AP8=",
        "count": 5,
        "by_number": [[1, None], [2, "b"]],
        "price": "AJY=",
    }
    filled = {"raw": b"\x00\xff", "count": 5, "by_number": {1: None, 2: "b"}, "price": Decimal("1.50")}
    assert converter.from_bytes("t", data) == (FULL, filled)
    bare = json.dumps({"schema": schema_to_json(FULL), "payload": {"by_number": []}}).encode()
    assert converter.from_bytes("t", bare) == (FULL, {**filled, "by_number": {}})
    nothing = json.dumps({"schema": schema_to_json(FULL), "payload": None}).encode()
    assert converter.from_bytes("t", nothing) == (FULL, None)
    strict = JsonConverter({"replace.null.with.default": "false"})
    with pytest.raises(DataError, match="null value for field that is required"):
        strict.to_bytes("t", FULL, value)
    with pytest.raises(DataError, match="Invalid null value for required"):
        strict.from_bytes("t", bare)


def test_nothing_is_nothing_where_no_schema_says_otherwise() -> None:
    assert JsonConverter({}).to_bytes("t", None, None) is None
    assert JsonConverter({"schemas.enable": "false"}).to_bytes("t", optional(STRING), None) is None
    data = JsonConverter({}).to_bytes("t", optional(STRING), None)
    assert data == b'{"schema":{"type":"string","optional":true},"payload":null}'
    assert JsonConverter({}).from_bytes("t", None) == (None, None)
    assert JsonConverter({}).from_bytes("t", b'{"schema":null,"payload":{"a":1.5}}') == (None, {"a": 1.5})


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ({"type": "int32"}, True),
        ({"type": "int32"}, 1.5),
        ({"type": "string"}, 1),
        ({"type": "boolean"}, 1),
        ({"type": "bytes"}, "not base64!"),
        ({"type": "array", "items": {"type": "int32"}}, 5),
        ({"type": "struct", "fields": [{"field": "a", "type": "int32"}]}, 5),
        ({"type": "int32"}, None),
        ({"type": "odd"}, 1),
        ({"fields": []}, 1),
        ("text", 1),
    ],
)
def test_a_payload_that_does_not_fit_its_schema_is_refused(schema: object, payload: object) -> None:
    with pytest.raises(DataError):
        JsonConverter({}).from_bytes("t", json.dumps({"schema": schema, "payload": payload}).encode())


def test_values_without_a_schema_are_json_as_far_as_they_can_be() -> None:
    converter = JsonConverter({"schemas.enable": "false"})
    value = {"a": [1, True, None, 1.5, "x"], 7: (1,), "raw": b"ab"}
    data = converter.to_bytes("t", None, value)
    assert data == b'{"a":[1,true,null,1.5,"x"],"7":[1],"raw":"YWI="}'
    with pytest.raises(DataError, match="serialization error"):
        converter.from_bytes("t", b"[" * 100_000)


@pytest.mark.parametrize(
    ("number", "text"), [(float("nan"), "NaN"), (float("inf"), "Infinity"), (-float("inf"), "-Infinity")]
)
def test_what_is_no_number_of_json_is_text_as_java_writes_it(number: float, text: str) -> None:
    plain = JsonConverter({"schemas.enable": "false"})
    assert plain.to_bytes("t", None, {"a": [number]}) == f'{{"a":["{text}"]}}'.encode()
    assert plain.to_bytes("t", FLOAT64, number) == f'"{text}"'.encode()
    enveloped = JsonConverter({})
    schema = replace(FLOAT64, default=number)
    data = enveloped.to_bytes("t", schema, number)
    assert data is not None
    assert json.loads(data) == {
        "schema": {"type": "double", "optional": False, "default": text},
        "payload": text,
    }
    _, found = enveloped.from_bytes("t", data)
    assert str(found) == str(number)

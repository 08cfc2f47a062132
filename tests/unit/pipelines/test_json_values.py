"""JSON becomes columns exactly, or is refused with the field and what stands in it."""

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.pipelines.columns.json_values import BESIDE_VALUES, JsonColumns
from ottla.pipelines.columns.misfits import TOMBSTONE_FAULT, Misfit, decode_rows
from ottla.schemas.errors import InvalidSchema

UTC_TIME = pa.timestamp("us", "UTC")


def decoded(kind: Any, text: str | bytes, *allowed: str, zone: str = "UTC") -> Any:
    """Return a value as a row, or the reason why it is none."""
    columns = JsonColumns(pa.struct(kind), allowed, zone)
    value = text if isinstance(text, bytes) else text.encode()
    (row,) = decode_rows(columns.type, columns.row, pa.array([value])).to_pylist()
    assert (row["value"] is None) != (row["fault"] is None)
    return row["fault"] or row["value"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.decimal128(20, 4), "456.1234", Decimal("456.1234")),
        (pa.decimal128(20, 4), "456.12340", Decimal("456.1234")),
        (pa.decimal128(20, 4), '"456.1"', Decimal("456.1000")),
        (pa.decimal128(20, 4), "1e3", Decimal("1000.0000")),
        (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
        (pa.float64(), "0.1", 0.1),
        (pa.float64(), '"-Infinity"', -math.inf),
        (pa.float32(), "3.4028234663852886e38", 3.4028234663852886e38),
        (pa.int32(), "-2147483648", -(2**31)),
        (pa.int64(), "12.0", 12),
        (pa.string(), "1.50", "1.50"),
        (pa.string(), '{"a": [1.50, null, "é"]}', '{"a":[1.50,null,"é"]}'),
        (pa.string(), '""', ""),
        (pa.binary(), '"eA=="', b"x"),
        (pa.bool_(), "false", False),
        (pa.date32(), '"2026-01-31"', datetime.date(2026, 1, 31)),
        (pa.timestamp("us"), '"2026-01-31T10:00:00.000001"', datetime.datetime(2026, 1, 31, 10, 0, 0, 1)),
        (pa.list_(pa.int32()), "[1,null]", [1, None]),
        (pa.map_(pa.string(), pa.float64()), '{"a":1,"b":null}', [("a", 1.0), ("b", None)]),
    ],
)
def test_a_value_that_fits_is_kept_exactly(kind: Any, text: str, expected: Any) -> None:
    assert decoded([("f", kind)], f'{{"f":{text}}}') == {"f": expected}


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01 00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.123456000Z", 123_456),
        ("1970-01-01T01:00:00.5+01:00", 500_000),
        ("1970-01-01T01:00+0100", 0),
        ("1970-01-02", 86_400_000_000),
        ("1969-12-31T23:59:59.999999Z", -1),
    ],
)
def test_times_keep_microseconds(text: str, microseconds: int) -> None:
    found = decoded([("f", UTC_TIME)], f'{{"f":"{text}"}}')
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert found["f"] == epoch + datetime.timedelta(microseconds=microseconds)


def test_a_time_without_a_zone_is_one_of_the_zone_given() -> None:
    found = decoded([("f", UTC_TIME)], '{"f":"2026-07-01T12:00:00"}', zone="Europe/Berlin")
    assert found["f"] == datetime.datetime(2026, 7, 1, 10, tzinfo=datetime.UTC)


def test_a_time_that_is_a_number_counts_seconds() -> None:
    assert decoded([("f", UTC_TIME)], '{"f":86400}')["f"].isoformat() == "1970-01-02T00:00:00+00:00"
    assert "counts seconds" in decoded([("f", UTC_TIME)], '{"f":1700000000000}')


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (pa.decimal128(20, 4), "456.12345", "456.12345, which does not fit decimal(20,4) without rounding"),
        (pa.decimal128(5, 2), "1234.5", "is 1234.5, which does not fit decimal(5,2)"),
        (pa.decimal128(5, 2), "1e999999999999999999999", "does not fit decimal(5,2)"),
        (pa.decimal128(5, 2), '"1_0"', 'is "1_0", and not a number'),
        (pa.decimal128(5, 2), '"NaN"', 'is "NaN", and not a number'),
        (pa.decimal128(5, 2), "true", "is true, and not a number"),
        (pa.float64(), "1e400", "is 1e400, which is too large for a double"),
        (pa.float64(), "9" * 400, "too large for a double"),
        (pa.float32(), "3.5e38", "is 3.5e38, which is too large for a float"),
        (pa.float64(), '"1.5"', 'is "1.5", and not a number'),
        (pa.int32(), "2147483648", "does not fit an integer of 32 bits"),
        (pa.int8(), "-129", "does not fit an integer of 8 bits"),
        (pa.int64(), "1.5", "is 1.5, and not a whole number"),
        (pa.int64(), "1e400000000", "is 1e400000000, and not a whole number"),
        (pa.int64(), "true", "is true, and not a whole number"),
        (pa.int64(), '"7"', 'is "7", and not a whole number'),
        (pa.bool_(), "1", "is 1, and neither true nor false"),
        (pa.date32(), '"2026-02-30"', "and not a date"),
        (pa.date32(), '"20260201"', "and not a date"),
        (UTC_TIME, '"2026-01-01T00:00:00.1234567Z"', "more digits than the six of a microsecond"),
        (UTC_TIME, '"2026-02-30T00:00:00Z"', "and not a time: day is out of range for month"),
        (UTC_TIME, '"2026-W01-1"', "and not a time"),
        (UTC_TIME, '"infinity"', 'is "infinity", and not a time'),
        (pa.timestamp("us"), '"2026-01-01T00:00:00Z"', "names a zone, and the column has none"),
        (pa.binary(), '"?"', "and not bytes in base64"),
        (pa.list_(pa.int32()), "{}", "is {}, and not an array"),
        (pa.map_(pa.string(), pa.int32()), "[]", "is [], and not an object"),
        (pa.string(), '"\\ud800"', "surrogates not allowed"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(kind: Any, text: str, reason: str) -> None:
    found = decoded([("f", kind)], f'{{"f":{text}}}')
    assert isinstance(found, str)
    assert found.startswith("field 'f' ")
    assert reason in found


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "the value is empty"),
        (b'{"f":1} x', 'the value has text behind its JSON, from character 8 on: "x"'),
        (b'{"f":1}{"f":2}', "the value has text behind its JSON"),
        (b"{", "the value is not JSON at character 1"),
        (b"null", "the value is null, and not an object"),
        (b"[1]", "the value is [1], and not an object"),
        (b'{"f":NaN}', "the value has NaN, which is no JSON"),
        (b'{"f":-Infinity}', "the value has -Infinity, which is no JSON"),
        (b"\xff", "the value is not UTF-8 at byte 0"),
        (b"[" * 100_000, "the value is nested too deeply"),
        (b"1" * 5_000, "the value has a number that cannot be read"),
        (b"{}", "field 'f' is missing"),
        (b'{"f":1,"g":{"h":1.50}}', "field 'g' is {\"h\":1.50}, and the schema has no such field"),
    ],
)
def test_a_value_that_is_no_such_object_is_refused(value: bytes, reason: str) -> None:
    assert decoded([("f", pa.float64())], value).startswith(reason)


def test_what_is_within_other_fields_is_named_by_its_path() -> None:
    kind = [("a", pa.list_(pa.struct([("b", pa.map_(pa.string(), pa.int32()))])))]
    assert decoded(kind, '{"a":[null,{"b":{"x y":1,"z":"2"}}]}') == (
        "field 'a[1].b.z' is \"2\", and not a whole number"
    )
    assert decoded(kind, '{"a":[{}]}') == "field 'a[0].b' is missing"


def test_a_field_that_must_not_be_null_is_not() -> None:
    kind = [pa.field("f", pa.int32(), nullable=False), ("g", pa.int32())]
    assert decoded(kind, '{"f":null,"g":1}') == "field 'f' is null, and the schema says NOT NULL"
    assert decoded(kind, '{"f":1,"g":null}') == {"f": 1, "g": None}
    assert decoded(kind, '{"f":1}', "missing") == {"f": 1, "g": None}
    assert decoded(kind, '{"g":1}', "missing") == "field 'f' is missing"


def test_what_is_allowed_is_allowed_alone() -> None:
    kind = [("f", pa.int32()), ("t", UTC_TIME)]
    assert decoded(kind, '{"f":1,"t":null,"x":2}', "extra") == {"f": 1, "t": None}
    assert decoded(kind, '{"f":1}', "extra") == "field 't' is missing"
    assert decoded(kind, '{"x":1}', "missing").startswith("field 'x' is 1, and the schema has no such field")
    assert decoded(kind, '{"x":1}', "missing", "extra") == {"f": None, "t": None}
    cut = decoded(kind, '{"f":1,"t":"1970-01-01T00:00:00.000000999Z"}', "nanoseconds")
    assert cut["t"].microsecond == 0


def test_a_tombstone_is_refused_only_where_that_is_asked_for() -> None:
    columns = JsonColumns(pa.struct([("f", pa.int32())]))
    values = pa.array([None, b'{"f":1}'])
    found = decode_rows(columns.type, columns.row, values, TOMBSTONE_FAULT).to_pylist()
    assert found == [{"value": None, "fault": TOMBSTONE_FAULT}, {"value": {"f": 1}, "fault": None}]
    assert decode_rows(columns.type, columns.row, values).to_pylist()[0] == {"value": None, "fault": None}


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.map_(pa.int32(), pa.int32())])
def test_a_type_that_json_has_no_form_of_is_refused_before_anything_is_read(kind: Any) -> None:
    with pytest.raises(InvalidSchema):
        JsonColumns(pa.struct([("f", kind)]))


def test_a_reason_is_short_and_has_bytes() -> None:
    found = decoded([("f", pa.int32())], f'{{"f":"{"x" * 10_000}"}}')
    assert len(found) < 200
    assert decoded([("f", pa.int32())], '{"f":"\\ud800"}').encode()


def test_what_pipelines_write_beside_fields_is_no_extra_field_of_a_value() -> None:
    from ottla.pipelines.spark import frames

    assert {f"_{name}" for name in frames._RAW if name != "value"} == BESIDE_VALUES
    inner = pa.struct([("a", pa.string())])
    columns = JsonColumns(pa.struct([("id", pa.string()), ("inner", inner)]))
    let_through = dict.fromkeys(BESIDE_VALUES, 1)
    assert columns.row(json.dumps({"id": "x", "inner": {"a": "y"}, **let_through}).encode()) == {
        "id": "x",
        "inner": {"a": "y"},
    }
    for value in (
        {"id": "x", "inner": {"a": "y"}, **let_through, "_other": 1},
        {"id": "x", "inner": {"a": "y", "_key": 1}},
    ):
        with pytest.raises(Misfit, match="the schema has no such field"):
            columns.row(json.dumps(value).encode())

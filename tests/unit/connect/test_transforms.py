"""Transformations and predicates, one record at a time."""

import datetime
from typing import Any

import pytest

from ottla.connect.catalog import all_plugins
from ottla.connect.data.record import Header, Record
from ottla.connect.data.schema import INT32, INT64, STRING, TIMESTAMP_SCHEMA, Schema, optional, struct
from ottla.connect.errors import DataError
from ottla.connect.transforms.java_dates import parse_date
from ottla.connect.transforms.sides import Side

PLUGINS = all_plugins()
ROW = struct({"id": INT32, "name": optional(STRING), "inner": struct({"x": INT64}, is_optional=True)})
VALUE = {"id": 7, "name": "ann", "inner": {"x": 1}}


def _record(schema: Schema | None = ROW, value: Any = VALUE) -> Record:
    return Record("orders", 3, None, None, schema, value, 1_767_225_600_000)


def _apply(name: str, record: Record, **config: str) -> Record | None:
    plugin = PLUGINS.find(f"org.apache.kafka.connect.transforms.{name}")
    assert plugin is not None
    given = {key.replace("_", "."): value for key, value in config.items()}
    for key in plugin.keys:
        assert key.errors(given) == []
    changed: Record | None = plugin.make(given).apply(record)
    return changed


def _value(name: str, schema: Schema | None = ROW, value: Any = VALUE, **config: str) -> Any:
    changed = _apply(f"{name}$Value", _record(schema, value), **config)
    assert changed is not None
    if changed.value_schema is not None and isinstance(changed.value, dict):
        assert [item.name for item in changed.value_schema.fields] == list(changed.value)
    return changed.value


def test_a_format_that_can_divide_digits_in_many_ways_is_read_in_linear_time() -> None:
    # Python would try each of 2 ** 40 ways.
    with pytest.raises(DataError, match="does not match"):
        parse_date("Md" * 20, "1" * 60 + "x")


def test_topics_are_renamed_as_java_does() -> None:
    routed = _apply("RegexRouter", _record(), regex="(or)(.*)", replacement="$2-${1}-\\$1")
    assert routed is not None
    assert routed.topic == "ders-or-$1"
    untouched = _apply("RegexRouter", _record(), regex="or", replacement="x")
    assert untouched is not None
    assert untouched.topic == "orders"
    dated = _apply(
        "TimestampRouter", _record(), topic_format="${topic}_${timestamp}", timestamp_format="yyyy-MM"
    )
    assert dated is not None
    assert dated.topic == "orders_2026-01"


@pytest.mark.parametrize("schema", [ROW, None])
def test_fields_with_and_without_a_schema(schema: Schema | None) -> None:
    assert _value("ReplaceField", schema, exclude="inner", renames="name:who") == {"id": 7, "who": "ann"}
    assert _value("ReplaceField", schema, include="id") == {"id": 7}
    assert _value("MaskField", schema, fields="id,name") == {"id": 0, "name": "", "inner": {"x": 1}}
    assert _value("MaskField", schema, fields="name", replacement="***")["name"] == "***"
    assert _value("Flatten", schema, delimiter="_") == {"id": 7, "name": "ann", "inner_x": 1}
    assert _value("Cast", schema, spec="id:string,name:string")["id"] == "7"
    assert _value("ExtractField", schema, field="id") == 7
    assert _value("ExtractField", schema, field="inner.x", field_syntax_version="V2") == 1
    assert _value("HoistField", schema, field="row") == {"row": VALUE}
    inserted = _value("InsertField", schema, topic_field="t", static_field="s!", static_value="v")
    assert (inserted["t"], inserted["s"], inserted["id"]) == ("orders", "v", 7)


def test_numbers_that_do_not_fit_wrap_as_in_java() -> None:
    assert _value("Cast", INT32, 200, spec="int8") == -56
    assert _value("Cast", STRING, "12", spec="int64") == 12
    with pytest.raises(DataError):
        _value("Cast", STRING, "twelve", spec="int64")


def test_times_between_their_forms() -> None:
    when = datetime.datetime(2026, 1, 1, 12, 30, tzinfo=datetime.UTC)
    row = struct({"at": TIMESTAMP_SCHEMA})
    text = _value(
        "TimestampConverter",
        row,
        {"at": when},
        field="at",
        target_type="string",
        format="yyyy-MM-dd'T'HH:mm:ssX",
    )
    assert text == {"at": "2026-01-01T12:30:00Z"}
    parsed = _value("TimestampConverter", STRING, "01/02/26", target_type="Date", format="dd/MM/yy")
    assert parsed == datetime.date(2026, 2, 1)
    assert _value("TimestampConverter", row, {"at": when}, field="at", target_type="unix") == {
        "at": 1_767_270_600_000
    }
    assert (
        _value("TimestampConverter", INT64, 1_767_270_600, target_type="Timestamp", unix_precision="seconds")
        == when
    )
    # Numbers of nanoseconds have more digits than a float.
    odd = datetime.datetime(2026, 1, 1, 12, 30, 0, 123_000, datetime.UTC)
    nanos = 1_767_270_600_123_000_001
    assert (
        _value("TimestampConverter", INT64, nanos, target_type="Timestamp", unix_precision="nanoseconds")
        == odd
    )
    for unit, number in (
        ("nanoseconds", nanos - 1),
        ("microseconds", 1_767_270_600_123_000),
        ("seconds", 1_767_270_600),
    ):
        assert (
            _value("TimestampConverter", TIMESTAMP_SCHEMA, odd, target_type="unix", unix_precision=unit)
            == number
        )
    # As in Java, what is left over goes towards zero.
    before = _value("TimestampConverter", INT64, -1_500, target_type="unix", unix_precision="microseconds")
    assert before == -1_000


def test_keys_and_headers() -> None:
    keyed = _apply("ValueToKey", _record(), fields="id")
    assert keyed is not None
    assert keyed.key == {"id": 7}
    assert keyed.key_schema == struct({"id": INT32})
    moved = _apply("HeaderFrom$Value", _record(), fields="name", headers="who", operation="move")
    assert moved is not None
    assert moved.headers == (Header("who", optional(STRING), "ann"),)
    assert "name" not in moved.value
    added = _apply("InsertHeader", moved, header="h", value_literal="1")
    assert added is not None
    dropped = _apply("DropHeaders", added, headers="who")
    assert dropped is not None
    assert [item.name for item in dropped.headers] == ["h"]


def test_predicates_say_which_records() -> None:
    tombstone = _record(None, None)
    for name, config, yes, no in (
        ("RecordIsTombstone", {}, tombstone, _record()),
        ("TopicNameMatches", {"pattern": "ord.*"}, _record(), Record("x", 0, None, None, None, None)),
        (
            "HasHeaderKey",
            {"name": "h"},
            Record("x", 0, None, None, None, None, headers=(Header("h", None, 1),)),
            _record(),
        ),
    ):
        plugin = PLUGINS.find(name)
        assert plugin is not None
        predicate = plugin.make(config)
        assert predicate.test(yes) is True
        assert predicate.test(no) is False
    assert _apply("Filter", _record()) is None


def test_all_of_kafkas_transformations_are_there() -> None:
    names = {item.simple_name for item in PLUGINS.all if item.kind == "transformation"}
    sided = (
        "Cast",
        "ExtractField",
        "Flatten",
        "HeaderFrom",
        "HoistField",
        "InsertField",
        "MaskField",
        "ReplaceField",
        "SetSchemaMetadata",
        "TimestampConverter",
    )
    expected = {f"{name}${side}" for name in sided for side in ("Key", "Value")}
    expected |= {"DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey"}
    assert names == expected | {"ExtractNewRecordState"}


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [(None, 7, "int"), (None, None, "NoneType"), (STRING, "x", "STRING"), (STRING, {"a": 1}, "STRING")],
)
def test_only_what_has_fields_has_fields(schema: Schema | None, value: Any, found: str) -> None:
    with pytest.raises(DataError, match=f"^Only a struct or a map is supported for hoisting, found {found}$"):
        Side(is_key=False).fields(_record(schema, value), "hoisting")
    assert Side(is_key=False).fields(_record(), "hoisting") == (ROW, VALUE)

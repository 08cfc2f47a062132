"""Avro schemas: texts, normalization, defaults, and who can read what."""

import json
from typing import Any

import pytest

from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.errors import InvalidSchema


def _schema(value: Any) -> AvroSchema:
    return AvroSchema(json.dumps(value))


def _record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def _field(kind: Any, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def _enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"type": "string"}, '"string"'),
        ({"type": "string", "logicalType": "uuid"}, '{"type":"string","logicalType":"uuid"}'),
        (["null", {"type": "int"}], '["null","int"]'),
        ({"type": "array", "items": "int", "x": 1}, '{"type":"array","items":"int","x":1}'),
        (
            {"fields": [], "doc": "d", "name": "a.b.R", "type": "record", "aliases": ["O"]},
            '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[],"aliases":["O"]}',
        ),
        (
            _record(_field(_record(name="n.S")), _field("n.S", "b"), namespace="n"),
            (
                '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"record",'
                '"name":"S","fields":[]}},{"name":"b","type":"S"}]}'
            ),
        ),
        # A name may be used before it is defined.
        (
            _record(_field(["null", "S"]), _field(_record(name="S"), "b")),
            (
                '{"type":"record","name":"R","fields":[{"name":"a","type":["null",{"type":"record","name":"S",'
                '"fields":[]}]},{"name":"b","type":"S"}]}'
            ),
        ),
        (_record(_field("double", default=1e10)), None),
    ],
)
def test_the_text_is_the_one_that_java_prints(given: Any, text: str | None) -> None:
    printed = _schema(given).text
    if text is None:
        assert '"default":1.0E10' in printed
    else:
        assert printed == text
    assert AvroSchema(printed).text == printed


def test_normalization_sorts_what_has_no_order() -> None:
    schema = _schema(_record(_field({"type": "int", "z": 1, "logicalType": "date", "b": {"y": 1, "x": 2}})))
    assert '{"type":"int","logicalType":"date","b":{"x":2,"y":1},"z":1}' in schema.normalized().text


@pytest.mark.parametrize(
    "given",
    [
        {"type": "what"},
        {"type": "record", "fields": []},
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R-x", "fields": []},
        _record(_field("int"), _field("int")),
        _record(_field("Nope")),
        ["int", "int"],
        ["int", ["string"]],
        _enum("A", "A"),
        _enum("A", default="B"),
        {"type": "fixed", "name": "F"},
        {"type": "array"},
        5,
    ],
)
def test_what_is_no_schema_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSchema):
        _schema(given)


@pytest.mark.parametrize(
    ("kind", "default", "fits"),
    [
        ("int", 1, True),
        ("int", "x", False),
        ("int", 1 << 31, False),
        ("long", 1 << 31, True),
        ("int", True, False),
        ("double", 1, True),
        (["string", "null"], None, True),
        (["string", "null"], 1, False),
        ({"type": "array", "items": "int"}, [1, "x"], False),
        ({"type": "map", "values": "int"}, {"a": 1}, True),
        (_record(_field("int"), name="S"), {"a": 1}, True),
        (_record(_field("int"), name="S"), {}, False),
    ],
)
def test_defaults_must_be_values_of_their_types(kind: Any, default: Any, fits: bool) -> None:
    schema = _schema(_record(_field(kind, default=default)))
    if fits:
        schema.check()
    else:
        with pytest.raises(InvalidSchema, match="the default"):
            schema.check()


BASE = _record(_field("int"))


@pytest.mark.parametrize(
    ("reader", "writer", "kinds"),
    [
        (BASE, BASE, []),
        (_record(_field("int"), _field("int", "b", default=0)), BASE, []),
        (_record(_field("int"), _field("int", "b")), BASE, ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
        (_record(), BASE, []),
        (_record(_field("long")), BASE, []),
        (BASE, _record(_field("long")), ["TYPE_MISMATCH"]),
        ("string", "bytes", []),
        ("float", "long", []),
        (_record(_field("int", "b", aliases=["a"])), BASE, []),
        ({**BASE, "name": "S"}, BASE, ["NAME_MISMATCH"]),
        ({**BASE, "name": "S", "aliases": ["R"]}, BASE, []),
        ({**BASE, "name": "other.R"}, BASE, []),
        (["int", "string"], "int", []),
        ("int", ["int", "string"], ["TYPE_MISMATCH"]),
        (["int"], ["int", "string"], ["MISSING_UNION_BRANCH"]),
        (["long", "null"], "int", []),
        (_enum("A"), _enum("A", "B"), ["MISSING_ENUM_SYMBOLS"]),
        (_enum("A", default="A"), _enum("A", "B"), []),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            ["FIXED_SIZE_MISMATCH"],
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "bytes", []),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, []),
    ],
)
def test_compatibility_follows_avros_rules(reader: Any, writer: Any, kinds: list[str]) -> None:
    found = _schema(reader).differences(_schema(writer))
    assert [item.kind for item in found] == kinds
    assert all(item.sentence("new", "old") and "{" not in item.sentence("new", "old") for item in found)


def test_recursive_schemas_can_be_compared() -> None:
    one = _schema(_record(_field(["null", "R"])))
    other = _schema(_record(_field(["null", "R"]), _field("int", "b")))
    assert one.differences(one) == []
    assert [item.path for item in other.differences(one)] == ["/fields/1"]


def test_references_are_printed_by_name() -> None:
    base = json.dumps(_record(_field("int"), name="n.Base"))
    user = AvroSchema(json.dumps(_record(_field("n.Base"), name="n.User")), (), {"n.Base": base})
    assert '"type":"Base"' in user.text
    assert '"fields":[{"name":"a","type":"int"}]' in user.formatted("resolved")

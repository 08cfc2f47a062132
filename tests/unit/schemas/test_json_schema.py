"""JSON Schemas: Confluent's rules of what may change, references, and values that do not fit."""

import json
from typing import Any

import pytest

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.json_schema.validation import make_check


def _schema(value: Any) -> JsonSchema:
    return JsonSchema(json.dumps(value))


def _object(closed: bool = False, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {**schema, "additionalProperties": False} if closed else schema


def _modern(**keywords: Any) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **keywords}


def _closed_since(**properties: Any) -> dict[str, Any]:
    properties["a"] = {"type": "string"}
    return _modern(type="object", properties=properties, unevaluatedProperties=False)


def _referring(beside: Any, definition: Any) -> dict[str, Any]:
    schema = _object(a={"$ref": "#/definitions/d", **beside})
    return {**schema, "definitions": {"d": definition}}


TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
TREE = {"$ref": "#/definitions/t", "definitions": {"t": _object(next={"$ref": "#/definitions/t"}, v=TEXT)}}
OTHER_TREE = json.loads(json.dumps(TREE).replace('"string"', '"boolean"'))


@pytest.mark.parametrize(
    ("new", "old", "is_fine"),
    [
        # Properties, open and closed.
        (_object(a=TEXT, b=TEXT), _object(a=TEXT), False),
        (_object(a=TEXT, b={}), _object(a=TEXT), True),
        (_object(True, a=TEXT, b=TEXT), _object(True, a=TEXT), True),
        (_object(a=TEXT), _object(a=TEXT, b=TEXT), True),
        (_object(True, a=TEXT), _object(True, a=TEXT, b=TEXT), False),
        ({**_object(True, a=TEXT), "required": ["a"]}, _object(True), False),
        ({**_object(True, a={"type": "string", "default": "x"}), "required": ["a"]}, _object(True), True),
        ({**_object(a=TEXT), "required": ["a"]}, _object(a=TEXT), False),
        (_object(a=TEXT), {**_object(a=TEXT), "required": ["a"]}, True),
        (_object(a=TEXT), _object(True, a=TEXT), True),
        (_object(True, a=TEXT), _object(a=TEXT), False),
        ({"type": "object", "additionalProperties": TEXT}, _object(True), True),
        (_object(a=TEXT), {"type": "object", "additionalProperties": TEXT}, True),
        # Limits.
        ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 4}, True),
        ({**TEXT, "maxLength": 3}, {**TEXT, "maxLength": 4}, False),
        (TEXT, {**TEXT, "pattern": "x"}, True),
        ({**TEXT, "pattern": "x"}, TEXT, False),
        ({**NUMBER, "exclusiveMaximum": 3}, {**NUMBER, "exclusiveMaximum": 4}, False),
        ({**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 4}, True),
        ({**NUMBER, "multipleOf": 0.5}, {**NUMBER, "multipleOf": 0.25}, False),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, False),
        # Types.
        (NUMBER, WHOLE, True),
        (WHOLE, NUMBER, False),
        ({"type": ["string", "null"]}, TEXT, True),
        (TEXT, {"type": ["string", "null"]}, False),
        ({}, TEXT, True),
        (TEXT, {}, False),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, True),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, False),
        ({"enum": ["a"]}, {"const": "a"}, False),
        # Combinations.
        ({"oneOf": [TEXT, WHOLE]}, {"oneOf": [TEXT]}, True),
        ({"oneOf": [TEXT]}, {"oneOf": [WHOLE, TEXT]}, False),
        ({"oneOf": [WHOLE, TEXT]}, {"oneOf": [TEXT, WHOLE]}, True),
        ({"anyOf": [TEXT, WHOLE]}, {"oneOf": [TEXT, WHOLE]}, True),
        ({"oneOf": [TEXT, WHOLE]}, TEXT, True),
        ({"allOf": [TEXT]}, TEXT, True),
        ({"allOf": [TEXT, {"minLength": 1}]}, {"allOf": [TEXT]}, False),
        ({"not": {"type": "string", "maxLength": 3}}, {"not": TEXT}, True),
        ({"not": TEXT}, {"not": {"type": "string", "maxLength": 3}}, False),
        ({**_object(a=TEXT), "if": {}, "then": {}}, _object(a=TEXT), False),
        # Arrays.
        ({"type": "array", "items": NUMBER}, {"type": "array", "items": WHOLE}, True),
        ({"type": "array", "items": [TEXT, TEXT]}, {"type": "array", "items": [TEXT]}, False),
        (
            {"type": "array", "items": [TEXT, TEXT], "additionalItems": False},
            {"type": "array", "items": [TEXT], "additionalItems": False},
            True,
        ),
        ({"additionalItems": False}, {"additionalItems": True}, False),
        ({"additionalItems": TEXT}, {"additionalItems": NUMBER}, False),
        # Dependencies.
        ({"dependencies": {"a": ["b"], "c": TEXT}}, {"dependencies": {"c": TEXT, "a": ["b", "d"]}}, True),
        ({"dependencies": {"c": TEXT, "a": ["b", "d"]}}, {"dependencies": {"a": ["b"], "c": TEXT}}, False),
        # References: keywords beside them are not looked at, and only one is followed.
        (_referring({"maximum": 1}, NUMBER), _referring({}, NUMBER), True),
        (_referring({}, TEXT), _referring({}, NUMBER), False),
        (_referring({}, {"$ref": "#/definitions/d"}), _referring({}, {"$ref": "#/definitions/d"}), True),
        # Branches that differ by a title are two.
        ({"oneOf": [TEXT]}, {"oneOf": [TEXT, {**TEXT, "title": "t"}]}, False),
        # Since 2019-09 each keyword counts by itself.
        (_modern(properties={}), _modern(), True),
        (_modern(type="array", contains={}, minContains=1), _modern(type="array", contains={}), True),
        (_modern(type="array", contains={}), _modern(type="array", contains={}, minContains=2), True),
        (_modern(type="array", contains={}, minContains=2), _modern(type="array", contains={}), False),
        (_modern(items=False), _modern(items=True), False),
        (_modern(dependencies={"a": ["b"]}), _modern(), True),
        (_modern(anyOf=[{"const": 1, "type": "number"}]), _modern(anyOf=[{"const": 1}]), True),
        (_modern(anyOf=[{"const": 1}]), _modern(anyOf=[{"const": 1, "type": "number"}]), False),
        (_closed_since(b=TEXT), _closed_since(), True),
        (_closed_since(), _closed_since(b=TEXT), False),
        ({**_closed_since(), "$defs": {"d": {}}}, {**_closed_since(b=TEXT), "$defs": {"d": {}}}, True),
        # What has no bearing.
        ({**TEXT, "title": "t", "description": "d", "default": "x", "format": "date"}, TEXT, True),
        (TREE, TREE, True),
        (OTHER_TREE, TREE, False),
    ],
)
def test_compatibility_follows_confluents_rules(new: Any, old: Any, is_fine: bool) -> None:
    found = _schema(new).differences(_schema(old))
    assert (not found) == is_fine, found
    assert all("'#/" in item.sentence("new", "old") for item in found)


def test_a_lenient_policy_lets_open_models_grow() -> None:
    new, old = _schema(_object(a=TEXT, b=TEXT)), _schema(_object(a=TEXT))
    assert new.differences(old)
    assert new.differences(old, is_lenient=True) == []


def test_definitions_that_refer_to_each_other_are_compared_in_time() -> None:
    names = [f"d{n}" for n in range(25)]
    branches = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions = {name: {"type": "object", "properties": {f"p{name}": branches}} for name in names}
    schema = {"$ref": "#/definitions/d0", "definitions": definitions}
    assert _schema(schema).differences(_schema(json.loads(json.dumps(schema)))) == []


@pytest.mark.parametrize(
    "given",
    [
        {"type": "strin"},
        {"minLength": "x"},
        {"properties": []},
        {"$ref": "nope.json"},
        {"$ref": "#/definitions/x"},
    ],
)
def test_what_is_no_schema_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSchema):
        _schema(given).check()


def test_values_that_do_not_fit_are_found_through_references() -> None:
    schema = JsonSchema('{"properties":{"a":{"$ref":"b.json"}}}', (), {"b.json": '{"type":"integer"}'})
    schema.check()
    check = make_check(schema)
    assert check({"a": 1}) is None
    assert check({"a": "x"}) == "field a: 'x' is not of type 'integer'"

"""Small schemas cannot take hours or gigabytes. Without the bounds none of these tests would end."""

import json
from typing import Any

import pytest

from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema import comparing
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.protobuf.schema import ProtobufSchema

LEVELS = 60


def test_a_pattern_takes_time_in_proportion_to_the_name() -> None:
    pattern, name = "^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200
    before = {"type": "object", "properties": {name: {"type": "string"}}}
    after = {
        "type": "object",
        "patternProperties": {pattern: {"type": "string"}},
        "additionalProperties": False,
    }
    found = JsonSchema(json.dumps(after)).differences(JsonSchema(json.dumps(before)))
    assert found


def test_a_pattern_that_cannot_be_bounded_matches_nothing() -> None:
    def differences(pattern: str) -> int:
        before = {"type": "object", "properties": {"aa": {"type": "string"}}, "additionalProperties": False}
        after = {
            "type": "object",
            "patternProperties": {pattern: {"type": "string"}},
            "additionalProperties": False,
        }
        return len(JsonSchema(json.dumps(after)).differences(JsonSchema(json.dumps(before))))

    assert differences("^a+$") == 0
    assert differences(r"^(a)\1$") == 1


def _doubling(innermost: Any) -> str:
    """Return a schema in which each level has the level below twice."""
    definitions = {
        f"l{level}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/definitions/l{level + 1}"} for name in "ab"},
        }
        for level in range(LEVELS)
    }
    definitions[f"l{LEVELS}"] = innermost
    return json.dumps({"$ref": "#/definitions/l0", "definitions": definitions})


def test_differences_of_json_schemas_that_double_are_bounded() -> None:
    reader, writer = JsonSchema(_doubling({"type": "string"})), JsonSchema(_doubling({"type": "number"}))
    found = reader.differences(writer)
    assert 0 < len(found) <= 1000
    assert {item.kind for item in found} == {"TYPE_CHANGED"}


def _record(level: int, innermost: str) -> Any:
    """Return a record in which each level has the level below twice."""
    if level == LEVELS // 2:
        return innermost
    fields = [{"name": "a", "type": _record(level + 1, innermost)}, {"name": "b", "type": f"R{level + 1}"}]
    if level + 1 == LEVELS // 2:
        fields[1]["type"] = innermost
    return {"type": "record", "name": f"R{level}", "fields": fields}


def test_differences_of_avro_schemas_that_double_are_bounded() -> None:
    reader = AvroSchema(json.dumps(_record(0, "string")))
    writer = AvroSchema(json.dumps(_record(0, "long")))
    assert 0 < len(reader.differences(writer)) <= 1000


def _chain(kind: str) -> ProtobufSchema:
    """Return a file that imports a chain of files, each with two fields of the message of the next one."""
    files = {}
    for level in range(LEVELS):
        fields = "".join(f"M{level + 1} {name} = {number}; " for number, name in enumerate("ab", 1))
        files[f"l{level}.proto"] = (
            f'syntax = "proto3"; import "l{level + 1}.proto"; message M{level} {{ {fields} }}'
        )
    files[f"l{LEVELS}.proto"] = f'syntax = "proto3"; message M{LEVELS} {{ {kind} x = 1; }}'
    return ProtobufSchema('syntax = "proto3"; import "l0.proto"; message M { M0 a = 1; }', (), files)


def test_imports_of_protobuf_that_meet_again_are_compared_once() -> None:
    assert _chain("string").differences(_chain("string")) == []
    found = _chain("string").differences(_chain("float"))
    assert "FIELD_SCALAR_KIND_CHANGED" in {item.kind for item in found}


def test_very_many_branches_are_refused() -> None:
    def branches(kind: str) -> JsonSchema:
        return JsonSchema(
            json.dumps({"oneOf": [{"type": "array", "items": {kind: number}} for number in range(1, 4000)]})
        )

    with pytest.raises(InvalidSchema, match="use fewer branches"):
        branches("minLength").differences(branches("maxLength"))


def test_very_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_PAIRS_MAX", 20)

    def fields(kind: str) -> JsonSchema:
        properties = {f"field-{number}": {"type": kind} for number in range(30)}
        return JsonSchema(json.dumps({"type": "object", "properties": properties}))

    with pytest.raises(InvalidSchema, match="more than 20 pairs"):
        fields("string").differences(fields("number"))

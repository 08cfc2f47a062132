"""Protobuf schemas: texts, descriptors, and Confluent's rules of what may change."""

import base64

import pytest
from google.protobuf import descriptor_pool

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.protobuf.schema import ProtobufSchema

FULL = """
// A comment.
syntax = "proto3"; package q;
import "google/protobuf/timestamp.proto"; import public "google/protobuf/any.proto";
option java_package = "x"; option (my.opt).part = {a: 1, b: "t" c { d: [1, 2] }};
message B {
  string s = 2 [deprecated = true, json_name = "S"]; int32 i = 1;
  map<string, B> m = 4; google.protobuf.Timestamp t = 3; optional bool o = 7;
  oneof choice { int32 x = 5; string y = 6; }
  reserved 9, 11 to 13, 100 to max; reserved "old", "older";
  enum E { option allow_alias = true; Z = 0; Y = 1; YY = 1; reserved 5; }
  message Empty {}
}
service S { rpc Do (stream B) returns (B) { option deprecated = true; } }
"""
PROTO2 = """
syntax = "proto2"; message M {
  required string a = 1 [default = "x\\ty"]; optional group G = 2 { optional int32 g = 3; }
  extensions 100 to 200; repeated int32 r = 4 [packed = true];
} extend M { optional int32 e = 100; }
"""


@pytest.mark.parametrize("source", [FULL, PROTO2, 'edition = "2023"; message M { int32 a = 1; }'])
def test_a_text_that_was_printed_prints_the_same(source: str) -> None:
    text = ProtobufSchema(source).text
    assert ProtobufSchema(text).text == text


def test_a_text_and_its_descriptor_are_the_same_once_normalized() -> None:
    source = FULL.replace('option (my.opt).part = {a: 1, b: "t" c { d: [1, 2] }};', "")
    schema = ProtobufSchema(source)
    descriptor = base64.b64encode(schema.descriptor().SerializeToString()).decode()
    again = ProtobufSchema(descriptor)
    assert again.normalized().text == schema.normalized().text
    assert schema.normalized().normalized().text == schema.normalized().text


@pytest.mark.parametrize("source", [FULL, PROTO2])
def test_descriptors_are_accepted_by_the_library(source: str) -> None:
    file = ProtobufSchema(source).add_to_pool(descriptor_pool.DescriptorPool())
    assert file.message_types_by_name


@pytest.mark.parametrize(
    "source",
    ["message {", "message M { Nope a = 1; }", "message M { int32 a = x; }", "what", "message M {", '"', "@"],
)
def test_what_is_no_schema_is_refused(source: str) -> None:
    with pytest.raises(InvalidSchema):
        ProtobufSchema(source).check()


def _m(body: str, more: str = "") -> str:
    return f'syntax = "proto3"; message M {{ {body} }} {more}'


@pytest.mark.parametrize(
    ("new", "old", "kinds"),
    [
        (_m("int32 a = 1; int32 b = 2;"), _m("int32 a = 1;"), []),
        (_m(""), _m("int32 a = 1;"), []),
        (_m("int32 other = 1;"), _m("int32 a = 1;"), []),
        (_m("uint64 a = 1;"), _m("bool a = 1;"), []),
        (_m("E a = 1;", "enum E { Z = 0; }"), _m("int32 a = 1;"), []),
        (_m("sint32 a = 1;"), _m("int32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (_m("string a = 1;"), _m("bytes a = 1;"), []),
        (_m("fixed32 a = 1;"), _m("fixed64 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (_m("repeated int32 a = 1;"), _m("int32 a = 1;"), []),
        (_m("repeated int32 a = 1;"), _m("optional int32 a = 1;"), ["FIELD_NUMERIC_LABEL_CHANGED"]),
        (_m("repeated string a = 1;"), _m("optional string a = 1;"), []),
        (_m("map<string, int64> a = 1;"), _m("map<bytes, int32> a = 1;"), []),
        (_m("map<string, string> a = 1;"), _m("map<string, int32> a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (_m("N a = 1;", "message N {}"), _m("int32 a = 1;", "message N {}"), ["FIELD_KIND_CHANGED"]),
        (
            _m("N a = 1;", "message N {} message O {}"),
            _m("O a = 1;", "message N {} message O {}"),
            ["FIELD_NAMED_TYPE_CHANGED"],
        ),
        (_m("int32 a = 1;"), _m("int32 a = 1;", "message N {}"), ["MESSAGE_REMOVED"]),
        (_m("", "message N {}"), _m(""), []),
        (_m("", "package p;"), _m(""), ["PACKAGE_CHANGED"]),
        (_m("oneof o { int32 a = 1; }"), _m("int32 a = 1;"), []),
        (
            _m("oneof o { int32 a = 1; int32 b = 2; }"),
            _m("int32 a = 1; int32 b = 2;"),
            ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"],
        ),
        (
            _m("oneof o { int32 a = 1; int32 b = 2; }"),
            _m("oneof o { int32 a = 1; } int32 b = 2;"),
            ["FIELD_MOVED_TO_EXISTING_ONEOF"],
        ),
        (
            _m("oneof o { int32 a = 1; }"),
            _m("oneof o { int32 a = 1; int32 b = 2; }"),
            ["ONEOF_FIELD_REMOVED"],
        ),
        (_m("oneof p { int32 a = 1; }"), _m("oneof o { int32 a = 1; }"), []),
        (_m("enum E { A = 0; }"), _m("enum E { B = 1; }"), []),
    ],
)
def test_compatibility_follows_confluents_rules(new: str, old: str, kinds: list[str]) -> None:
    found = ProtobufSchema(new).differences(ProtobufSchema(old))
    assert [item.kind for item in found] == kinds


def test_messages_of_imports_are_compared_too() -> None:
    user = 'syntax = "proto3"; import "b.proto"; message M { b.B x = 1; }'
    one = ProtobufSchema(user, (), {"b.proto": 'syntax = "proto3"; package b; message B { int32 v = 1; }'})
    other = ProtobufSchema(user, (), {"b.proto": 'syntax = "proto3"; package b; message B { string v = 1; }'})
    assert one.differences(one) == []
    assert {item.kind for item in other.differences(one)} == {
        "FIELD_SCALAR_KIND_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
    }

"""Serializers say with each value which schema it has, and deserializers believe only what fits."""

import datetime
import decimal
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, struct_pb2

from ottla.client.registry.avro import AvroDeserializer, AvroSerializer
from ottla.client.registry.client import Registered, RegistryClient, RegistryRefused
from ottla.client.registry.json_schema import JsonDeserializer, JsonSerializer
from ottla.client.registry.protobuf import ProtobufDeserializer, ProtobufSerializer, message_class
from ottla.client.registry.subjects import record_name, topic_name, topic_record_name
from ottla.schemas.errors import InvalidSchema, MisfitValue, UnreadableValue
from ottla.schemas.parsed import Reference
from ottla.schemas.protobuf.schema import ProtobufSchema


class Registry(RegistryClient):
    """A registry in memory. It notes what it is asked for."""

    def __init__(self) -> None:
        self.schemas: list[Registered] = []
        self.asked: list[tuple[Any, ...]] = []
        self.tells_guids = True
        self.tells_versions = True

    def register(
        self,
        subject: str,
        text: str,
        schema_type: str = "AVRO",
        references: Sequence[Reference] = (),
        *,
        normalize: bool = False,
    ) -> Registered:
        self.asked.append(("register", subject, normalize))
        for known in self.schemas:
            if (known.subject, known.text) == (subject, text):
                return known
        number = len(self.schemas) + 1
        guid = str(uuid.UUID(int=number)) if self.tells_guids else None
        found = Registered(number, schema_type, text, tuple(references), subject, 1, guid)
        self.schemas.append(found)
        if not self.tells_versions:
            return Registered(number, schema_type, text, tuple(references), subject, None, guid)
        return found

    def find(
        self,
        subject: str,
        text: str,
        schema_type: str = "AVRO",
        references: Sequence[Reference] = (),
        *,
        normalize: bool = False,
    ) -> Registered:
        self.asked.append(("find", subject, normalize))
        return self._one(known for known in self.schemas if (known.subject, known.text) == (subject, text))

    def by_id(self, schema_id: int, subject: str | None = None) -> Registered:
        self.asked.append(("by_id", schema_id))
        return self._one(known for known in self.schemas if known.id == schema_id)

    def by_guid(self, guid: str) -> Registered:
        self.asked.append(("by_guid", guid))
        return self._one(known for known in self.schemas if known.guid == guid)

    def version(self, subject: str, version: int) -> Registered:
        return self._one(known for known in self.schemas if known.subject == subject)

    def latest(self, subject: str) -> Registered:
        self.asked.append(("latest", subject))
        return self._one(known for known in reversed(self.schemas) if known.subject == subject)

    def _one(self, found: Any) -> Registered:
        known: Registered | None = next(iter(found), None)
        if known is None:
            raise RegistryRefused(40403, "Schema not found")
        return known


@pytest.fixture
def registry() -> Registry:
    return Registry()


def record(**fields: Any) -> str:
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": listed})


A = record(a="int")
JSON_A = json.dumps(
    {"type": "object", "title": "R", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
)
PROTO = """syntax = "proto3"; package p;
message One { message In { int32 x = 1; } int32 a = 1; }
message Two { string b = 1; }"""


# What all have in common


def test_a_value_begins_with_the_id_of_its_schema_and_null_stays_null(registry: Registry) -> None:
    write, read = AvroSerializer(registry, A), AvroDeserializer(registry)
    data = write("t", {"a": 1})
    assert data == b"\0\0\0\0\1\2"
    assert read("t", data) == {"a": 1}
    assert (write("t", None), read("t", None)) == (None, None)


def test_a_schema_is_registered_once_for_each_topic_and_read_once(registry: Registry) -> None:
    write, read = AvroSerializer(registry, A, normalize=True), AvroDeserializer(registry)
    for topic in ("t", "t", "u", "t"):
        read(topic, write(topic, {"a": 1}))
    assert registry.asked == [
        ("register", "t-value", True),
        ("by_id", 1),
        ("register", "u-value", True),
        ("by_id", 2),
    ]


def test_subjects_are_named_by_a_strategy(registry: Registry) -> None:
    for strategy, is_key, subject in (
        (topic_name, False, "t-value"),
        (topic_name, True, "t-key"),
        (record_name, True, "n.R"),
        (topic_record_name, False, "t-n.R"),
    ):
        AvroSerializer(registry, A, subject=strategy, is_key=is_key)("t", {"a": 1})
        assert registry.schemas[-1].subject == subject
    for strategy in (record_name, topic_record_name):
        with pytest.raises(ValueError, match="the schema has no name"):
            strategy("t", False, None)


def test_without_auto_register_the_schema_must_be_there(registry: Registry) -> None:
    write = AvroSerializer(registry, A, auto_register=False)
    with pytest.raises(RegistryRefused):
        write("t", {"a": 1})
    AvroSerializer(registry, A)("t", {"a": 1})
    assert write("t", {"a": 1}) == b"\0\0\0\0\1\2"
    assert registry.asked[-1] == ("find", "t-value", False)


@pytest.mark.parametrize("serializer", [AvroSerializer, JsonSerializer])
def test_without_a_schema_the_latest_is_used(registry: Registry, serializer: Any) -> None:
    text = A if serializer is AvroSerializer else JSON_A
    registry.register("t-value", text, serializer.schema_type)
    write = serializer(registry)
    assert write("t", {"a": 1})[:5] == b"\0\0\0\0\1"
    assert registry.asked[-1] == ("latest", "t-value")
    with pytest.raises(ValueError, match="the schema has no name"):
        serializer(registry, subject=record_name)("t", {"a": 1})


def test_a_guid_may_be_in_a_header_and_the_value_bare(registry: Registry) -> None:
    for is_key, header in ((False, "__value_schema_id"), (True, "__key_schema_id")):
        write = AvroSerializer(registry, A, in_headers=True, is_key=is_key)
        read = AvroDeserializer(registry, is_key=is_key)
        assert write.with_headers is not None
        data, headers = write.with_headers("t", {"a": 1})
        assert data == write("t", {"a": 1}) == b"\2"
        ((name, value),) = headers
        number = len(registry.schemas)
        assert (name, value) == (header, b"\1" + uuid.UUID(int=number).bytes)
        for _ in range(2):
            assert read.with_headers("t", data, headers) == {"a": 1}
        assert registry.asked.count(("by_guid", str(uuid.UUID(int=number)))) == 1
        assert read.with_headers("t", None, headers) is None
        assert write.with_headers("t", None) == (None, ())
    plain = AvroSerializer(registry, A)
    assert plain.with_headers is None
    assert AvroDeserializer(registry).with_headers("t", plain("t", {"a": 1}), ()) == {"a": 1}


def test_a_registry_without_guids_has_none_for_headers(registry: Registry) -> None:
    registry.tells_guids = False
    with pytest.raises(ValueError, match="the registry tells no guids"):
        AvroSerializer(registry, A, in_headers=True)("t", {"a": 1})
    assert AvroSerializer(registry, A)("t", {"a": 1}) is not None


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", b"\1\0\0\0\1\2"])
def test_a_value_without_an_id_is_refused(registry: Registry, data: bytes) -> None:
    with pytest.raises(UnreadableValue, match="does not begin with the id of a schema"):
        AvroDeserializer(registry)("t", data)


def test_a_value_of_another_kind_of_schema_is_refused(registry: Registry) -> None:
    data = JsonSerializer(registry, JSON_A)("t", {"a": 1})
    for read in (AvroDeserializer(registry), ProtobufDeserializer(registry)):
        with pytest.raises(UnreadableValue, match="its schema 1 is of type JSON, not "):
            read("t", data)


# Avro


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": "x"}, "field a is 'x', which is not a int"),
        ({}, "field a is missing, and has no default"),
        ({"a": 1 << 31}, "field a is 2147483648, which is out of range for int"),
        ({"a": -(1 << 31) - 1}, "field a is -2147483649, which is out of range for int"),
        ({"a": 1.5}, "field a is 1.5, which is not a int"),
        ({"a": True}, "field a is True, which is not a int"),
        (7, "the value is 7, which is not a n.R"),
    ],
)
def test_a_misfit_of_avro_names_the_field(registry: Registry, value: Any, message: str) -> None:
    with pytest.raises(MisfitValue) as caught:
        AvroSerializer(registry, A)("t", value)
    assert str(caught.value) == message


def test_what_avro_can_hold_is_written(registry: Registry) -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    kinds: dict[str, tuple[Any, Any]] = {
        "low": ("int", -(1 << 31)),
        "high": ("int", (1 << 31) - 1),
        "long": ("long", (1 << 63) - 1),
        "whole": ("double", 3),
        "maybe": (["null", "int"], None),
        "time": ({"type": "long", "logicalType": "timestamp-millis"}, moment),
        "price": (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            decimal.Decimal("1.25"),
        ),
        "list": ({"type": "array", "items": "int"}, [1, 2]),
        "map": ({"type": "map", "values": "boolean"}, {"k": True}),
    }
    schema = record(**{name: kind for name, (kind, _) in kinds.items()})
    value = {name: given for name, (_, given) in kinds.items()}
    data = AvroSerializer(registry, schema)("t", value)
    assert AvroDeserializer(registry)("t", data) == value


def test_bytes_at_the_top_have_no_length(registry: Registry) -> None:
    data = AvroSerializer(registry, '"bytes"')("t", b"abc")
    assert data == b"\0\0\0\0\1abc"
    assert AvroDeserializer(registry)("t", data) == b"abc"


def test_a_reader_may_have_a_schema_of_its_own(registry: Registry) -> None:
    wider = json.loads(A)
    wider["fields"].append({"name": "b", "type": "string", "default": "none"})
    data = AvroSerializer(registry, A)("t", {"a": 1})
    assert AvroDeserializer(registry, json.dumps(wider))("t", data) == {"a": 1, "b": "none"}
    with pytest.raises(UnreadableValue, match="it is not a value of its schema"):
        AvroDeserializer(registry)("t", b"\0\0\0\0\1")


def test_a_schema_of_avro_may_refer_to_another(registry: Registry) -> None:
    registry.register("inner", A)
    reference = Reference("n.R", "inner", 1)
    outer = json.dumps({"type": "record", "name": "O", "fields": [{"name": "r", "type": "n.R"}]})
    data = AvroSerializer(registry, outer, references=[reference])("t", {"r": {"a": 2}})
    assert registry.schemas[-1].references == (reference,)
    assert AvroDeserializer(registry)("t", data) == {"r": {"a": 2}}


# JSON


def test_json_is_compact_and_checked_before_it_is_sent(registry: Registry) -> None:
    write = JsonSerializer(registry, JSON_A)
    data = write("t", {"a": 1, "b": "ü"})
    assert data == b"\0\0\0\0\1" + '{"a":1,"b":"ü"}'.encode()
    assert JsonDeserializer(registry)("t", data) == {"a": 1, "b": "ü"}
    with pytest.raises(MisfitValue):
        write("t", {"a": "x"})


def test_json_is_checked_again_only_where_that_is_wanted(registry: Registry) -> None:
    JsonSerializer(registry, JSON_A)("t", {"a": 1})
    wrong = b'\0\0\0\0\1{"a":"x"}'
    assert JsonDeserializer(registry)("t", wrong) == {"a": "x"}
    checking = JsonDeserializer(registry, validate=True)
    assert checking("t", b'\0\0\0\0\1{"a":5}') == {"a": 5}
    with pytest.raises(UnreadableValue):
        checking("t", wrong)
    with pytest.raises(UnreadableValue, match="it is not JSON"):
        checking("t", b"\0\0\0\0\1{")


# Protobuf


def test_a_message_is_named_by_its_path_in_the_file(registry: Registry) -> None:
    for name, path, value in (
        (None, b"\0", {"a": 1}),
        ("p.One", b"\0", {"a": 1}),
        ("p.Two", b"\2\2", {"b": "x"}),
        ("p.One.In", b"\4\0\0", {"x": 3}),
    ):
        write = ProtobufSerializer(registry, PROTO, message_name=name)
        data = write("t", value)
        assert data is not None
        assert data[:5] == b"\0\0\0\0\1"
        assert data[5:].startswith(path)
        found = ProtobufDeserializer(registry)("t", data)
        ((field, told),) = found.ListFields()
        assert {field.name: told} == value
    with pytest.raises(InvalidSchema, match=r"the schema has no message 'p\.Three'"):
        ProtobufSerializer(registry, PROTO, message_name="p.Three")


def test_a_message_that_is_not_in_the_file_is_refused(registry: Registry) -> None:
    ProtobufSerializer(registry, PROTO)("t", {"a": 1})
    for path in (b"\2\4", b"\4\2\0"):
        with pytest.raises(UnreadableValue, match="its schema has no message at"):
            ProtobufDeserializer(registry)("t", b"\0\0\0\0\1" + path)
    with pytest.raises(UnreadableValue, match=r"it is not a p\.One"):
        ProtobufDeserializer(registry)("t", b"\0\0\0\0\1\0\xff")


def test_a_value_must_fit_the_message(registry: Registry) -> None:
    write = ProtobufSerializer(registry, PROTO)
    for value in ({"a": "x"}, {"z": 1}, 7):
        with pytest.raises(MisfitValue, match=r"the value does not fit p\.One"):
            write("t", value)
    two = message_class(ProtobufSchema(PROTO, (), {}), "p.Two")
    with pytest.raises(MisfitValue, match=r"the value is a p\.Two, not a p\.One"):
        write("t", two(b="x"))
    required = 'syntax = "proto2"; message M { required int32 a = 1; }'
    with pytest.raises(MisfitValue, match="field a is required and not set"):
        ProtobufSerializer(registry, required)("t", {})


def test_a_generated_class_brings_its_file(registry: Registry) -> None:
    write = ProtobufSerializer(registry, struct_pb2.Value)
    data = write("t", struct_pb2.Value(string_value="x"))
    assert registry.schemas[0].subject == "t-value"
    read = ProtobufDeserializer(registry, struct_pb2.Value)
    assert read("t", data).string_value == "x"


@pytest.mark.parametrize("tells_versions", [True, False])
def test_files_that_a_class_imports_are_registered_under_their_names(
    registry: Registry, tells_versions: bool
) -> None:
    from google.protobuf import descriptor_pool, message_factory

    registry.tells_versions = tells_versions
    pool = descriptor_pool.DescriptorPool()
    kind = descriptor_pb2.FieldDescriptorProto
    for name, imports in (
        ("deep.proto", []),
        ("inner.proto", ["deep.proto"]),
        ("outer.proto", ["inner.proto"]),
    ):
        file = descriptor_pb2.FileDescriptorProto(name=name, package=name[:4], dependency=imports)
        message = file.message_type.add(name="M")
        message.field.add(name="a", number=1, type=kind.TYPE_INT32, label=kind.LABEL_OPTIONAL)
        pool.Add(file)
    outer = message_factory.GetMessageClass(pool.FindMessageTypeByName("oute.M"))
    ProtobufSerializer(registry, outer)("t", outer(a=1))
    assert [(known.subject, known.references) for known in registry.schemas] == [
        ("deep.proto", ()),
        ("inner.proto", (Reference("deep.proto", "deep.proto", 1),)),
        ("t-value", (Reference("inner.proto", "inner.proto", 1),)),
    ]
    registry.asked.clear()
    ProtobufSerializer(registry, outer, auto_register=False)("t", outer(a=1))
    assert {asked[0] for asked in registry.asked} == {"find"}

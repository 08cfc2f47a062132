"""Our serializers and those of confluent-kafka read each other's values, byte for byte where it matters."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.client.registry import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
    RegistryRefused,
    record_name,
    topic_record_name,
)
from ottla.client.sync import Consumer, Producer
from ottla.model.ids import TopicPartition
from ottla.schemas.errors import MisfitValue, UnreadableValue
from ottla.schemas.parsed import Reference
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.wire_format import VALUE_HEADER, decode_indexes, encode_indexes

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "item",
                "type": {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]},
            },
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)
ORDER_VALUE = {"id": 7, "item": {"sku": "tea"}, "note": None}
PERSON = json.dumps(
    {
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
        "additionalProperties": False,
    }
)
PROTO = (
    'syntax = "proto3"; package shop; message Other { int32 x = 1; } '
    "message Box { int32 n = 1; message Inner { string s = 1; } }"
)


@pytest.fixture
def ours(registry: RegistryProcess) -> Iterator[RegistryClient]:
    with RegistryClient(registry.url) as client:
        yield client


@pytest.fixture
def theirs(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def _context(topic: str, headers: list[Any] | None = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def test_avro_values_are_the_same(ours: RegistryClient, theirs: SchemaRegistryClient, subject: str) -> None:
    mine = AvroSerializer(ours, ORDER)(subject, ORDER_VALUE)
    other = TheirAvroSerializer(theirs, ORDER)(ORDER_VALUE, _context(subject))
    assert mine == other
    assert AvroDeserializer(ours)(subject, other) == ORDER_VALUE
    assert TheirAvroDeserializer(theirs)(mine, _context(subject)) == ORDER_VALUE


def test_json_values_are_read_by_either(
    ours: RegistryClient, theirs: SchemaRegistryClient, subject: str
) -> None:
    value = {"name": "Ada", "age": 36}
    mine = JsonSerializer(ours, PERSON)(subject, value)
    other = JSONSerializer(PERSON, theirs)(value, _context(subject))
    assert mine is not None
    assert mine[:5] == other[:5]
    assert JsonDeserializer(ours, validate=True)(subject, other) == value
    assert JSONDeserializer(PERSON, schema_registry_client=theirs)(mine, _context(subject)) == value


def _classes(name: str) -> tuple[Any, Any]:
    """Return message classes as protoc would generate them, of a file with a name of its own."""
    pool = descriptor_pool.Default()
    file = FileDescriptorProto.FromString(ProtobufSchema(PROTO).descriptor().SerializeToString())
    file.name, file.package = f"{name}.proto", name.replace("-", "_")
    pool.Add(file)
    box = pool.FindMessageTypeByName(f"{file.package}.Box")
    return GetMessageClass(box), GetMessageClass(box.nested_types_by_name["Inner"])


def test_protobuf_values_are_the_same(
    registry: RegistryProcess, ours: RegistryClient, theirs: SchemaRegistryClient, subject: str
) -> None:
    box, inner = _classes(subject)
    for topic, kind, value in ((subject, box, box(n=5)), (f"{subject}-inner", inner, inner(s="x"))):
        mine = ProtobufSerializer(ours, kind)(topic, value)
        other = TheirProtobufSerializer(kind, theirs, {"use.deprecated.format": False})(
            value, _context(topic)
        )
        assert mine == other
        assert ProtobufDeserializer(ours, kind)(topic, other) == value
        # Their client remembers what it has registered, in a format that their deserializer does not take.
        with SchemaRegistryClient({"url": registry.url}) as fresh:
            reading = TheirProtobufDeserializer(kind, {"use.deprecated.format": False}, fresh)
            assert reading(mine, _context(topic)) == value
        # Without a class one is made from what the registry says.
        found = ProtobufDeserializer(ours)(topic, other)
        assert found.SerializeToString() == value.SerializeToString()


def test_protobuf_imports_are_registered(ours: RegistryClient, subject: str) -> None:
    pool = descriptor_pool.Default()
    package = subject.replace("-", "_")
    base = ProtobufSchema(f'syntax = "proto3"; package {package}; message B {{ int32 x = 1; }}')
    pool.Add(base.descriptor(f"{subject}/base.proto"))
    text = (
        f'syntax = "proto3"; package {package}; import "{subject}/base.proto"; '
        'import "google/protobuf/timestamp.proto"; '
        "message M { B b = 1; google.protobuf.Timestamp t = 2; }"
    )
    user = ProtobufSchema(text, (), {f"{subject}/base.proto": base.text})
    pool.Add(FileDescriptorProto.FromString(Timestamp.DESCRIPTOR.file.serialized_pb))
    pool.Add(user.descriptor(f"{subject}/user.proto"))
    kind = GetMessageClass(pool.FindMessageTypeByName(f"{package}.M"))
    value = kind(b={"x": 3})
    data = ProtobufSerializer(ours, kind)(subject, value)
    assert ours.latest(f"{subject}-value").references == (
        Reference(f"{subject}/base.proto", f"{subject}/base.proto", 1),
    )
    assert ProtobufDeserializer(ours)(subject, data).b.x == 3


def test_protobuf_schemas_may_be_text(ours: RegistryClient, subject: str) -> None:
    serializer = ProtobufSerializer(ours, PROTO, message_name="shop.Box")
    data = serializer(subject, {"n": 9})
    assert data is not None
    assert data[5:7] == b"\x02\x02"
    assert ProtobufDeserializer(ours)(subject, data).n == 9
    with pytest.raises(MisfitValue, match="nope"):
        serializer(subject, {"nope": 1})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"id": 7, "item": {"sku": 5}}, "field item.sku is 5, which is not a string"),
        ({"id": 1 << 63, "item": {"sku": "x"}}, "field id is .*out of range for long"),
        ({"item": {"sku": "x"}}, "field id is missing, and has no default"),
        ({"id": 1, "item": {"sku": "x"}, "extra": 1}, "field extra is not in the schema shop.Order"),
        ({"id": 1, "item": {"sku": "x"}, "note": 5}, "field note is 5, which is not null or string"),
        (5, "the value is 5, which is not a shop.Order"),
    ],
)
def test_an_avro_misfit_names_the_field(ours: RegistryClient, subject: str, value: Any, message: str) -> None:
    with pytest.raises(MisfitValue, match=message):
        AvroSerializer(ours, ORDER)(subject, value)


def test_a_json_misfit_names_the_field(ours: RegistryClient, subject: str) -> None:
    with pytest.raises(MisfitValue, match="field age: -1 is less than the minimum of 0"):
        JsonSerializer(ours, PERSON)(subject, {"name": "x", "age": -1})


def test_a_reader_sees_older_values_in_its_own_schema(ours: RegistryClient, subject: str) -> None:
    old = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    new_fields = [{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "?"}]
    new = json.dumps({"type": "record", "name": "R", "fields": new_fields})
    data = AvroSerializer(ours, old)(subject, {"a": 1})
    assert AvroDeserializer(ours, new)(subject, data) == {"a": 1, "b": "?"}


def test_subjects_are_named_by_a_strategy(
    ours: RegistryClient, theirs: SchemaRegistryClient, registry: RegistryProcess, subject: str
) -> None:
    AvroSerializer(ours, ORDER, subject=record_name)(subject, ORDER_VALUE)
    mine = AvroSerializer(ours, ORDER, subject=topic_record_name)(subject, ORDER_VALUE)
    conf = {"subject.name.strategy": topic_record_subject_name_strategy}
    assert TheirAvroSerializer(theirs, ORDER, conf=conf)(ORDER_VALUE, _context(subject)) == mine
    subjects = registry.ask("GET", "/subjects")[1]
    assert {"shop.Order", f"{subject}-shop.Order"} <= set(subjects)


def test_without_auto_register_a_schema_must_be_there(ours: RegistryClient, subject: str) -> None:
    with pytest.raises(RegistryRefused, match="40401"):
        AvroSerializer(ours, ORDER, auto_register=False)(subject, ORDER_VALUE)
    ours.register(f"{subject}-value", ORDER)
    assert AvroSerializer(ours, ORDER, auto_register=False)(subject, ORDER_VALUE)


def test_avro_schemas_may_refer_to_others(ours: RegistryClient, subject: str) -> None:
    base = json.dumps({"type": "record", "name": "n.Base", "fields": [{"name": "x", "type": "int"}]})
    ours.register(f"{subject}-base", base)
    user = json.dumps({"type": "record", "name": "n.User", "fields": [{"name": "b", "type": "n.Base"}]})
    references = [Reference("n.Base", f"{subject}-base", 1)]
    data = AvroSerializer(ours, user, references=references)(subject, {"b": {"x": 1}})
    assert AvroDeserializer(ours)(subject, data) == {"b": {"x": 1}}


def test_ids_may_be_in_headers(
    node: OttlaNode, ours: RegistryClient, theirs: SchemaRegistryClient, subject: str
) -> None:
    headers: list[Any] = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    data = TheirAvroSerializer(theirs, ORDER, conf=conf)(ORDER_VALUE, _context(subject, headers))
    assert AvroDeserializer(ours).with_headers(subject, data, headers) == ORDER_VALUE

    serializer = AvroSerializer(ours, ORDER, in_headers=True)
    with Producer(node.bootstrap, value_serializer=serializer) as producer:
        producer.send_and_wait(subject, ORDER_VALUE)
    consumer = Consumer(
        node.bootstrap, auto_offset_reset="earliest", value_deserializer=AvroDeserializer(ours)
    )
    with consumer:
        consumer.assign([TopicPartition(subject, 0)])
        record = next(iter(consumer))
    assert record.value == ORDER_VALUE
    assert dict(record.headers)[VALUE_HEADER] == dict(headers)[VALUE_HEADER]
    their_context = _context(subject, list(record.headers))
    assert TheirAvroDeserializer(theirs)(serializer(subject, ORDER_VALUE), their_context) == ORDER_VALUE


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x01\x00\x00\x00\x01x", b"text"])
def test_values_without_an_id_are_refused(ours: RegistryClient, data: bytes) -> None:
    with pytest.raises(UnreadableValue, match="id of a schema"):
        AvroDeserializer(ours)("topic", data)


@pytest.mark.parametrize("path", [[0], [1], [1, 0], [1, 1, 0], [300, 2]])
def test_paths_to_messages_survive_a_round_trip(path: list[int]) -> None:
    data = encode_indexes(path)
    assert decode_indexes(b"xx" + data + b"rest", 2) == (path, 2 + len(data))


def test_their_client_manages_our_registry(theirs: SchemaRegistryClient, subject: str) -> None:
    schema = TheirSchema(ORDER, "AVRO")
    number = theirs.register_schema(subject, schema)
    assert theirs.get_schema(number).schema_str == theirs.get_latest_version(subject).schema.schema_str
    assert theirs.lookup_schema(subject, schema).version == 1
    assert theirs.test_compatibility(subject, schema)
    assert subject in theirs.get_subjects()
    theirs.delete_subject(subject)
    theirs.delete_subject(subject, permanent=True)


def test_top_level_bytes_are_written_as_they_are(ours: RegistryClient, subject: str) -> None:
    serializer: Callable[[str, Any], bytes | None] = AvroSerializer(ours, '"bytes"')
    data = serializer(subject, b"raw")
    assert data is not None
    assert data[5:] == b"raw"
    assert AvroDeserializer(ours)(subject, data) == b"raw"

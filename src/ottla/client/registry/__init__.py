"""Values with schemas: a client of schema registries, and serializers for Avro, JSON Schema and Protobuf."""

from ottla.client.registry.avro import AvroDeserializer, AvroSerializer
from ottla.client.registry.client import Registered, RegistryClient, RegistryRefused
from ottla.client.registry.json_schema import JsonDeserializer, JsonSerializer
from ottla.client.registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from ottla.client.registry.subjects import record_name, topic_name, topic_record_name

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JsonDeserializer",
    "JsonSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Registered",
    "RegistryClient",
    "RegistryRefused",
    "record_name",
    "topic_name",
    "topic_record_name",
]

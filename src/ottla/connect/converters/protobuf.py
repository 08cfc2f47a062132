"""Protobuf with a schema registry, by the name of Confluent's converter."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from ottla.client.errors import ClientError
from ottla.client.registry import ProtobufDeserializer, ProtobufSerializer
from ottla.client.registry.protobuf import message_class
from ottla.connect.converters.per_schema import PerSchema
from ottla.connect.converters.protobuf_descriptors import from_protobuf
from ottla.connect.converters.protobuf_options import ProtobufOptions
from ottla.connect.converters.protobuf_schemas import to_protobuf
from ottla.connect.converters.protobuf_values import Read, Write, message_reader, message_writer
from ottla.connect.converters.registry_client import conversion_error, registry_client
from ottla.connect.data.schema import Schema, infer
from ottla.schemas.errors import InvalidSchema, MisfitValue, UnreadableValue
from ottla.schemas.protobuf.printing import print_file
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.wire_format import decode_prefix

_FAULTS = (ClientError, InvalidSchema, MisfitValue, UnreadableValue, ValueError, TypeError, AttributeError)


class ProtobufConverter:
    """Messages with the id of their schema before them."""

    waits = True

    def __init__(self, config: Mapping[str, str]) -> None:
        self._registry = registry_client(config, "ProtobufConverter")
        self._options = ProtobufOptions.of(config)
        self._is_key = config.get("is.key") == "true"
        self._registers = config.get("auto.register.schemas", "true").lower() == "true"
        self._writer_of = PerSchema(self._writer)
        self._by_text: dict[str, tuple[ProtobufSerializer, type[Message]]] = {}
        self._deserializer = ProtobufDeserializer(self._registry, is_key=self._is_key)
        self._readers: dict[tuple[int, str], tuple[Schema, Read]] = {}

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as a message."""
        if value is None:
            return None
        known = infer(value) if schema is None else schema
        try:
            fill, serializer, kind = self._writer_of(known)
            message = kind()
            fill(message, value)
            return serializer(topic, message)
        except _FAULTS as error:
            raise conversion_error(error, "Failed to serialize Protobuf data") from error

    def _writer(self, schema: Schema) -> tuple[Write, ProtobufSerializer, type[Message]]:
        file, name = to_protobuf(schema, self._options)
        text = print_file(file)
        if text not in self._by_text:
            serializer = ProtobufSerializer(
                self._registry,
                text,
                message_name=name,
                is_key=self._is_key,
                auto_register=self._registers,
            )
            self._by_text[text] = serializer, message_class(ProtobufSchema(text), name)
        return message_writer(schema, self._options), *self._by_text[text]

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return a message as a value, with the schema that it was written with."""
        if data is None:
            return None, None
        try:
            message = self._deserializer(topic, data)
            key = decode_prefix(data), message.DESCRIPTOR.full_name
            found = self._readers.get(key)
            if found is None:
                found = self._readers[key] = self._reader(key[0], message.DESCRIPTOR)
            schema, read = found
            return schema, read(message)
        except _FAULTS as error:
            raise conversion_error(error, "Failed to deserialize Protobuf data") from error

    def _reader(self, schema_id: int, descriptor: Any) -> tuple[Schema, Read]:
        file = self._registry.parse(self._registry.by_id(schema_id))
        assert isinstance(file, ProtobufSchema), "the deserializer has checked it"
        schema = from_protobuf(descriptor, file, self._options)
        return schema, message_reader(schema, descriptor, self._options)

"""Protobuf values: messages of generated classes, or dicts with a schema that is text."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError, EncodeError, Message

from ottla.client.registry.client import Registered, RegistryClient
from ottla.client.registry.serializing import SchemaDeserializer, SchemaSerializer
from ottla.schemas.errors import InvalidSchema, MisfitValue, UnreadableValue
from ottla.schemas.parsed import ParsedSchema, Reference
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.wire_format import decode_indexes, encode_indexes

_WELL_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")


class ProtobufSerializer(SchemaSerializer):
    """Writes messages of a generated class. The files it imports are registered under their own names.

    Instead of a class, a schema can be given as text, and the name of the message in it. Then values are
    dicts.
    """

    schema_type = "PROTOBUF"

    def __init__(
        self,
        registry: RegistryClient,
        message: type[Message] | str,
        *,
        message_name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(registry, **options)
        self._text: str | None = None
        if isinstance(message, str):
            schema = ProtobufSchema(message, self._references, registry.resolve(self._references))
            self._text = schema.text
            message = message_class(schema, message_name)
        self._class = message

    def _record_name(self) -> str | None:
        return str(self._class.DESCRIPTOR.full_name)

    def _own_schema(self) -> tuple[str, Sequence[Reference]]:
        if self._text is not None:
            return self._text, self._references
        file = self._class.DESCRIPTOR.file
        return _encoded(file), self._register_imports(file)

    def _register_imports(self, file: Any) -> list[Reference]:
        references = []
        for other in file.dependencies:
            if other.name.startswith(_WELL_KNOWN):
                continue
            inner = self._register_imports(other)
            ask = self._registry.register if self._auto_register else self._registry.find
            found = ask(other.name, _encoded(other), self.schema_type, inner)
            version = found.version
            if version is None:
                # Registries before 8 answer a registration with the id alone.
                version = self._registry.find(other.name, _encoded(other), self.schema_type, inner).version
            references.append(Reference(other.name, other.name, version or -1))
        return references

    def _path(self) -> bytes:
        return encode_indexes(_index_path(self._class.DESCRIPTOR))

    def _encoder(self, registered: Registered) -> Callable[[Any], bytes]:
        del registered

        def encode(value: Any) -> bytes:
            message: Any = self._as_message(value)
            try:
                return bytes(message.SerializeToString())
            except EncodeError as error:
                missing = ", ".join(message.FindInitializationErrors())
                raise MisfitValue(f"field {missing} is required and not set") from error

        return encode

    def _as_message(self, value: Any) -> Message:
        if isinstance(value, Message):
            if value.DESCRIPTOR.full_name != self._class.DESCRIPTOR.full_name:
                raise MisfitValue(
                    f"the value is a {value.DESCRIPTOR.full_name}, not a {self._class.DESCRIPTOR.full_name}"
                )
            return value
        try:
            return json_format.ParseDict(value, self._class())
        except (json_format.ParseError, TypeError, AttributeError) as error:
            raise MisfitValue(
                f"the value does not fit {self._class.DESCRIPTOR.full_name}: {error}"
            ) from error


class ProtobufDeserializer(SchemaDeserializer):
    """Reads messages of a generated class, or without one of classes that are made from their schemas."""

    schema_type = "PROTOBUF"

    def __init__(
        self, registry: RegistryClient, message: type[Message] | None = None, **options: Any
    ) -> None:
        super().__init__(registry, **options)
        self._class = message

    def _decoder(self, writer: ParsedSchema) -> Callable[[bytes, int], Any]:
        assert isinstance(writer, ProtobufSchema), "the type was checked"
        file = writer.add_to_pool(descriptor_pool.DescriptorPool()) if self._class is None else None
        classes: dict[tuple[int, ...], type[Message]] = {}

        def decode(data: bytes, position: int) -> Any:
            path, position = decode_indexes(data, position)
            kind = self._class or classes.get(tuple(path))
            if kind is None:
                kind = classes[tuple(path)] = _class_at(file, path)
            try:
                return kind.FromString(data[position:])
            except DecodeError as error:
                raise UnreadableValue(f"it is not a {kind.DESCRIPTOR.full_name}: {error}") from error

        return decode


def message_class(schema: ProtobufSchema, name: str | None = None) -> type[Message]:
    """Return the class of a message of a schema: of the first, if none is named. Raises InvalidSchema."""
    pool = descriptor_pool.DescriptorPool()
    schema.add_to_pool(pool)
    wanted = name or schema.name
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(wanted or ""))
    except KeyError:
        raise InvalidSchema(f"the schema has no message {wanted!r}") from None


def _encoded(file: Any) -> str:
    return base64.b64encode(file.serialized_pb).decode()


def _index_path(descriptor: Any) -> list[int]:
    path: list[int] = []
    while descriptor is not None:
        parent = descriptor.containing_type
        siblings = (
            parent.nested_types if parent is not None else descriptor.file.message_types_by_name.values()
        )
        path.insert(0, [item.full_name for item in siblings].index(descriptor.full_name))
        descriptor = parent
    return path


def _class_at(file: Any, path: list[int]) -> type[Message]:
    try:
        descriptor = list(file.message_types_by_name.values())[path[0]]
        for index in path[1:]:
            descriptor = descriptor.nested_types[index]
    except IndexError:
        raise UnreadableValue(f"its schema has no message at {path}") from None
    return message_factory.GetMessageClass(descriptor)

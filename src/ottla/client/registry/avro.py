"""Avro values: fastavro writes and reads them."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
from fastavro.validation import validate

from ottla.client.registry.client import Registered, RegistryClient
from ottla.client.registry.serializing import SchemaDeserializer, SchemaSerializer
from ottla.schemas.avro.misfits import find_misfit
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.errors import MisfitValue, UnreadableValue
from ottla.schemas.parsed import ParsedSchema, Reference

_FAULTS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, LookupError)


class AvroSerializer(SchemaSerializer):
    """Writes values of an Avro schema: dicts for records.

    Without a schema it writes with the latest version of the subject.
    """

    schema_type = "AVRO"

    def __init__(self, registry: RegistryClient, schema: str | None = None, **options: Any) -> None:
        if schema is None:
            options["use_latest"] = True
        super().__init__(registry, **options)
        resolved = registry.resolve(self._references)
        self._schema = None if schema is None else AvroSchema(schema, self._references, resolved)

    def _record_name(self) -> str | None:
        return None if self._schema is None else self._schema.name

    def _own_schema(self) -> tuple[str, Sequence[Reference]]:
        assert self._schema is not None, "without one the latest is used"
        return self._schema.text, self._references

    def _encoder(self, registered: Registered) -> Callable[[Any], bytes]:
        schema = self._registry.parse(registered) if self._use_latest else self._schema
        assert isinstance(schema, AvroSchema), "the registry was asked for one"
        if schema.root.kind == "bytes":
            # Java's serializer writes bytes as they are, without their length.
            return bytes
        parsed = fastavro.parse_schema(schema.resolved_json())

        def encode(value: Any) -> bytes:
            buffer = io.BytesIO()
            try:
                fits = validate(value, parsed, raise_errors=False)
                fastavro.schemaless_writer(buffer, parsed, value, strict_allow_default=True)
            except _FAULTS as error:
                raise MisfitValue(
                    find_misfit(schema.root, value) or f"the value does not fit: {error}"
                ) from error
            # The writer makes 1 of 1.5, and writes an int that is too large for readers.
            misfit = None if fits else find_misfit(schema.root, value)
            if misfit is not None:
                raise MisfitValue(misfit)
            return buffer.getvalue()

        return encode


class AvroDeserializer(SchemaDeserializer):
    """Reads values of Avro schemas, with a schema of the reader's own if one is given."""

    schema_type = "AVRO"

    def __init__(self, registry: RegistryClient, schema: str | None = None, **options: Any) -> None:
        super().__init__(registry, **options)
        self._reader = None if schema is None else fastavro.parse_schema(AvroSchema(schema).resolved_json())

    def _decoder(self, writer: ParsedSchema) -> Callable[[bytes, int], Any]:
        assert isinstance(writer, AvroSchema), "the type was checked"
        if writer.root.kind == "bytes":
            return lambda data, position: data[position:]
        parsed, reader = fastavro.parse_schema(writer.resolved_json()), self._reader

        def decode(data: bytes, position: int) -> Any:
            buffer = io.BytesIO(data)
            buffer.seek(position)
            try:
                return fastavro.schemaless_reader(buffer, parsed, reader)
            except (*_FAULTS, EOFError) as error:
                raise UnreadableValue(f"it is not a value of its schema: {error!r}") from error

        return decode

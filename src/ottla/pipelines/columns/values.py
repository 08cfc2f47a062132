"""Values with schemas, a column at a time: bytes in, a struct of Arrow out.

Each value names the schema it was written with. All of them end in one schema, that of the reader: the latest
of the subject when the pipeline was planned. What cannot be read that way is marked.
"""

import io
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, NamedTuple

import fastavro
from google.protobuf.message import DecodeError

from ottla.client.registry.client import Registered, RegistryClient
from ottla.client.registry.protobuf import message_class
from ottla.pipelines.columns.json_values import EXTRA, MISSING, NANOSECONDS, JsonColumns
from ottla.pipelines.columns.messages import row_reader
from ottla.pipelines.columns.misfits import Misfit, decode_rows
from ottla.pipelines.columns.schema_types import arrow_type, message_type
from ottla.pipelines.columns.shaping import shape_for
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.wire_format import PREFIX_BYTES, decode_indexes, decode_prefix

Decode = Callable[[bytes], Any]


class ValueSource(NamedTuple):
    """Where the schemas are, and which one readers want: enough to decode in another process."""

    url: str
    subject: str
    reader: Registered
    cuts_nanoseconds: bool = False
    """Whether times of Protobuf may lose what is less than a microsecond."""
    tombstone_fault: str | None = None
    """Why a value that is null cannot be used, if it cannot."""


def find_source(
    url: str, subject: str, allowed: Collection[str] = (), tombstone_fault: str | None = None
) -> ValueSource | None:
    """Return the source of a subject, or None if the registry does not know it."""
    from ottla.client.registry.client import RegistryRefused

    with RegistryClient(url) as registry:
        try:
            reader = registry.latest(subject)
            return ValueSource(url, subject, reader, NANOSECONDS in allowed, tombstone_fault)
        except RegistryRefused:
            return None


def value_type(source: ValueSource) -> Any:
    """Return the type that values have once they are read. Raises InvalidSchema."""
    return _decoder(source).type


def decode_values(source: ValueSource, values: Any) -> Any:
    """Return a struct of what was read, and of why it could not be."""
    return _decoder(source).decode(values)


@cache
def _decoder(source: ValueSource) -> "_Decoder":
    return _Decoder(source)


class _Decoder:
    """Decodes the values of one subject. A worker keeps it, with all schemas it has met."""

    def __init__(self, source: ValueSource) -> None:
        self._registry = RegistryClient(source.url)
        self._subject = source.subject
        self._tombstone_fault = source.tombstone_fault
        self._cuts_nanoseconds = source.cuts_nanoseconds
        self._decoders: dict[int, Decode] = {}
        schema = self._registry.parse(source.reader)
        self._reader = (
            fastavro.parse_schema(schema.resolved_json()) if isinstance(schema, AvroSchema) else None
        )
        if isinstance(schema, ProtobufSchema):
            self.type = message_type(message_class(schema).DESCRIPTOR)
        else:
            self.type = arrow_type(schema)
        self._schema_type = schema.schema_type
        self._shape = shape_for(self.type)

    def decode(self, values: Any) -> Any:
        """Decode a column of bytes."""
        return decode_rows(self.type, self._row, values, self._tombstone_fault)

    def _row(self, value: bytes) -> Any:
        return self._decode_for(decode_prefix(value))(value)

    def _decode_for(self, schema_id: int) -> Decode:
        if schema_id not in self._decoders:
            self._decoders[schema_id] = self._make(schema_id)
        return self._decoders[schema_id]

    def _make(self, schema_id: int) -> Decode:
        from ottla.client.registry.client import RegistryRefused

        try:
            written = self._registry.by_id(schema_id, self._subject)
        except RegistryRefused:
            return _refusing(f"names schema {schema_id}, which the registry does not know")
        if written.schema_type != self._schema_type:
            return _refusing(
                f"is {written.schema_type}, and the latest schema of {self._subject!r} is {self._schema_type}"
            )
        if self._schema_type == "JSON":
            # The schema says which fields there have to be.
            columns = JsonColumns(self.type, (EXTRA, MISSING))
            return lambda value: columns.row(value[PREFIX_BYTES:])
        writer = self._registry.parse(written)
        if isinstance(writer, AvroSchema):
            return self._shaped(read_avro(fastavro.parse_schema(writer.resolved_json()), self._reader))
        assert isinstance(writer, ProtobufSchema), "there are three types"
        return self._shaped(_protobuf(writer, self._cuts_nanoseconds))

    def _shaped(self, decode: Decode) -> Decode:
        shape = self._shape
        if shape is None:
            return decode
        return lambda value: None if (row := decode(value)) is None else shape(row)


def read_avro(written: Any, reader: Any) -> Decode:
    """Return what reads values behind their prefix, from the schema of the writer to that of the reader."""

    def decode(value: bytes) -> Any:
        buffer = io.BytesIO(value)
        buffer.seek(PREFIX_BYTES)
        row = fastavro.schemaless_reader(buffer, written, reader)
        if buffer.tell() != len(value):
            raise Misfit(f"has {len(value) - buffer.tell()} bytes behind what its schema describes")
        return row

    return decode


def _refusing(why: str) -> Decode:
    def decode(_value: bytes) -> Any:
        raise Misfit(why)

    return decode


def _protobuf(writer: ProtobufSchema, cuts_nanoseconds: bool) -> Decode:
    classes = [message_class(writer, name) for name in writer.message_names()]
    readers = [(found.FromString, row_reader(found.DESCRIPTOR, cuts_nanoseconds)) for found in classes]

    def decode(value: bytes) -> Any:
        path, position = decode_indexes(value, PREFIX_BYTES)
        if len(path) != 1:
            raise Misfit("is a message within another")
        parse, read = readers[path[0]]
        try:
            message = parse(value[position:])
        except DecodeError as error:
            raise Misfit(f"is not a message of its schema: {error}") from None
        return read(message)

    return decode

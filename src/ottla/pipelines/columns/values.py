"""Values with schemas, a column at a time: bytes in, a struct of Arrow out.

Each value names the schema it was written with. All of them end in one schema, that of the reader: the latest
of the subject when the pipeline was planned. What cannot be read that way is marked.
"""

import io
import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import fastavro
import pyarrow as pa
from google.protobuf.message import DecodeError

from ottla.client.registry.client import Registered, RegistryClient
from ottla.client.registry.protobuf import message_class
from ottla.pipelines.columns.messages import row_reader
from ottla.pipelines.columns.schema_types import arrow_type, message_type
from ottla.pipelines.columns.shaping import shape_for
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.errors import UnreadableValue
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.wire_format import PREFIX_BYTES, decode_indexes, decode_prefix

_MISFITS: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    AttributeError,
    OverflowError,
    DecodeError,
    pa.ArrowException,
)
Decode = Callable[[bytes], Any]


class ValueSource(NamedTuple):
    """Where the schemas are, and which one readers want: enough to decode in another process."""

    url: str
    subject: str
    reader: Registered


def find_source(url: str, subject: str) -> ValueSource | None:
    """Return the source of a subject, or None if the registry does not know it."""
    from ottla.client.registry.client import RegistryRefused

    with RegistryClient(url) as registry:
        try:
            return ValueSource(url, subject, registry.latest(subject))
        except RegistryRefused:
            return None


def value_type(source: ValueSource) -> Any:
    """Return the type that values have once they are read. Raises InvalidSchema."""
    return _decoder(source).type


def decode_values(source: ValueSource, values: Any) -> Any:
    """Return a struct of what was read, and whether it could not be."""
    return _decoder(source).decode(values)


@cache
def _decoder(source: ValueSource) -> "_Decoder":
    return _Decoder(source)


class _Decoder:
    """Decodes the values of one subject. A worker keeps it, with all schemas it has met."""

    def __init__(self, source: ValueSource) -> None:
        self._registry = RegistryClient(source.url)
        self._subject = source.subject
        self._decoders: dict[int, Decode | None] = {}
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
        rows = [None if value is None else self._row(value) for value in values.to_pylist()]
        is_corrupt = [row is _CORRUPT for row in rows]
        sound = [None if row is _CORRUPT else row for row in rows]
        try:
            column = pa.array(sound, self.type)
        except _MISFITS:
            # One of them does not fit: find out which.
            for place, row in enumerate(sound):
                try:
                    pa.array([row], self.type)
                except _MISFITS:
                    sound[place], is_corrupt[place] = None, True
            column = pa.array(sound, self.type)
        return pa.StructArray.from_arrays([column, pa.array(is_corrupt, pa.bool_())], ["value", "corrupt"])

    def _row(self, value: bytes) -> Any:
        try:
            decode = self._decode_for(decode_prefix(value))
            return _CORRUPT if decode is None else decode(value)
        except (*_MISFITS, UnreadableValue):
            return _CORRUPT

    def _decode_for(self, schema_id: int) -> Decode | None:
        if schema_id not in self._decoders:
            self._decoders[schema_id] = self._make(schema_id)
        return self._decoders[schema_id]

    def _make(self, schema_id: int) -> Decode | None:
        from ottla.client.registry.client import RegistryRefused

        try:
            written = self._registry.by_id(schema_id, self._subject)
        except RegistryRefused:
            return None
        if written.schema_type != self._schema_type:
            return None
        if self._schema_type == "JSON":
            return self._shaped(lambda value: json.loads(value[PREFIX_BYTES:]))
        writer = self._registry.parse(written)
        if isinstance(writer, AvroSchema):
            return self._shaped(self._avro(writer))
        assert isinstance(writer, ProtobufSchema), "there are three types"
        return self._shaped(_protobuf(writer))

    def _shaped(self, decode: Decode) -> Decode:
        shape = self._shape
        if shape is None:
            return decode
        return lambda value: None if (row := decode(value)) is None else shape(row)

    def _avro(self, writer: AvroSchema) -> Decode:
        parsed, reader = fastavro.parse_schema(writer.resolved_json()), self._reader

        def decode(value: bytes) -> Any:
            buffer = io.BytesIO(value)
            buffer.seek(PREFIX_BYTES)
            return fastavro.schemaless_reader(buffer, parsed, reader)

        return decode


def _protobuf(writer: ProtobufSchema) -> Decode:
    classes = [message_class(writer, name) for name in writer.message_names()]
    readers = [(found.FromString, row_reader(found.DESCRIPTOR)) for found in classes]

    def decode(value: bytes) -> Any:
        path, position = decode_indexes(value, PREFIX_BYTES)
        if len(path) != 1:
            raise UnreadableValue("it is a message within another")
        parse, read = readers[path[0]]
        return read(parse(value[position:]))

    return decode


class _Corrupt:
    """A value that cannot be read."""


_CORRUPT: Final = _Corrupt()

"""Values of Connect to messages of Protobuf and back. What has to be done for a field is found once."""

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from ottla.connect.converters.protobuf_options import ENUM, TYPE, ProtobufOptions
from ottla.connect.converters.protobuf_schemas import is_union, is_wrapped
from ottla.connect.data.schema import (
    DATE,
    DECIMAL,
    EPOCH,
    SCALE,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    decimal_of,
    to_primitive,
)
from ottla.connect.errors import DataError

Write = Callable[[Any, Any], None]
"""Puts a value that is not missing into a message."""
Read = Callable[[Any], Any]
_NANOS_PER_MS: Final = 1_000_000
_UNSIGNED_32: Final = ("uint32", "fixed32")
_UNSIGNED_64: Final = ("uint64", "fixed64")
_WRAPPED: Final = "google.protobuf."


# To Protobuf


def message_writer(schema: Schema, options: ProtobufOptions) -> Write:
    """Return what fills the message that stands for a schema."""
    if schema.type is not Type.STRUCT:
        scalar = _scalar(schema)
        return lambda message, value: setattr(message, "value", scalar(value))
    return _struct_writer(schema, options)


def _struct_writer(schema: Schema, options: ProtobufOptions) -> Write:
    writers = [(item.name, _field_writer(item, options, in_oneof=False)) for item in schema.fields]

    def write(message: Any, value: Any) -> None:
        for name, write_field in writers:
            found = value.get(name)
            if found is not None:
                write_field(message, found)

    return write


def _field_writer(item: Field, options: ProtobufOptions, *, in_oneof: bool) -> Write:
    schema, name = item.schema, options.clean(item.name)
    if is_union(schema):
        return _union_writer(schema, options)
    if schema.type is Type.ARRAY and schema.values is not None:
        return _array_writer(name, schema.values, options)
    if schema.type is Type.MAP and schema.keys is not None and schema.values is not None:
        return _map_writer(name, schema.keys, schema.values, options)
    fill = _message_filler(schema, options, in_oneof=in_oneof)
    if fill is None:
        scalar = _scalar(schema)
        return lambda message, value: setattr(message, name, scalar(value))

    def write(message: Any, value: Any) -> None:
        inner = getattr(message, name)
        # An inner message that says nothing is there all the same.
        inner.SetInParent()
        fill(inner, value)

    return write


def _union_writer(schema: Schema, options: ProtobufOptions) -> Write:
    writers = [(item.name, _field_writer(item, options, in_oneof=True)) for item in schema.fields]

    def write(message: Any, value: Any) -> None:
        for name, write_field in writers:
            found = value.get(name)
            if found is not None:
                write_field(message, found)
                return
        raise DataError(f"the union {schema.name} has no field that is set")

    return write


def _array_writer(name: str, element: Schema, options: ProtobufOptions) -> Write:
    fill = _message_filler(element, options, in_oneof=False)
    scalar = None if fill is not None else _scalar(element)

    def write(message: Any, value: Any) -> None:
        repeated = getattr(message, name)
        for item in value:
            if item is None:
                raise DataError(f"Protobuf has no missing elements, and the array {name} has one")
            if scalar is not None:
                repeated.append(scalar(item))
            elif fill is not None:
                fill(repeated.add(), item)

    return write


def _map_writer(name: str, keys: Schema, values: Schema, options: ProtobufOptions) -> Write:
    write_key = _field_writer(Field("key", keys), options, in_oneof=False)
    write_value = _field_writer(Field("value", values), options, in_oneof=False)

    def write(message: Any, value: Any) -> None:
        pairs = value.items() if isinstance(value, Mapping) else value
        repeated = getattr(message, name)
        for key, item in pairs:
            entry = repeated.add()
            if key is not None:
                write_key(entry, key)
            if item is not None:
                write_value(entry, item)

    return write


def _message_filler(schema: Schema, options: ProtobufOptions, *, in_oneof: bool) -> Write | None:
    """Return what fills a field that is a message. None: it is a scalar."""
    if schema.name in _FILLERS:
        fill = _FILLERS[schema.name]
        return lambda message, value: fill(message, schema, value)
    if schema.type is Type.STRUCT:
        return _struct_writer(schema, options)
    if ENUM not in schema.parameters and is_wrapped(schema, options, in_oneof=in_oneof):
        scalar = _scalar(schema)
        return lambda message, value: setattr(message, "value", scalar(value))
    return None


def _scalar(schema: Schema) -> Read:
    if ENUM in schema.parameters:
        return lambda value: _enum_number(schema, value)
    kind = schema.parameters.get(TYPE)
    if kind in _UNSIGNED_32:
        return lambda value: value & 0xFFFF_FFFF
    if kind in _UNSIGNED_64:
        # Connect has no unsigned numbers: large ones are negative there.
        return lambda value: value & 0xFFFF_FFFF_FFFF_FFFF
    if schema.type is Type.BYTES:
        return bytes
    return lambda value: value


def _enum_number(schema: Schema, value: Any) -> int:
    if isinstance(value, int):
        return value
    number = schema.parameters.get(f"{ENUM}.{value}")
    if number is None:
        raise DataError(f"the enum {schema.parameters[ENUM]} has no value {value!r}")
    return int(number)


def _fill_decimal(message: Any, schema: Schema, value: Any) -> None:
    message.value = to_primitive(schema, value)
    unscaled = int.from_bytes(message.value, "big", signed=True)
    message.precision = len(str(abs(unscaled)))
    message.scale = int(schema.parameters.get(SCALE, "0"))


def _fill_date(message: Any, _schema: Schema, value: Any) -> None:
    message.year, message.month, message.day = value.year, value.month, value.day


def _fill_time(message: Any, _schema: Schema, value: Any) -> None:
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond // 1000 * _NANOS_PER_MS


def _fill_timestamp(message: Any, schema: Schema, value: Any) -> None:
    seconds, ms = divmod(to_primitive(schema, value), 1000)
    message.seconds, message.nanos = seconds, ms * _NANOS_PER_MS


_FILLERS: Final[Mapping[str | None, Callable[[Any, Schema, Any], None]]] = {
    DECIMAL: _fill_decimal,
    DATE: _fill_date,
    TIME: _fill_time,
    TIMESTAMP: _fill_timestamp,
}


# From Protobuf


def message_reader(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Read:
    """Return what reads messages of a type as values of a schema."""
    if schema.type is not Type.STRUCT:
        convert = _converted(schema)
        return lambda message: convert(message.value)
    return _struct_reader(schema, descriptor, options)


def _struct_reader(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Read:
    fields = descriptor.fields_by_name
    readers = []
    for item in schema.fields:
        if is_union(item.schema) and item.name not in fields:
            readers.append((item.name, _union_reader(item.schema, descriptor, options)))
        else:
            readers.append((item.name, _field_reader(item.schema, fields[item.name], options)))

    def read(message: Any) -> dict[str, Any]:
        return {name: read_field(message) for name, read_field in readers}

    return read


def _union_reader(schema: Schema, descriptor: Any, options: ProtobufOptions) -> Read:
    fields = descriptor.fields_by_name
    readers = {item.name: _present_reader(item.schema, fields[item.name], options) for item in schema.fields}
    oneof = fields[schema.fields[0].name].containing_oneof.name
    missing = dict.fromkeys(readers)

    def read(message: Any) -> Any:
        name = message.WhichOneof(oneof)
        return None if name is None else {**missing, name: readers[name](message)}

    return read


def _field_reader(schema: Schema, field: Any, options: ProtobufOptions) -> Read:
    read = _present_reader(schema, field, options)
    if not may_be_missing(field, options):
        return read
    name = field.name
    return lambda message: read(message) if message.HasField(name) else None


def may_be_missing(field: Any, options: ProtobufOptions) -> bool:
    """Say whether a field that is not set is no value, instead of the default of its type."""
    if field.is_repeated or not field.has_presence:
        return False
    if field.containing_oneof is not None and not _is_optional_in_proto3(field):
        return True
    if field.message_type is not None:
        return not options.generate_struct_for_nulls
    return _is_optional_in_proto3(field) or options.optional_for_proto2


def _is_optional_in_proto3(field: Any) -> bool:
    # Protobuf itself puts such a field into a oneof of its own.
    oneof = field.containing_oneof
    return oneof is not None and len(oneof.fields) == 1 and oneof.name == f"_{field.name}"


def _present_reader(schema: Schema, field: Any, options: ProtobufOptions) -> Read:
    name = field.name
    if schema.type is Type.MAP and schema.keys is not None and schema.values is not None:
        return _map_reader(schema.keys, schema.values, field, options)
    if schema.type is Type.ARRAY and schema.values is not None:
        element = _element_reader(schema.values, field, options)
        return lambda message: [element(item) for item in getattr(message, name)]
    element = _element_reader(schema, field, options)
    return lambda message: element(getattr(message, name))


def _element_reader(schema: Schema, field: Any, options: ProtobufOptions) -> Read:
    if field.enum_type is not None:
        return _enum_reader(schema, field.enum_type)
    if field.message_type is None:
        return _converted(schema)
    if schema.name in _READERS:
        return _READERS[schema.name]
    if schema.type is Type.STRUCT:
        return _struct_reader(schema, field.message_type, options)
    convert = _converted(schema)
    return lambda message: convert(message.value)


def _map_reader(keys: Schema, values: Schema, field: Any, options: ProtobufOptions) -> Read:
    name, entry = field.name, field.message_type
    read_key = _element_reader(keys, entry.fields_by_name["key"], options)
    if entry.GetOptions().map_entry:
        read_value = _element_reader(values, entry.fields_by_name["value"], options)
        return lambda message: {
            read_key(key): read_value(item) for key, item in _pairs(getattr(message, name))
        }
    read_item = _field_reader(values, entry.fields_by_name["value"], options)
    return lambda message: {read_key(item.key): read_item(item) for item in getattr(message, name)}


def _pairs(found: Any) -> Any:
    return found.items()


def _enum_reader(schema: Schema, kind: Any) -> Read:
    if schema.type is Type.INT32:
        return int
    names = {number: value.name for number, value in kind.values_by_number.items()}
    return lambda number: names.get(number) or f"UNKNOWN_ENUM_VALUE_{kind.name}_{number}"


def _converted(schema: Schema) -> Read:
    if schema.type is Type.INT64:
        # Connect has no unsigned numbers of 64 bits.
        return lambda value: value - (1 << 64) if value >= 1 << 63 else value
    return lambda value: value


def _read_decimal(message: Any) -> Decimal:
    return decimal_of(int.from_bytes(message.value, "big", signed=True), message.scale)


def _read_date(message: Any) -> datetime.date:
    return datetime.date(message.year, message.month, message.day)


def _read_time(message: Any) -> datetime.time:
    ms = message.nanos // _NANOS_PER_MS
    return datetime.time(message.hours, message.minutes, message.seconds, ms * 1000)


def _read_timestamp(message: Any) -> datetime.datetime:
    ms = message.seconds * 1000 + message.nanos // _NANOS_PER_MS
    return EPOCH + datetime.timedelta(milliseconds=ms)


_READERS: Final[Mapping[str | None, Read]] = {
    DECIMAL: _read_decimal,
    DATE: _read_date,
    TIME: _read_time,
    TIMESTAMP: _read_timestamp,
}

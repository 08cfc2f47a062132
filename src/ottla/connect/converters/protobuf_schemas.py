"""Schemas of Connect as files of Protobuf, as Confluent's converter makes them.

A struct is a message, an array is repeated, and a map is repeated messages whose name ends with `Entry`.
Logical types are the messages that Google and Confluent have for them. A value that is no struct is one of
Google's wrappers. Fields are numbered in their order, unless a parameter has a number.
"""

from dataclasses import dataclass, field
from typing import Final

from ottla.connect.converters.protobuf_options import (
    DECIMAL_PRECISION,
    ENUM,
    TAG,
    TYPE,
    UNION,
    WRAPPER,
    ProtobufOptions,
)
from ottla.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema, Type
from ottla.connect.errors import DataError
from ottla.schemas.protobuf.elements import (
    ConstantElement,
    EnumElement,
    FieldElement,
    FileElement,
    MessageElement,
    OneOfElement,
    Option,
    Quoted,
)
from ottla.schemas.protobuf.well_known import find_well_known

WRAPPERS_FILE: Final = "google/protobuf/wrappers.proto"
FIELD_META: Final = "confluent.field_meta"
_DEFAULT_NAME: Final = "ConnectDefault"
_LOGICAL: Final = {
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_SCALARS: Final = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_WRAPPERS: Final = {
    "int32": "Int32Value",
    "int64": "Int64Value",
    "uint32": "UInt32Value",
    "fixed32": "UInt32Value",
    "uint64": "UInt64Value",
    "fixed64": "UInt64Value",
    "float": "FloatValue",
    "double": "DoubleValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "bytes": "BytesValue",
}


def is_union(schema: Schema) -> bool:
    """Say whether a struct stands for a oneof."""
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


def is_wrapped(schema: Schema, options: ProtobufOptions, *, in_oneof: bool) -> bool:
    """Say whether a scalar field is one of Google's wrappers, which can be missing."""
    if not (options.wrapper_for_nullables and schema.is_optional):
        return False
    # A field of a oneof can be missing anyway.
    return not in_oneof or schema.parameters.get(WRAPPER) == "true"


def to_protobuf(schema: Schema, options: ProtobufOptions) -> tuple[FileElement, str]:
    """Return a file, and the full name of the message in it that stands for the schema. Raises DataError."""
    if schema.name in _LOGICAL or schema.type in (Type.ARRAY, Type.MAP):
        what = schema.name or schema.type.value
        raise DataError(f"ProtobufConverter cannot write {what} at the top: put it into a field of a struct")
    if schema.type is not Type.STRUCT:
        file = find_well_known(WRAPPERS_FILE)
        assert file is not None, "the library has it"
        return file, f"google.protobuf.{_WRAPPERS[_SCALARS[schema.type]]}"
    return _FileMaker(options).make(schema)


@dataclass
class _FileMaker:
    options: ProtobufOptions
    imports: list[str] = field(default_factory=list)
    unnamed: int = 0

    def make(self, schema: Schema) -> tuple[FileElement, str]:
        package = (schema.name or "").rpartition(".")[0]
        name = self._short_name(schema)
        message = self._message(schema, name)
        file = FileElement("proto3", package=package or None, imports=self.imports, types=[message])
        return file, f"{package}.{name}" if package else name

    def _short_name(self, schema: Schema) -> str:
        """Return the name of a schema without its package. One that has none gets a number."""
        if not schema.name:
            self.unnamed += 1
            return self.options.clean(f"{_DEFAULT_NAME}{self.unnamed}")
        return self.options.clean(schema.name.rpartition(".")[2])

    def _message(self, schema: Schema, name: str) -> MessageElement:
        message = MessageElement(name)
        next_tag = 1
        for item in schema.fields:
            given = item.schema.parameters.get(TAG)
            tag = next_tag if given is None else int(given)
            next_tag += given is None
            declared = self._field(message, item.schema, self.options.clean(item.name), tag)
            if declared is not None:
                message.fields.append(declared)
        return message

    def _field(
        self, message: MessageElement, schema: Schema, name: str, tag: int, *, in_oneof: bool = False
    ) -> FieldElement | None:
        if is_union(schema):
            message.oneofs.append(self._oneof(message, schema))
            return None
        label = self._label(schema)
        if schema.type is Type.ARRAY:
            assert schema.values is not None, "an array has elements"
            schema = schema.values
        kind = self._type(message, schema, name, in_oneof)
        return FieldElement(label, kind, name, tag, self._meta(schema))

    def _label(self, schema: Schema) -> str | None:
        if schema.type in (Type.ARRAY, Type.MAP):
            return "repeated"
        return "optional" if self.options.optional_for_nullables and schema.is_optional else None

    def _oneof(self, message: MessageElement, schema: Schema) -> OneOfElement:
        assert schema.name is not None, "a union is known by its name"
        name = self.options.clean(schema.name.removeprefix(f"{UNION}.").rpartition(".")[2])
        oneof = OneOfElement(name)
        for item in schema.fields:
            tag = int(item.schema.parameters.get(TAG, "0"))
            clean = self.options.clean(item.name)
            declared = self._field(message, item.schema, clean, tag, in_oneof=True)
            if declared is None:
                raise DataError(f"ProtobufConverter cannot write the union {item.name} within another one")
            declared.label = None
            oneof.fields.append(declared)
        return oneof

    def _type(self, message: MessageElement, schema: Schema, name: str, in_oneof: bool) -> str:
        """Return the type of a field, and declare what it needs."""
        if schema.name in _LOGICAL:
            kind, file = _LOGICAL[schema.name]
            return self._imported(kind, file)
        if ENUM in schema.parameters:
            return self._enum(message, schema)
        match schema.type:
            case Type.STRUCT:
                kind = self._short_name(schema)
                # A message and a field of it cannot have the same name.
                kind = f"{kind}Message" if kind == name else kind
                if kind != message.name and not _declares(message, kind):
                    message.types.append(self._message(schema, kind))
                return kind
            case Type.MAP:
                return self._map(message, schema)
            case Type.ARRAY:
                raise DataError(f"ProtobufConverter cannot write arrays of arrays, as in the field {name}")
        kind = schema.parameters.get(TYPE, _SCALARS[schema.type])
        if is_wrapped(schema, self.options, in_oneof=in_oneof):
            return self._imported(f"google.protobuf.{_WRAPPERS[kind]}", WRAPPERS_FILE)
        return kind

    def _map(self, message: MessageElement, schema: Schema) -> str:
        name = self._short_name(schema)
        if "_" in name:
            name = "".join(part.capitalize() for part in name.split("_"))
        entry = MessageElement(f"{name}Entry")
        for part, tag, inner in (("key", 1, schema.keys), ("value", 2, schema.values)):
            assert inner is not None, "a map has keys and values"
            declared = self._field(entry, inner, part, tag)
            assert declared is not None, "keys and values are no unions"
            entry.fields.append(declared)
        message.types.append(entry)
        return entry.name

    def _enum(self, message: MessageElement, schema: Schema) -> str:
        name = schema.parameters[ENUM]
        if not _declares(message, name):
            prefix = f"{ENUM}."
            numbers = {key: int(text) for key, text in schema.parameters.items() if key.startswith(prefix)}
            constants = [ConstantElement(key.removeprefix(prefix), number) for key, number in numbers.items()]
            message.types.append(EnumElement(name, constants))
        return name

    def _imported(self, kind: str, file: str) -> str:
        if file not in self.imports:
            self.imports.append(file)
        return kind

    def _meta(self, schema: Schema) -> list[Option]:
        """Return what Protobuf cannot say by its types."""
        if schema.name == DECIMAL:
            # The value comes first here, as Confluent's registry prints it.
            pairs = (("precision", DECIMAL_PRECISION), ("scale", SCALE))
            params: list[object] = [
                {"value": Quoted(schema.parameters[key]), "key": Quoted(name)}
                for name, key in pairs
                if key in schema.parameters
            ]
        elif schema.type in (Type.INT8, Type.INT16):
            params = [{"key": Quoted("connect.type"), "value": Quoted(schema.type.value)}]
        else:
            params = []
        return [Option(FIELD_META, {"params": params}, is_extension=True)] if params else []


def _declares(message: MessageElement, name: str) -> bool:
    return any(item.name == name for item in message.types)

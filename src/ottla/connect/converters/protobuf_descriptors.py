"""Messages of Protobuf as schemas of Connect, as Confluent's converter makes them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from ottla.connect.converters.protobuf_options import (
    DECIMAL_PRECISION,
    ENUM,
    TAG,
    TYPE,
    UNION,
    WRAPPER,
    ProtobufOptions,
)
from ottla.connect.converters.protobuf_schemas import FIELD_META
from ottla.connect.data.schema import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Field,
    Schema,
    Type,
    decimal_schema,
    optional,
)
from ottla.connect.errors import DataError
from ottla.schemas.protobuf.elements import FieldElement, MessageElement, Option
from ottla.schemas.protobuf.schema import ProtobufSchema

_ENTRY: Final = "Entry"
_INTEGERS: Final = {
    FieldDescriptor.TYPE_INT32: ("int32", Type.INT32),
    FieldDescriptor.TYPE_SINT32: ("sint32", Type.INT32),
    FieldDescriptor.TYPE_SFIXED32: ("sfixed32", Type.INT32),
    FieldDescriptor.TYPE_UINT32: ("uint32", Type.INT64),
    FieldDescriptor.TYPE_FIXED32: ("fixed32", Type.INT64),
    FieldDescriptor.TYPE_INT64: ("int64", Type.INT64),
    FieldDescriptor.TYPE_UINT64: ("uint64", Type.INT64),
    FieldDescriptor.TYPE_SINT64: ("sint64", Type.INT64),
    FieldDescriptor.TYPE_FIXED64: ("fixed64", Type.INT64),
    FieldDescriptor.TYPE_SFIXED64: ("sfixed64", Type.INT64),
}
_USUAL: Final = ("int32", "int64")
_OTHERS: Final = {
    FieldDescriptor.TYPE_FLOAT: Type.FLOAT32,
    FieldDescriptor.TYPE_DOUBLE: Type.FLOAT64,
    FieldDescriptor.TYPE_BOOL: Type.BOOLEAN,
    FieldDescriptor.TYPE_STRING: Type.STRING,
    FieldDescriptor.TYPE_BYTES: Type.BYTES,
}
_WRAPPED: Final = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
_DECIMAL_TYPE: Final = "confluent.type.Decimal"
_LOGICAL: Final = {
    "google.type.Date": DATE_SCHEMA,
    "google.type.TimeOfDay": TIME_SCHEMA,
    "google.protobuf.Timestamp": TIMESTAMP_SCHEMA,
}


def from_protobuf(descriptor: Any, file: ProtobufSchema, options: ProtobufOptions) -> Schema:
    """Return the schema of Connect for a message. Raises DataError."""
    return _SchemaMaker(file, options).message(descriptor, ())


class _SchemaMaker:
    def __init__(self, file: ProtobufSchema, options: ProtobufOptions) -> None:
        self._file = file
        self._options = options

    def message(self, descriptor: Any, outer: tuple[str, ...]) -> Schema:
        full_name = descriptor.full_name
        if self._options.wrapper_for_raw_primitives and full_name in _WRAPPED:
            return Schema(_WRAPPED[full_name])
        if full_name in outer:
            raise DataError(f"the message {full_name} has itself as a field, which is not supported")
        path = (*outer, full_name)
        plain = [field for field in descriptor.fields if _real_oneof(field) is None]
        fields = (
            *self._unions(descriptor, path),
            *(Field(field.name, self._field(field, path)) for field in plain),
        )
        name = full_name if self._options.enhanced_protobuf_schema_support else descriptor.name
        return Schema(Type.STRUCT, name=name, fields=fields)

    def _unions(self, descriptor: Any, path: tuple[str, ...]) -> Iterable[Field]:
        for oneof in descriptor.oneofs:
            if _real_oneof(oneof.fields[0]) is None:
                continue
            inner = tuple(
                Field(field.name, self._field(field, path, in_oneof=True)) for field in oneof.fields
            )
            if self._options.flatten_unions:
                yield from inner
                continue
            suffix = f"_{oneof.index}" if self._options.generate_index_for_unions else ""
            named = oneof.full_name if self._options.enhanced_protobuf_schema_support else oneof.name
            union = Schema(Type.STRUCT, is_optional=True, name=f"{UNION}.{named}", fields=inner)
            yield Field(f"{oneof.name}{suffix}", union)

    def _field(self, field: Any, path: tuple[str, ...], *, in_oneof: bool = False) -> Schema:
        schema = self._single(field, path)
        if field.is_repeated and schema.type is not Type.MAP:
            schema = Schema(Type.ARRAY, is_optional=True, values=optional(schema))
        parameters = dict(schema.parameters)
        if in_oneof:
            schema = optional(schema)
            if self._options.wrapper_for_nullables and _is_wrapper(field):
                parameters[WRAPPER] = "true"
        elif self._options.optional_for_nullables:
            schema = optional(schema) if _has_optional_keyword(field) else schema
        elif not self._options.wrapper_for_nullables:
            schema = optional(schema)
        return replace(schema, parameters={**parameters, TAG: str(field.number)})

    def _single(self, field: Any, path: tuple[str, ...]) -> Schema:
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        if field.message_type is not None:
            return optional(self._inner(field, path))
        if field.type in _INTEGERS:
            return self._integer(field)
        return Schema(_OTHERS[field.type])

    def _integer(self, field: Any) -> Schema:
        name, kind = _INTEGERS[field.type]
        if kind is Type.INT32:
            given = self._params(field).get("connect.type")
            if given in (Type.INT8, Type.INT16):
                return Schema(Type(given))
        return Schema(kind, parameters={} if name in _USUAL else {TYPE: name})

    def _enum(self, kind: Any) -> Schema:
        name = kind.full_name if self._options.enhanced_protobuf_schema_support else kind.name
        parameters = {ENUM: kind.name}
        parameters |= {f"{ENUM}.{value.name}": str(value.number) for value in kind.values}
        is_number = self._options.int_for_enums
        return Schema(
            Type.INT32 if is_number else Type.STRING, is_optional=True, name=name, parameters=parameters
        )

    def _inner(self, field: Any, path: tuple[str, ...]) -> Schema:
        kind = field.message_type
        if kind.full_name == _DECIMAL_TYPE:
            return self._decimal(self._params(field))
        if kind.full_name in _LOGICAL:
            return _LOGICAL[kind.full_name]
        if self._options.wrapper_for_nullables and kind.full_name in _WRAPPED:
            return Schema(_WRAPPED[kind.full_name])
        if _is_map(field):
            key, value = kind.fields_by_name["key"], kind.fields_by_name["value"]
            return Schema(
                Type.MAP,
                name=_map_name(kind.name),
                keys=self._field(key, path),
                values=self._field(value, path),
            )
        if kind.full_name in _WRAPPED:
            # Only at the top a wrapper is the value in it.
            return Schema(
                Type.STRUCT,
                name=kind.full_name if self._options.enhanced_protobuf_schema_support else kind.name,
                fields=(Field("value", self._field(kind.fields_by_name["value"], path)),),
            )
        return self.message(kind, path)

    def _decimal(self, params: Mapping[str, str]) -> Schema:
        scale, precision = params.get("scale", "0"), params.get("precision")
        schema = decimal_schema(int(scale) if scale.lstrip("-").isdigit() else 0)
        if precision is None or not precision.isdigit():
            return schema
        return replace(schema, parameters={**schema.parameters, DECIMAL_PRECISION: precision})

    def _params(self, field: Any) -> dict[str, str]:
        """Return what the file says of a field beside its type."""
        element = self._file.types[field.containing_type.full_name].element
        assert isinstance(element, MessageElement), "a message has fields"
        declared = [*element.fields, *(item for oneof in element.oneofs for item in oneof.fields)]
        found = next((item for item in declared if item.name == field.name), None)
        return {} if found is None else _field_params(found)


def _field_params(element: FieldElement) -> dict[str, str]:
    params: dict[str, str] = {}
    for option in element.options:
        if not option.is_extension or not option.name.lstrip(".").endswith(FIELD_META):
            continue
        value: Any = option.value
        listed = value.get("params", []) if isinstance(value, dict) else value
        if isinstance(listed, Option):
            listed = listed.value if listed.name == "params" else []
        for pair in listed if isinstance(listed, list) else [listed]:
            if isinstance(pair, dict) and "key" in pair:
                params[str(pair["key"])] = str(pair.get("value", ""))
    return params


def _real_oneof(field: Any) -> Any:
    """Return the oneof of a field, unless Protobuf itself made it for an optional field."""
    oneof = field.containing_oneof
    if oneof is None or (len(oneof.fields) == 1 and oneof.name == f"_{field.name}"):
        return None
    return oneof


def _has_optional_keyword(field: Any) -> bool:
    if field.containing_oneof is not None:
        return _real_oneof(field) is None
    return not field.is_repeated and field.has_presence and field.message_type is None


def _is_wrapper(field: Any) -> bool:
    return field.message_type is not None and field.message_type.full_name in _WRAPPED


def _is_map(field: Any) -> bool:
    kind = field.message_type
    names = [inner.name for inner in kind.fields]
    if not field.is_repeated or not kind.name.endswith(_ENTRY) or names != ["key", "value"]:
        return False
    return not any(inner.is_repeated for inner in kind.fields)


def _map_name(entry: str) -> str:
    """Return the name of the field that Protobuf has made the name of an entry from."""
    name = entry.removesuffix(_ENTRY)
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")

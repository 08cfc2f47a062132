"""From elements to descriptors, which libraries encode and decode messages by, and back.

Clients may register a descriptor instead of a text. Options that are extensions are not in descriptors made
here: nothing that is encoded depends on them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.protobuf.elements import (
    TAG_MAX,
    ConstantElement,
    EnumElement,
    ExtendElement,
    ExtensionsElement,
    FieldElement,
    FileElement,
    GroupElement,
    MessageElement,
    OneOfElement,
    Option,
    Quoted,
    Range,
    Reserved,
    RpcElement,
    ServiceElement,
    Word,
)
from ottla.schemas.protobuf.types import SCALARS, Types, map_parts

DEFAULT_NAME: Final = "default"
_LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_LABEL_NAMES: Final = {number: name for name, number in _LABELS.items()}
_SCALAR_NUMBERS: Final = {name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}") for name in SCALARS}
_SCALAR_NAMES: Final = {number: name for name, number in _SCALAR_NUMBERS.items()}
_TYPE_MESSAGE: Final = FieldDescriptorProto.TYPE_MESSAGE


def to_descriptor(file: FileElement, types: Types, name: str = DEFAULT_NAME) -> FileDescriptorProto:
    """Return the descriptor of a file. Raises InvalidSchema for types that are not defined."""
    return _Builder(file, types, name).build()


class _Builder:
    def __init__(self, file: FileElement, types: Types, name: str) -> None:
        self._file = file
        self._types = types
        self._name = name
        self._scope: list[str] = []
        self._is_proto3 = file.syntax == "proto3"

    def build(self) -> FileDescriptorProto:
        file = self._file
        built = FileDescriptorProto(name=self._name, package=file.package or None)
        built.dependency.extend([*file.imports, *file.public_imports])
        built.public_dependency.extend(range(len(file.imports), len(built.dependency)))
        for element in file.types:
            self._add_type(element, built.message_type, built.enum_type)
        for extend in file.extends:
            self._extend(built.extension, extend)
        for service in file.services:
            self._service(built, service)
        _set_options(built, file.options)
        if file.edition is not None:
            built.syntax = "editions"
            built.edition = _edition(file.edition)
        elif self._is_proto3:
            built.syntax = "proto3"
        return built

    def _add_type(self, element: MessageElement | EnumElement, messages: Any, enums: Any) -> None:
        if isinstance(element, EnumElement):
            self._enum(enums.add(), element)
        else:
            self._message(messages.add(), element)

    def _message(self, built: DescriptorProto, message: MessageElement) -> None:
        self._scope.append(message.name)
        built.name = message.name
        for field in message.fields:
            self._field(built.field.add(), field, built)
        for group in message.groups:
            self._group(built, group)
        for place, oneof in enumerate(message.oneofs):
            built.oneof_decl.add(name=oneof.name)
            for field in oneof.fields:
                added = built.field.add(oneof_index=place)
                self._field(added, field, built)
        if self._is_proto3:
            _add_synthetic_oneofs(built)
        for element in message.types:
            self._add_type(element, built.nested_type, built.enum_type)
        for extend in message.extends:
            self._extend(built.extension, extend)
        _set_reserved(built, message.reserved, beyond=1)
        for extensions in message.extensions:
            for number in extensions.values:
                built.extension_range.add(start=_first(number), end=_last(number) + 1)
        _set_options(built, message.options)
        self._scope.pop()

    def _field(
        self, built: FieldDescriptorProto, field: FieldElement, inside: DescriptorProto | None
    ) -> None:
        built.name, built.number = field.name, field.tag
        parts = map_parts(field.type)
        if parts is not None and inside is not None:
            self._map(built, field, parts, inside)
            return
        if field.label is not None:
            built.label = _LABELS[field.label]
            built.proto3_optional = self._is_proto3 and field.label == "optional"
            if not built.proto3_optional:
                built.ClearField("proto3_optional")
        self._set_type(built, field.type)
        if field.default is not None:
            built.default_value = str(field.default)
        if field.json_name is not None:
            built.json_name = field.json_name
        _set_options(built, field.options)

    def _set_type(self, built: FieldDescriptorProto, kind: str) -> None:
        if kind in SCALARS:
            built.type = _SCALAR_NUMBERS[kind]
            return
        full_name = self._resolved(kind)
        is_enum = self._types[full_name].is_enum
        built.type = FieldDescriptorProto.TYPE_ENUM if is_enum else _TYPE_MESSAGE
        built.type_name = f".{full_name}"

    def _resolved(self, kind: str) -> str:
        full_name = self._types.find(kind, self._scope)
        if full_name is None:
            raise InvalidSchema(f"the type {kind!r} is not defined: is an import or a reference missing?")
        return full_name

    def _map(
        self,
        built: FieldDescriptorProto,
        field: FieldElement,
        parts: tuple[str, str],
        inside: DescriptorProto,
    ) -> None:
        entry_name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        built.label, built.type = FieldDescriptorProto.LABEL_REPEATED, _TYPE_MESSAGE
        package = [self._types.package] if self._types.package else []
        built.type_name = "." + ".".join([*package, *self._scope, entry_name])
        entry = inside.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for number, (name, kind) in enumerate(zip(("key", "value"), parts, strict=True), 1):
            part = entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            self._set_type(part, kind)
        _set_options(built, field.options)

    def _group(self, built: DescriptorProto, group: GroupElement) -> None:
        package = [self._types.package] if self._types.package else []
        built.field.add(
            name=group.name.lower(),
            number=group.tag,
            label=_LABELS[group.label or "optional"],
            type=FieldDescriptorProto.TYPE_GROUP,
            type_name="." + ".".join([*package, *self._scope, group.name]),
        )
        self._message(built.nested_type.add(), MessageElement(group.name, fields=group.fields))

    def _enum(self, built: EnumDescriptorProto, enum: EnumElement) -> None:
        built.name = enum.name
        for constant in enum.constants:
            _set_options(built.value.add(name=constant.name, number=constant.tag), constant.options)
        _set_reserved(built, enum.reserved, beyond=0)
        _set_options(built, enum.options)

    def _extend(self, built: Any, extend: ExtendElement) -> None:
        full_name = self._resolved(extend.name)
        for field in extend.fields:
            added = built.add(extendee=f".{full_name}")
            self._field(added, field, None)

    def _service(self, built: FileDescriptorProto, service: ServiceElement) -> None:
        added = built.service.add(name=service.name)
        for rpc in service.rpcs:
            method = added.method.add(
                name=rpc.name,
                input_type=f".{self._resolved(rpc.request)}",
                output_type=f".{self._resolved(rpc.response)}",
            )
            if rpc.is_request_stream:
                method.client_streaming = True
            if rpc.is_response_stream:
                method.server_streaming = True
            _set_options(method, rpc.options)
        _set_options(added, service.options)


def _set_reserved(built: Any, reserved: Iterable[Reserved], beyond: int) -> None:
    """Set what is reserved. The end of a range is the number after the last in messages, not in enums."""
    for values in reserved:
        for value in values:
            if isinstance(value, str):
                built.reserved_name.append(value)
            else:
                built.reserved_range.add(start=_first(value), end=_last(value) + beyond)


def _add_synthetic_oneofs(built: DescriptorProto) -> None:
    """Give each optional field of proto3 the oneof that says whether it is set."""
    for field in built.field:
        if field.proto3_optional:
            field.oneof_index = len(built.oneof_decl)
            built.oneof_decl.add(name=f"_{field.name}")


def _set_options(built: Any, options: Iterable[Option]) -> None:
    """Set the options that the library knows. Others change nothing that is encoded."""
    for option in options:
        if option.is_extension or not isinstance(option.value, Quoted | Word):
            continue
        known = built.options.DESCRIPTOR.fields_by_name.get(option.name)
        if known is None or known.is_repeated:
            continue
        value: Any = str(option.value)
        try:
            if known.enum_type is not None:
                value = known.enum_type.values_by_name[value].number
            elif not isinstance(option.value, Quoted):
                value = {"true": True, "false": False}.get(value, value)
            setattr(built.options, option.name, value)
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidSchema(f"option {option.name} cannot be {value!r}") from error


def _edition(text: str) -> Any:
    try:
        return Edition.Value(f"EDITION_{text}")
    except ValueError as error:
        raise InvalidSchema(f"the edition {text!r} is not known") from error


def _first(value: int | Range) -> int:
    return value if isinstance(value, int) else value.first


def _last(value: int | Range) -> int:
    return value if isinstance(value, int) else value.last


def to_elements(file: FileDescriptorProto) -> FileElement:
    """Return the elements of a file of which there is a descriptor."""
    is_proto3 = file.syntax == "proto3"
    public = set(file.public_dependency)
    return FileElement(
        syntax=file.syntax if file.syntax in ("proto2", "proto3") else None,
        edition=Edition.Name(file.edition).removeprefix("EDITION_") if file.syntax == "editions" else None,
        package=file.package or None,
        imports=[name for place, name in enumerate(file.dependency) if place not in public],
        public_imports=[name for place, name in enumerate(file.dependency) if place in public],
        options=_options(file),
        types=[
            *(_message_element(message, is_proto3) for message in file.message_type),
            *map(_enum_element, file.enum_type),
        ],
        extends=_extends(file.extension, is_proto3),
        services=[
            ServiceElement(
                service.name,
                [
                    RpcElement(
                        method.name,
                        method.input_type,
                        method.output_type,
                        method.client_streaming,
                        method.server_streaming,
                        _options(method),
                    )
                    for method in service.method
                ],
                _options(service),
            )
            for service in file.service
        ],
    )


def _message_element(message: DescriptorProto, is_proto3: bool) -> MessageElement:
    element = MessageElement(message.name, options=_options(message))
    oneofs = [OneOfElement(oneof.name, options=_options(oneof)) for oneof in message.oneof_decl]
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            oneofs[field.oneof_index].fields.append(_field_element(field, is_proto3, in_oneof=True))
        else:
            element.fields.append(_field_element(field, is_proto3))
    element.oneofs = [oneof for oneof in oneofs if oneof.fields]
    element.types = [
        *(_message_element(nested, is_proto3) for nested in message.nested_type),
        *map(_enum_element, message.enum_type),
    ]
    element.reserved = [[_range(item.start, item.end - 1)] for item in message.reserved_range]
    element.reserved += [[name] for name in message.reserved_name]
    element.extensions = [
        ExtensionsElement([_range(item.start, item.end - 1)]) for item in message.extension_range
    ]
    element.extends = _extends(message.extension, is_proto3)
    return element


def _field_element(field: FieldDescriptorProto, is_proto3: bool, *, in_oneof: bool = False) -> FieldElement:
    label: str | None = _LABEL_NAMES[field.label]
    if in_oneof or (is_proto3 and label == "optional" and not field.proto3_optional):
        label = None
    default: Quoted | Word | None = None
    if field.HasField("default_value") and not is_proto3:
        is_text = field.type in (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES)
        default = Quoted(field.default_value) if is_text else Word(field.default_value)
    return FieldElement(
        label,
        _SCALAR_NAMES.get(field.type, field.type_name),
        field.name,
        field.number,
        _options(field),
        default,
        field.json_name if field.HasField("json_name") else None,
    )


def _enum_element(enum: EnumDescriptorProto) -> EnumElement:
    reserved: list[Reserved] = [[_range(item.start, item.end)] for item in enum.reserved_range]
    reserved += [[name] for name in enum.reserved_name]
    constants = [ConstantElement(value.name, value.number, _options(value)) for value in enum.value]
    return EnumElement(enum.name, constants, reserved, _options(enum))


def _extends(extensions: Sequence[FieldDescriptorProto], is_proto3: bool) -> list[ExtendElement]:
    extends: dict[str, ExtendElement] = {}
    for field in extensions:
        extend = extends.setdefault(field.extendee, ExtendElement(field.extendee))
        extend.fields.append(_field_element(field, is_proto3))
    return list(extends.values())


def _range(first: int, last: int) -> int | Range:
    return first if first == last else Range(first, min(last, TAG_MAX))


def _options(described: Any) -> list[Option]:
    options = []
    for field, value in described.options.ListFields():
        if field.is_extension or field.is_repeated or field.message_type is not None:
            continue
        if field.enum_type is not None:
            shown: Quoted | Word = Word(field.enum_type.values_by_number[value].name)
        elif isinstance(value, bool):
            shown = Word("true" if value else "false")
        else:
            shown = Quoted(value) if isinstance(value, str) else Word(value)
        options.append(Option(field.name, shown))
    return options

"""Elements as the text of a .proto file, line by line as Confluent's registry prints them.

A normalized text has full names of types, and everything whose order means nothing is sorted. The order of
messages stays: the wire format counts them.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

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

_ESCAPES: Final = str.maketrans(
    {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        "'": r"\'",
        '"': r"\"",
    }
)
_CONFLUENT: Final = "confluent."

Lines = list[str]
T = TypeVar("T", FieldElement, GroupElement)


def print_file(file: FileElement, types: Types | None = None, *, without_extensions: bool = False) -> str:
    """Return the text of a file, normalized if its `types` are given."""
    lines = _Printer(types, without_extensions).file(file)
    return "".join(f"{line}\n" for line in lines)


def _indent(lines: Iterable[str]) -> Lines:
    # What is one string may have several lines.
    return [f"  {part}" for line in lines for part in line.split("\n")]


class _Printer:
    def __init__(self, types: Types | None, without_extensions: bool) -> None:
        self._types = types
        self._without_extensions = without_extensions
        self._scope: list[str] = []

    def file(self, file: FileElement) -> Lines:
        lines: Lines = []
        # The syntax that is meant if none is said is left out of normalized texts.
        if file.syntax is not None and not (self._types and file.syntax == "proto2"):
            lines.append(f'syntax = "{file.syntax}";')
        if file.edition is not None:
            lines.append(f'edition = "{file.edition}";')
        if file.package is not None:
            lines.append(f"package {file.package};")
        imports = [f'import "{name}";' for name in self._sorted_names(file.imports)]
        imports += [f'import public "{name}";' for name in self._sorted_names(file.public_imports)]
        for block in (
            imports,
            self._option_lines(file.options),
            self._type_lines(file.types),
            self._extend_lines(file.extends),
            [line for service in file.services for line in self._service(service)],
        ):
            if block:
                lines += ["", *block]
        return lines

    def _sorted_names(self, names: Sequence[str]) -> Sequence[str]:
        return sorted(set(names)) if self._types else names

    def _type_lines(self, elements: Sequence[MessageElement | EnumElement]) -> Lines:
        lines: Lines = []
        for kind in (MessageElement, EnumElement):
            for element in elements:
                if isinstance(element, kind) and not self._is_spelled_as_map(element):
                    self._scope.append(element.name)
                    if isinstance(element, MessageElement):
                        lines += self._message(element)
                    else:
                        lines += self._enum(element)
                    self._scope.pop()
        return lines

    def _is_spelled_as_map(self, element: MessageElement | EnumElement) -> bool:
        return bool(self._types) and isinstance(element, MessageElement) and element.is_map_entry

    def _message(self, message: MessageElement) -> Lines:
        blocks = [
            [self._reserved(values) for values in self._split_reserved(message.reserved)],
            self._option_lines(message.options),
            [self._field(field) for field in self._by_tag(message.fields)],
            [line for oneof in self._sorted_oneofs(message.oneofs) for line in self._oneof(oneof)],
            [line for group in self._by_tag(message.groups) for line in self._group(group)],
            self._extensions(message.extensions),
            self._extend_lines(message.extends),
            self._type_lines(message.types),
        ]
        lines = [f"message {message.name} {{"]
        is_first = True
        for block in blocks:
            if block:
                lines += _indent(block) if is_first else ["", *_indent(block)]
                is_first = False
        return _closed(lines)

    def _by_tag(self, elements: "Sequence[T]") -> "Sequence[T]":
        return sorted(elements, key=lambda element: element.tag) if self._types else elements

    def _sorted_oneofs(self, oneofs: Sequence[OneOfElement]) -> Sequence[OneOfElement]:
        if not self._types:
            return oneofs
        filled = [oneof for oneof in oneofs if oneof.fields]
        return sorted(filled, key=lambda oneof: min(field.tag for field in oneof.fields))

    def _enum(self, enum: EnumElement) -> Lines:
        lines = [f"enum {enum.name} {{"]
        lines += _indent(self._reserved(values) for values in self._split_reserved(enum.reserved))
        lines += _indent(self._option_lines(enum.options))
        constants: Sequence[ConstantElement] = enum.constants
        if self._types:
            constants = sorted(constants, key=lambda constant: (constant.tag, constant.name))
        for constant in constants:
            options = self._bracketed(constant.options)
            lines += _indent([f"{constant.name} = {constant.tag}{options};"])
        return _closed(lines)

    def _oneof(self, oneof: OneOfElement) -> Lines:
        lines = [f"oneof {oneof.name} {{", *_indent(self._option_lines(oneof.options))]
        for block in (
            [self._field(field) for field in self._by_tag(oneof.fields)],
            [line for group in self._by_tag(oneof.groups) for line in self._group(group)],
        ):
            if block:
                lines += _indent(block) if len(lines) == 1 else ["", *_indent(block)]
        return _closed(lines)

    def _group(self, group: GroupElement) -> Lines:
        label = f"{group.label} " if group.label else ""
        fields = [self._field(field) for field in self._by_tag(group.fields)]
        return _closed([f"{label}group {group.name} = {group.tag} {{", *_indent(fields)])

    def _field(self, field: FieldElement) -> str:
        kind, label = self._full_type(field.type), field.label
        if self._types and map_parts(kind):
            label = None
        options = list(field.options)
        if field.default is not None:
            options.append(Option("default", field.default))
        if field.json_name is not None:
            options.append(Option("json_name", Quoted(field.json_name)))
        start = f"{label} " if label else ""
        return f"{start}{kind} {field.name} = {field.tag}{self._bracketed(options)};"

    def _full_type(self, kind: str) -> str:
        if self._types is None or kind in SCALARS:
            return kind
        parts = map_parts(kind)
        if parts is None:
            full_name = self._resolved(kind)
            map_type = self._types[full_name[1:]].map_type
            if map_type is None:
                return full_name
            parts = map_parts(map_type)
            assert parts is not None, "a map type has parts"
        key, value = parts
        return f"map<{key}, {value if value in SCALARS else self._resolved(value)}>"

    def _resolved(self, kind: str) -> str:
        assert self._types is not None, "only normalized texts have full names"
        full_name = self._types.find(kind, self._scope)
        if full_name is None:
            raise InvalidSchema(f"the type {kind!r} is not defined: is an import or a reference missing?")
        return f".{full_name}"

    def _split_reserved(self, reserved: Sequence[Reserved]) -> Sequence[Reserved]:
        if not self._types:
            return reserved
        single: list[Reserved] = [[value] for values in reserved for value in values]
        return sorted(single, key=_reserved_order)

    def _reserved(self, values: Reserved) -> str:
        parts = [f'"{value}"' if isinstance(value, str) else self._range(value) for value in values]
        return f"reserved {', '.join(parts)};"

    def _range(self, value: int | Range) -> str:
        if isinstance(value, int):
            return str(value)
        if self._types and value.first == value.last:
            return str(value.first)
        return f"{value.first} to {'max' if value.last >= TAG_MAX else value.last}"

    def _extensions(self, extensions: Sequence[ExtensionsElement]) -> Lines:
        if self._without_extensions:
            return []
        if self._types:
            single = [
                ExtensionsElement([value], item.options) for item in extensions for value in item.values
            ]
            extensions = sorted(single, key=lambda item: _first(item.values[0]))
        return [
            f"extensions {', '.join(map(self._range, item.values))}{self._bracketed(item.options)};"
            for item in extensions
        ]

    def _extend_lines(self, extends: Sequence[ExtendElement]) -> Lines:
        if self._without_extensions:
            return []
        if self._types:
            merged: dict[str, list[FieldElement]] = {}
            for extend in extends:
                merged.setdefault(self._resolved(extend.name), []).extend(extend.fields)
            extends = [ExtendElement(name, fields) for name, fields in merged.items()]
        lines: Lines = []
        for extend in extends:
            fields = [self._field(field) for field in self._by_tag(extend.fields)]
            lines += _closed([f"extend {extend.name} {{", *_indent(fields)])
        return lines

    def _service(self, service: ServiceElement) -> Lines:
        options = self._option_lines(service.options)
        rpcs = [line for rpc in service.rpcs for line in self._rpc(rpc)]
        lines = [f"service {service.name} {{", *_indent(options)]
        if rpcs:
            lines += _indent(rpcs) if not options else ["", *_indent(rpcs)]
        return _closed(lines)

    def _rpc(self, rpc: RpcElement) -> Lines:
        request = self._resolved(rpc.request) if self._types else rpc.request
        response = self._resolved(rpc.response) if self._types else rpc.response
        asks = "stream " if rpc.is_request_stream else ""
        answers = "stream " if rpc.is_response_stream else ""
        head = f"rpc {rpc.name} ({asks}{request}) returns ({answers}{response})"
        options = self._option_lines(rpc.options)
        return [f"{head} {{", *_indent(options), "};"] if options else [f"{head};"]

    # Options.

    def _option_lines(self, options: Sequence[Option]) -> Lines:
        return [f"option {self._option(option)};" for option in self._filtered(options)]

    def _filtered(self, options: Sequence[Option]) -> Sequence[Option]:
        if self._without_extensions:
            options = [
                option for option in options if not option.is_extension or option.name.startswith(_CONFLUENT)
            ]
        if self._types:
            options = sorted(map(self._normalized, options), key=lambda option: option.name)
        return options

    def _normalized(self, option: Option) -> Option:
        assert self._types is not None, "only normalized texts have full names"
        full_name = self._types.find_extension(option.name, self._scope) if option.is_extension else None
        if full_name is None:
            return option
        value = option.value
        if isinstance(value, Option):
            value = _nested(value)
        return Option(full_name, value, is_extension=True)

    def _bracketed(self, options: Sequence[Option]) -> str:
        options = self._filtered(options)
        if not options:
            return ""
        return " " + self._listed([self._option(option) for option in options])

    def _listed(self, texts: Sequence[str]) -> str:
        if len(texts) == 1:
            return f"[{texts[0]}]"
        lines = [f"{text}," for text in texts[:-1]] + list(texts[-1:])
        return "\n".join(["[", *_indent(lines), "]"])

    def _option(self, option: Option) -> str:
        name = f"({option.name})" if option.is_extension else option.name
        if isinstance(option.value, Option):
            return f"{name}.{self._option(option.value)}"
        if isinstance(option.value, list):
            return f"{name} = {self._listed([self._value(item) for item in option.value])}"
        return f"{name} = {self._value(option.value)}"

    def _value(self, value: object) -> str:
        if isinstance(value, Quoted):
            return f'"{value.translate(_ESCAPES)}"'
        if isinstance(value, dict):
            return "\n".join(["{", *_indent(self._map_lines(value)), "}"])
        if isinstance(value, list):
            if self._types and len(value) == 1:
                return self._value(value[0])
            lines = [f"{self._value(item)}," for item in value[:-1]]
            lines += [self._value(item) for item in value[-1:]]
            return "\n".join(["[", *_indent(lines), "]"])
        if isinstance(value, Option):
            return self._option(value)
        assert isinstance(value, Word), "options have no other values"
        return str(value)

    def _map_lines(self, value: dict[str, object]) -> Lines:
        items = sorted(value.items()) if self._types else list(value.items())
        return [
            f"{key}: {self._value(item)}{',' if place < len(items) - 1 else ''}"
            for place, (key, item) in enumerate(items)
        ]


def _nested(option: Option) -> dict[str, object]:
    value = option.value
    return {option.name: _nested(value) if isinstance(value, Option) else value}


def _closed(lines: Lines) -> Lines:
    # An empty block stands on one line.
    return [f"{lines[0]}}}"] if len(lines) == 1 else [*lines, "}"]


def _first(value: int | Range) -> int:
    return value if isinstance(value, int) else value.first


def _reserved_order(values: Reserved) -> tuple[int, str]:
    value = values[0]
    return ((1 << 31) - 1, value) if isinstance(value, str) else (_first(value), str(value))

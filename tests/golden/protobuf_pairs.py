"""Random pairs of Protobuf schemas: a .proto file, and what somebody made of it later."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

SCALARS: Final = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)
KEYS: Final = [kind for kind in SCALARS if kind not in ("double", "float", "bytes")]
IMPORT: Final = "other.proto"
_MESSAGES: Final = ("A", "B", "C", "D")
_ENUMS: Final = ("E", "F")


@dataclass
class Field:
    """A field. `label` is empty if there is none."""

    number: int
    type: str
    label: str = ""
    oneof: str = ""


@dataclass
class Message:
    """A message, with what is defined in it."""

    name: str
    fields: list[Field] = field(default_factory=list)
    messages: "list[Message]" = field(default_factory=list)
    enums: dict[str, list[str]] = field(default_factory=dict)
    reserved: list[int] = field(default_factory=list)


@dataclass
class File:
    """A file, and the one that it imports."""

    syntax: str
    package: str
    messages: list[Message]
    enums: dict[str, list[str]]
    imported: "File | None" = None


class Schemas:
    """Makes files and changes them. Names and numbers are few, so that they meet."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def pair(self) -> tuple[File, File]:
        """Return a file and a changed one. Now and then the two have nothing to do with each other."""
        first = self._file()
        if self._chance(0.04):
            return first, self._file()
        second = copy.deepcopy(first)
        for _ in range(self._random.randint(1, 3)):
            self._change(second)
        return first, second

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _file(self) -> File:
        random = self._random
        syntax = random.choice(("proto3", "proto3", "proto2"))
        file = File(syntax, random.choice(("", "p", "p.q")), [], {})
        if self._chance(0.25):
            file.imported = File("proto3", random.choice(("", "o", "p")), [], {})
            file.imported.messages = [self._message(name, 1, file.imported) for name in ("X", "Y")]
        if self._chance(0.5):
            file.enums["E"] = ["E0", "E1"]
        for name in random.sample(_MESSAGES, random.randint(1, 3)):
            file.messages.append(Message(name))
        for message in file.messages:
            self._fill(message, 0, file)
        return file

    def _message(self, name: str, depth: int, file: File) -> Message:
        message = Message(name)
        self._fill(message, depth, file)
        return message

    def _fill(self, message: Message, depth: int, file: File) -> None:
        random = self._random
        if depth < 2 and self._chance(0.4):
            names = random.sample(("N", "M", *_MESSAGES), random.randint(1, 2))
            message.messages = [self._message(f"{name}{depth}", depth + 1, file) for name in names]
        if self._chance(0.2):
            message.enums[f"F{depth}"] = [f"F{depth}_A", f"F{depth}_B"]
        oneofs = random.choice(("", "", "u", "uv"))
        for number in random.sample(range(1, 8), random.randint(0, 5)):
            oneof = random.choice((*oneofs, "", "")) if oneofs else ""
            message.fields.append(self._field(number, message, file, oneof))
        if self._chance(0.1):
            message.reserved = [random.randint(20, 22)]

    def _field(self, number: int, message: Message, file: File, oneof: str = "") -> Field:
        kind = self._type(message, file, with_maps=not oneof)
        return Field(number, kind, self._label(kind, oneof, file), oneof)

    def _label(self, kind: str, oneof: str, file: File) -> str:
        if oneof or kind.startswith("map<"):
            return ""
        choices = (
            ("optional", "repeated", "required")
            if file.syntax == "proto2"
            else ("", "", "optional", "repeated")
        )
        return self._random.choice(choices)

    def _type(self, message: Message, file: File, *, with_maps: bool = True) -> str:
        random = self._random
        named = [one.name for one in (*message.messages, *file.messages)] + [*message.enums, *file.enums]
        if file.imported is not None:
            prefix = f"{file.imported.package}." if file.imported.package else ""
            named += [f"{prefix}X", f"{prefix}Y"] * 2
        if with_maps and self._chance(0.1):
            value = random.choice((*SCALARS, *named[:3]))
            return f"map<{random.choice(KEYS)}, {value}>"
        if named and self._chance(0.35):
            return random.choice(named)
        return random.choice(SCALARS)

    def _change(self, file: File) -> None:
        random = self._random
        if self._chance(0.06):
            file.package = random.choice(("", "p", "p.q", "r"))
            return
        target = file if file.imported is None or self._chance(0.7) else file.imported
        if not target.messages:
            return
        if self._chance(0.12):
            self._change_messages(target.messages, target)
            return
        if self._chance(0.08):
            target.enums["E"] = random.choice((["E0"], ["E0", "E1", "E2"], ["E0", "E3"]))
            return
        message = random.choice(list(_all_messages(target.messages)))
        if message.messages and self._chance(0.15):
            self._change_messages(message.messages, target)
            return
        self._change_fields(message, target)

    def _change_messages(self, messages: list[Message], file: File) -> None:
        random = self._random
        what = random.choice(("add", "remove", "rename", "order"))
        if what == "add":
            name = random.choice(("G", "H"))
            if name not in [message.name for message in messages]:
                messages.append(self._message(name, 2, file))
        elif what == "remove" and len(messages) > 1:
            messages.remove(random.choice(messages))
        elif what == "rename":
            random.choice(messages).name = random.choice(("Q", "R"))
        else:
            random.shuffle(messages)

    def _change_fields(self, message: Message, file: File) -> None:
        random, fields = self._random, message.fields
        free = [number for number in range(1, 12) if number not in {item.number for item in fields}]
        what = random.choice(("add", "remove", "type", "type", "label", "number", "in", "in", "out", "order"))
        if what == "add" or not fields:
            oneof = random.choice(("", "", "u", "w"))
            fields.append(self._field(random.choice(free), message, file, oneof))
            return
        chosen = random.choice(fields)
        is_map = chosen.type.startswith("map<")
        match what:
            case "remove":
                fields.remove(chosen)
            case "type":
                chosen.type = self._type(message, file, with_maps=not chosen.oneof)
                if is_map or not chosen.label or chosen.type.startswith("map<"):
                    chosen.label = self._label(chosen.type, chosen.oneof, file)
            case "label":
                chosen.label = self._label(chosen.type, chosen.oneof, file)
            case "number":
                chosen.number = random.choice(free)
            case "in":
                plain = [item for item in fields if not item.type.startswith("map<")]
                for item in random.sample(plain, min(random.randint(1, 2), len(plain))):
                    item.oneof, item.label = random.choice("uvw"), ""
            case "out":
                chosen.oneof = ""
                chosen.label = self._label(chosen.type, "", file)
            case "order":
                random.shuffle(fields)


def text_of(file: File) -> str:
    """Return a file as its text."""
    lines = [f'syntax = "{file.syntax}";']
    if file.package:
        lines.append(f"package {file.package};")
    if file.imported is not None:
        lines.append(f'import "{IMPORT}";')
    for message in file.messages:
        lines += _lines(message)
    lines += _enum_lines(file.enums)
    return "\n".join(lines) + "\n"


def references_of(file: File) -> dict[str, str]:
    """Return what a file imports, by its path."""
    return {} if file.imported is None else {IMPORT: text_of(file.imported)}


def _lines(message: Message) -> Iterator[str]:
    yield f"message {message.name} {{"
    for number in message.reserved:
        yield f"  reserved {number};"
    for item in message.fields:
        if not item.oneof:
            yield f"  {item.label} {item.type} f{item.number} = {item.number};"
    for oneof in dict.fromkeys(item.oneof for item in message.fields if item.oneof):
        yield f"  oneof {oneof} {{"
        for item in message.fields:
            if item.oneof == oneof:
                yield f"    {item.type} f{item.number} = {item.number};"
        yield "  }"
    for inner in message.messages:
        yield from _lines(inner)
    yield from _enum_lines(message.enums)
    yield "}"


def _enum_lines(enums: dict[str, list[str]]) -> Iterator[str]:
    for name, constants in enums.items():
        values = " ".join(f"{constant} = {number};" for number, constant in enumerate(constants))
        yield f"enum {name} {{ {values} }}"


def _all_messages(messages: list[Message]) -> Iterator[Message]:
    for message in messages:
        yield message
        yield from _all_messages(message.messages)

"""From the text of a .proto file to its elements: proto2, proto3 and editions.

It reads the grammar and no more. Whether types exist is for `types.py`, and whether numbers are used twice
is for the library that builds descriptors.
"""

from collections.abc import Callable
from typing import Final

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
from ottla.schemas.protobuf.tokens import Token, split_tokens

_LABELS: Final = ("optional", "required", "repeated")
_DEPTH_MAX: Final = 100


def parse_proto(source: str) -> FileElement:
    """Parse a file. Raises InvalidSchema, whose message has the line."""
    return _Parser(split_tokens(source)).file()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    # Tokens.

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._tokens[self._place]
        if token.kind == "end":
            raise InvalidSchema(f"Syntax error in line {token.line}: the text ends too early")
        self._place += 1
        return token

    def _error(self, wanted: str, token: Token) -> InvalidSchema:
        return InvalidSchema(
            f"Syntax error in line {token.line}: expected {wanted}, but found {token.text!r}"
        )

    def _expect(self, sign: str) -> None:
        token = self._take()
        if token.kind not in ("sign", "word") or token.text != sign:
            raise self._error(repr(sign), token)

    def _maybe(self, sign: str) -> bool:
        token = self._next
        if token.kind in ("sign", "word") and token.text == sign:
            self._place += 1
            return True
        return False

    def _word(self, wanted: str = "a name") -> str:
        token = self._take()
        if token.kind != "word":
            raise self._error(wanted, token)
        return token.text

    def _name(self) -> str:
        token = self._next
        name = self._word()
        if "." in name:
            raise self._error("a name without dots", token)
        return name

    def _text(self) -> str:
        token = self._take()
        if token.kind != "text":
            raise self._error("a text in quotes", token)
        text = token.text
        while self._next.kind == "text":
            text += self._take().text
        return text

    def _integer(self) -> int:
        is_negative = self._maybe("-")
        token = self._take()
        text = token.text
        is_octal = len(text) > 1 and text[0] == "0" and text.isdigit()
        try:
            number = int(text, 8) if is_octal else int(text, 0)
        except ValueError:
            raise self._error("a whole number", token) from None
        return -number if is_negative else number

    # Files.

    def file(self) -> FileElement:
        element = FileElement()
        while self._next.kind != "end":
            self._declaration(element)
        return element

    def _declaration(self, element: FileElement) -> None:
        if self._maybe(";"):
            return
        token = self._next
        match self._word("a declaration"):
            case "syntax":
                self._expect("=")
                element.syntax = self._text()
                self._expect(";")
            case "edition":
                self._expect("=")
                element.edition = self._text()
                self._expect(";")
            case "package":
                element.package = self._word()
                self._expect(";")
            case "import":
                self._import(element)
            case "option":
                element.options.append(self._option_statement())
            case "message":
                element.types.append(self._message())
            case "enum":
                element.types.append(self._enum())
            case "extend":
                element.extends.append(self._extend(None))
            case "service":
                element.services.append(self._service())
            case _:
                raise self._error("a declaration", token)

    def _import(self, element: FileElement) -> None:
        is_public = self._maybe("public")
        if not is_public:
            self._maybe("weak")
        (element.public_imports if is_public else element.imports).append(self._text())
        self._expect(";")

    # Messages.

    def _deeper(self, parse: Callable[[], None]) -> None:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise InvalidSchema(f"it is nested deeper than {_DEPTH_MAX} levels")
        self._expect("{")
        while not self._maybe("}"):
            if not self._maybe(";"):
                parse()
        self._depth -= 1

    def _message(self) -> MessageElement:
        element = MessageElement(self._name())
        self._deeper(lambda: self._member(element))
        self._maybe(";")
        return element

    def _member(self, element: MessageElement) -> None:
        token = self._next
        follower = self._tokens[min(self._place + 1, len(self._tokens) - 1)]
        # All words of the language are also names of types: `message m = 1` would be a field.
        is_block = follower.kind in ("word", "text", "number") or follower.text in ("(", "-")
        match token.text if token.kind == "word" and is_block else "":
            case "message" if self._opens_block():
                self._take()
                element.types.append(self._message())
            case "enum" if self._opens_block():
                self._take()
                element.types.append(self._enum())
            case "oneof" if self._opens_block():
                self._take()
                element.oneofs.append(self._oneof())
            case "extend" if self._opens_block():
                self._take()
                element.extends.append(self._extend(element))
            case "option" if not self._is_field():
                self._take()
                element.options.append(self._option_statement())
            case "reserved" if not self._is_field():
                self._take()
                element.reserved.append(self._reserved())
            case "extensions" if not self._is_field():
                self._take()
                element.extensions.append(self._extensions())
            case _:
                self._field_or_group(element.fields, element.groups)

    def _opens_block(self) -> bool:
        return self._tokens[min(self._place + 2, len(self._tokens) - 1)].text == "{"

    def _is_field(self) -> bool:
        """Say whether a word that begins a statement is the type of a field here: `reserved r = 1;`."""
        one, two, three = (self._tokens[min(self._place + n, len(self._tokens) - 1)] for n in (1, 2, 3))
        is_like = one.kind == "word" and two.text == "=" and three.kind == "number"
        after = self._tokens[min(self._place + 4, len(self._tokens) - 1)].text
        return is_like and self._next.text != "option" and after in (";", "[")

    def _field_or_group(self, fields: list[FieldElement], groups: list[GroupElement] | None) -> None:
        label = None
        if self._next.text in _LABELS and self._next.kind == "word" and not self._is_bare_field():
            label = self._take().text
        if self._next.text == "group" and self._next.kind == "word" and groups is not None:
            self._take()
            groups.append(self._group(label))
            return
        fields.append(self._field(label))

    def _is_bare_field(self) -> bool:
        """Say whether a label is the type of a field: `optional x = 1;`."""
        follower = self._tokens[min(self._place + 2, len(self._tokens) - 1)]
        return follower.text == "="

    def _group(self, label: str | None) -> GroupElement:
        name = self._name()
        self._expect("=")
        group = GroupElement(label, name, self._integer())
        if self._next.text == "[":
            self._options()
        inner = MessageElement(name)
        self._deeper(lambda: self._member(inner))
        group.fields = inner.fields
        return group

    def _field(self, label: str | None) -> FieldElement:
        kind = self._type()
        name = self._name()
        self._expect("=")
        element = FieldElement(label, kind, name, self._integer())
        if self._next.text == "[":
            for option in self._options():
                if option.name == "default" and not option.is_extension:
                    element.default = option.value if isinstance(option.value, Quoted | Word) else None
                elif option.name == "json_name" and not option.is_extension:
                    element.json_name = str(option.value)
                else:
                    element.options.append(option)
        self._expect(";")
        return element

    def _type(self) -> str:
        kind = self._word("a type")
        if kind == "map" and self._maybe("<"):
            key = self._word("a type")
            self._expect(",")
            value = self._word("a type")
            self._expect(">")
            return f"map<{key}, {value}>"
        return kind

    def _oneof(self) -> OneOfElement:
        element = OneOfElement(self._name())

        def member() -> None:
            if self._next.text == "option" and not self._is_bare_field():
                self._take()
                element.options.append(self._option_statement())
            else:
                self._field_or_group(element.fields, element.groups)

        self._deeper(member)
        return element

    def _extend(self, _inside: MessageElement | None) -> ExtendElement:
        element = ExtendElement(self._word())
        groups: list[GroupElement] = []
        self._deeper(lambda: self._field_or_group(element.fields, groups))
        return element

    def _reserved(self) -> Reserved:
        values: Reserved = []
        while True:
            if self._next.kind == "text":
                values.append(self._text())
            elif self._next.kind == "word":
                values.append(self._word())
            else:
                values.append(self._range())
            if not self._maybe(","):
                break
        self._expect(";")
        return values

    def _range(self) -> int | Range:
        first = self._integer()
        if not self._maybe("to"):
            return first
        return Range(first, TAG_MAX if self._maybe("max") else self._integer())

    def _extensions(self) -> ExtensionsElement:
        element = ExtensionsElement([self._range()])
        while self._maybe(","):
            element.values.append(self._range())
        if self._next.text == "[":
            element.options = self._options()
        self._expect(";")
        return element

    # Enums and services.

    def _enum(self) -> EnumElement:
        element = EnumElement(self._name())
        self._deeper(lambda: self._enum_member(element))
        self._maybe(";")
        return element

    def _enum_member(self, element: EnumElement) -> None:
        token = self._next
        is_constant = self._tokens[min(self._place + 1, len(self._tokens) - 1)].text == "="
        if token.text == "option" and not is_constant:
            self._take()
            element.options.append(self._option_statement())
        elif token.text == "reserved" and not is_constant:
            self._take()
            element.reserved.append(self._reserved())
        else:
            name = self._name()
            self._expect("=")
            constant = ConstantElement(name, self._integer())
            if self._next.text == "[":
                constant.options = self._options()
            self._expect(";")
            element.constants.append(constant)

    def _service(self) -> ServiceElement:
        element = ServiceElement(self._name())

        def member() -> None:
            token = self._next
            match self._word():
                case "option":
                    element.options.append(self._option_statement())
                case "rpc":
                    element.rpcs.append(self._rpc())
                case _:
                    raise self._error("rpc or option", token)

        self._deeper(member)
        return element

    def _rpc(self) -> RpcElement:
        name = self._name()
        request, is_request_stream = self._rpc_type()
        self._expect("returns")
        response, is_response_stream = self._rpc_type()
        element = RpcElement(name, request, response, is_request_stream, is_response_stream)
        if self._next.text == "{":

            def member() -> None:
                self._expect("option")
                element.options.append(self._option_statement())

            self._deeper(member)
        else:
            self._expect(";")
        return element

    def _rpc_type(self) -> tuple[str, bool]:
        self._expect("(")
        is_stream = self._next.text == "stream" and self._tokens[self._place + 1].text != ")"
        if is_stream:
            self._take()
        kind = self._word("a type")
        self._expect(")")
        return kind, is_stream

    # Options.

    def _option_statement(self) -> Option:
        option = self._option()
        self._expect(";")
        return option

    def _options(self) -> list[Option]:
        self._expect("[")
        options = [self._option()]
        while self._maybe(","):
            options.append(self._option())
        self._expect("]")
        return options

    def _option(self) -> Option:
        is_extension = self._maybe("(")
        name = self._word("the name of an option")
        rest: list[str] = []
        if is_extension:
            self._expect(")")
            if self._next.kind == "word" and self._next.text.startswith("."):
                rest = self._take().text[1:].split(".")
        elif "." in name:
            name, *rest = name.split(".")
        self._expect("=")
        value = self._value()
        for part in reversed(rest):
            value = Option(part, value)
        return Option(name.removeprefix(".") if is_extension else name, value, is_extension)

    def _value(self) -> "Quoted | Word | dict[str, object] | list[object] | Option":
        token = self._next
        if token.kind == "text":
            return Quoted(self._text())
        if token.text in ("{", "<"):
            return self._map()
        if self._maybe("["):
            values: list[object] = []
            while not self._maybe("]"):
                values.append(self._value())
                self._maybe(",")
            return values
        sign = "-" if self._maybe("-") else ""
        self._maybe("+")
        token = self._take()
        if token.kind not in ("word", "number"):
            raise self._error("a value", token)
        return Word(sign + token.text)

    def _map(self) -> dict[str, object]:
        closing = {"{": "}", "<": ">"}[self._take().text]
        values: dict[str, object] = {}
        while not self._maybe(closing):
            if self._maybe("["):
                key = f"[{self._word()}"
                while not self._maybe("]"):
                    key += self._take().text
                key += "]"
            else:
                key = self._word()
            if not self._maybe(":") and self._next.text not in ("{", "<", "["):
                raise self._error("':'", self._next)
            value: object = self._value()
            known = values.get(key)
            if isinstance(known, list):
                known.append(value)
            else:
                values[key] = value if key not in values else [known, value]
            if not self._maybe(","):
                self._maybe(";")
        return values

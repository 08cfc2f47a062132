"""A parsed Protobuf schema."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import Difference, ParsedSchema, Reference
from ottla.schemas.protobuf.comparing import compare
from ottla.schemas.protobuf.descriptors import DEFAULT_NAME, to_descriptor, to_elements
from ottla.schemas.protobuf.elements import FileElement, MessageElement
from ottla.schemas.protobuf.parsing import parse_proto
from ottla.schemas.protobuf.printing import print_file
from ottla.schemas.protobuf.types import Types
from ottla.schemas.protobuf.well_known import find_google_file, find_well_known


class ProtobufSchema(ParsedSchema):
    """A .proto file. Its text may also be a descriptor in base64. References are imports."""

    schema_type = "PROTOBUF"

    def __init__(
        self, text: str, references: Sequence[Reference] = (), resolved: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(references, resolved or {})
        self.file = parse_text(text)

    @property
    def text(self) -> str:
        """The file as Confluent's registry prints it."""
        return print_file(self.file)

    @property
    def name(self) -> str | None:
        """The full name of the first message."""
        return next(iter(self.message_names()), None)

    def message_names(self) -> list[str]:
        """Return the full names of the messages at the top, in their order."""
        prefix = f"{self.file.package}." if self.file.package else ""
        return [prefix + element.name for element in self.file.types if isinstance(element, MessageElement)]

    @cached_property
    def imports(self) -> dict[str, FileElement]:
        """All files that are imported, also those that imports import, as far as they are known."""
        found: dict[str, FileElement] = {}
        # A reference counts also if nothing imports it by that name, as with Confluent's registry.
        waiting = [*self.file.imports, *self.file.public_imports, *self.resolved]
        while waiting:
            path = waiting.pop(0)
            if path in found:
                continue
            given = self.resolved.get(path)
            element = find_well_known(path) if given is None else parse_text(given)
            if element is not None:
                found[path] = element
                waiting += [*element.imports, *element.public_imports]
        return found

    @cached_property
    def types(self) -> Types:
        """All types that the file can use."""
        return Types(self.file, self.imports)

    def check(self) -> None:
        """Refuse types that are not defined."""
        print_file(self.file, self.types)

    def normalized(self) -> Self:
        """Return the file with full names of types, and with everything sorted whose order means nothing."""
        return type(self)(
            print_file(self.file, self.types), tuple(sorted(set(self.references))), self.resolved
        )

    def differences(self, writer: Self) -> list[Difference]:
        """Return why this schema cannot read what was written with `writer`."""
        return compare((writer.file, writer.types), (self.file, self.types))

    def formatted(self, wanted: str) -> str:
        """Return the text, without extensions, or the descriptor in base64 (`serialized`)."""
        if wanted == "ignore_extensions":
            return print_file(self.file, without_extensions=True)
        if wanted == "serialized":
            return base64.b64encode(self.descriptor().SerializeToString()).decode()
        return self.text

    def has_top_level_field(self, name: str) -> bool:
        """Say whether the first message has the field."""
        first = next((item for item in self.file.types if isinstance(item, MessageElement)), None)
        return first is not None and first.find_field(name) is not None

    def descriptor(self, name: str = DEFAULT_NAME) -> FileDescriptorProto:
        """Return the descriptor of the file."""
        return to_descriptor(self.file, self.types, name)

    def add_to_pool(self, pool: Any, name: str = DEFAULT_NAME) -> Any:
        """Add the file and all its imports to a descriptor pool. Returns the file as the pool has it."""
        for path, file in self._in_order():
            google = find_google_file(path) if path not in self.resolved else None
            _add(pool, google or to_descriptor(file, Types(file, self.imports), path))
        _add(pool, self.descriptor(name))
        return pool.FindFileByName(name)

    def _in_order(self) -> list[tuple[str, FileElement]]:
        """Return the imports so that each comes after what it imports itself."""
        done: dict[str, FileElement] = {}

        def visit(path: str) -> None:
            file = self.imports.get(path)
            if file is not None and path not in done:
                for other in (*file.imports, *file.public_imports):
                    visit(other)
                done[path] = file

        for path in self.imports:
            visit(path)
        return list(done.items())


def parse_text(text: str) -> FileElement:
    """Parse a file, or a descriptor of one in base64. Raises InvalidSchema."""
    try:
        return parse_proto(text)
    except InvalidSchema as error:
        try:
            return to_elements(FileDescriptorProto.FromString(base64.b64decode(text, validate=True)))
        except (DecodeError, binascii.Error, ValueError):
            raise error from None


def _add(pool: Any, file: FileDescriptorProto) -> None:
    try:
        pool.Add(file)
    except TypeError as error:
        raise InvalidSchema(str(error)) from error

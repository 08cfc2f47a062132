"""The types that a file can use: its own and those of its imports, found by the rules of scopes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.schemas.protobuf.elements import (
    EnumElement,
    ExtendElement,
    FieldElement,
    FileElement,
    MessageElement,
)

SCALARS: Final = frozenset(
    ("double", "float", "bool", "string", "bytes")
    + tuple(kind + bits for kind in ("int", "uint", "sint", "fixed", "sfixed") for bits in ("32", "64"))
)


def map_parts(kind: str) -> tuple[str, str] | None:
    """Return the types of the keys and of the values of a map."""
    if not kind.startswith("map<"):
        return None
    key, _, value = kind[4:-1].partition(",")
    return key.strip(), value.strip()


@dataclass(frozen=True)
class TypeInfo:
    """A type: where it comes from, and what it is. `source` is empty for types of the file itself."""

    package: str
    source: str
    element: MessageElement | EnumElement

    @property
    def is_enum(self) -> bool:
        """Say whether it is an enum."""
        return isinstance(self.element, EnumElement)

    @property
    def map_type(self) -> str | None:
        """The type of a field whose type is this, if descriptors spell a map that way."""
        element = self.element
        if isinstance(element, EnumElement) or not element.is_map_entry:
            return None
        key, value = element.find_field("key"), element.find_field("value")
        return None if key is None or value is None else f"map<{key.type}, {value.type}>"


class Types:
    """All types that a file can use, by their full names."""

    def __init__(self, file: FileElement, imports: Mapping[str, FileElement]) -> None:
        self.package = file.package or ""
        self._types: dict[str, TypeInfo] = {}
        self._extensions: dict[str, FieldElement] = {}
        for source, other in imports.items():
            self._collect(source, other)
        self._collect("", file)

    def find(self, name: str, scope: Sequence[str], package: str | None = None) -> str | None:
        """Return the full name of a type as it is seen from a scope: the nearest one counts."""
        return _find(self._types, name, scope, self.package if package is None else package)

    def find_extension(self, name: str, scope: Sequence[str]) -> str | None:
        """Return the full name of an extension as it is seen from a scope."""
        return _find(self._extensions, name, scope, self.package)

    def extension(self, full_name: str) -> FieldElement | None:
        """Return an extension by its full name."""
        return self._extensions.get(full_name)

    def __getitem__(self, full_name: str) -> TypeInfo:
        return self._types[full_name]

    def look_up(self, name: str, scope: Sequence[str], package: str | None = None) -> TypeInfo | None:
        """Return a type as it is seen from a scope."""
        full_name = self.find(name, scope, package)
        return None if full_name is None else self._types[full_name]

    def _collect(self, source: str, file: FileElement) -> None:
        package = file.package or ""
        self._add_extensions(file.extends, (package,) if package else ())
        self._add(source, package, file.types, (package,) if package else ())

    def _add(
        self,
        source: str,
        package: str,
        elements: Iterable[MessageElement | EnumElement],
        scope: tuple[str, ...],
    ) -> None:
        for element in elements:
            path = scope + (element.name,)
            self._types[".".join(path)] = TypeInfo(package, source, element)
            if isinstance(element, MessageElement):
                self._add_extensions(element.extends, path)
                self._add(source, package, element.types, path)

    def _add_extensions(self, extends: Iterable[ExtendElement], scope: tuple[str, ...]) -> None:
        for extend in extends:
            for field in extend.fields:
                self._extensions[".".join(scope + (field.name,))] = field


def _find(known: Mapping[str, object], name: str, scope: Sequence[str], package: str) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    path = [part for part in package.split(".") if part] + list(scope)
    while path:
        full_name = ".".join(path) + "." + name
        if full_name in known:
            return full_name
        path.pop()
    return name if name in known else None

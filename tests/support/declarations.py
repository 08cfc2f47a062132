"""All messages that `ottla.wire` declares, found by walking its modules, and an example of each."""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import ottla.wire
from ottla.model.uuid import Uuid
from ottla.wire.declare import MessageSpec, spec_of
from ottla.wire.layout import Field, layout_of


@cache
def all_messages() -> dict[str, type[Any]]:
    """Return every declared message by its name. No two messages share one."""
    messages: dict[str, type[Any]] = {}
    for module in pkgutil.walk_packages(ottla.wire.__path__, "ottla.wire."):
        for declared in vars(import_module(module.name)).values():
            is_ours = getattr(declared, "__module__", None) == module.name
            if is_ours and isinstance(getattr(declared, "__wire_spec__", None), MessageSpec):
                assert declared.__name__ not in messages, f"{declared.__name__} is declared twice"
                messages[declared.__name__] = declared
    return messages


def messages_and_versions() -> Iterator[tuple[type[Any], int]]:
    """Return each message in each of its valid versions."""
    for cls in all_messages().values():
        for version in spec_of(cls).versions.all:
            yield cls, version


def populated(cls: type[Any], version: int) -> Any:
    """Return a message in which every field that the version has is set, and every array has two elements."""
    values = [
        _populated_field(field, version) if version in field.versions else field.default
        for field in layout_of(cls)
    ]
    return tuple.__new__(cls, values)


_SOME = {"string": "some", "bytes": b"some", "records": b"some", "bool": True, "uuid": Uuid(b"\1" * 16)}


def _populated_field(field: Field, version: int) -> Any:
    value: Any
    if field.struct is not None:
        value = populated(field.struct, version)
    else:
        some = {
            "string": "some",
            "bytes": b"some",
            "records": b"some",
            "bool": True,
            "uuid": Uuid(b"\1" * 16),
        }
        value = some.get(field.kind, 5)
    return (value, value) if field.is_array else value

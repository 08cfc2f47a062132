"""All messages that `ottla.wire` declares, found by walking its modules."""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import ottla.wire
from ottla.wire.declare import MessageSpec, spec_of
from ottla.wire.layout import layout_of


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


def structs_of(cls: type[Any]) -> Iterator[type[Any]]:
    """Return the structs inside a message, at any depth."""
    for field in layout_of(cls):
        if field.struct is not None:
            yield field.struct
            yield from structs_of(field.struct)

"""Says which field of a message cannot be written, and why.

The compiled encoders check nothing that Python does not check for them: a wrong value raises whatever it
raises. Only then is it worth while to look for the field.
"""

from collections.abc import Sized
from typing import Any

from ottla.wire.layout import Field, layout_of
from ottla.wire.primitives import STRING_BYTES_MAX

_BITS = {"int8": 8, "int16": 16, "error_code": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}


def find_bad_field(message: Any, version: int) -> str | None:
    """Return a sentence about the first field that `version` cannot carry. None if all look right."""
    return _find_in_struct(message, version, type(message).__name__)


def _find_in_struct(value: Any, version: int, path: str) -> str | None:
    for field, item in zip(layout_of(type(value)), value, strict=True):
        if version in field.versions:
            found = _find_in_field(field, item, version, f"{path}.{field.name}")
            if found is not None:
                return found
    return None


def _find_in_field(field: Field, value: Any, version: int, path: str) -> str | None:
    if value is None:
        return None if version in field.nullable else _null(path, version)
    if not field.is_array:
        return _find_in_value(field, value, version, path)
    if not isinstance(value, tuple | list):
        return f"{path} is {value!r}, not a tuple"
    for position, item in enumerate(value):
        found = _find_in_value(field, item, version, f"{path}[{position}]")
        if found is not None:
            return found
    return None


def _find_in_value(field: Field, value: Any, version: int, path: str) -> str | None:
    if value is None:
        return _null(path, version)
    if field.struct is not None:
        if not isinstance(value, field.struct):
            return f"{path} is {value!r}, not a {field.struct.__name__}"
        return _find_in_struct(value, version, path)
    return None if _fits(field.kind, value) else f"{path} is {value!r}, which is no {field.kind}"


def _null(path: str, version: int) -> str:
    return f"{path} is None, which version {version} does not allow"


def _fits(kind: str, value: Any) -> bool:
    if kind in _BITS:
        low = 0 if kind.startswith("u") else -1 << _BITS[kind] - 1
        return isinstance(value, int) and low <= value < low + (1 << _BITS[kind])
    if kind == "string":
        return isinstance(value, str) and _encoded_bytes(value) <= STRING_BYTES_MAX
    if kind == "float64":
        return isinstance(value, float | int)
    if kind == "records":
        return isinstance(value, Sized)
    return kind == "bool" or isinstance(value, bytes | bytearray | memoryview)


def _encoded_bytes(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        # A lone surrogate: no text at all.
        return STRING_BYTES_MAX + 1

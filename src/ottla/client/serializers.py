"""Values to bytes and back. A serializer is any function; these are the common ones."""

import json
from collections.abc import Callable
from typing import Any

Serializer = Callable[[str, Any], bytes | None]
"""(topic, value) -> bytes. The topic lets a schema registry find the schema. None stays null on the wire."""
Deserializer = Callable[[str, bytes | None], Any]


def raw_bytes(_topic: str, value: Any) -> bytes | None:
    """Take bytes as they are, and text as UTF-8."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(
        f"only bytes and str can be sent without a serializer, not {type(value).__name__}: set a serializer"
    )


def to_json(_topic: str, value: Any) -> bytes | None:
    """Write JSON in UTF-8, compact, keys as they come."""
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def adds_headers(*serializers: Serializer) -> bool:
    """Say whether one of these puts the id of a schema into a header of the record."""
    return any(getattr(serializer, "with_headers", None) for serializer in serializers)


def serialize_with_headers(
    serializer: Serializer, topic: str, value: Any
) -> tuple[bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """Return a value as bytes, and the headers that its serializer adds."""
    if value is None:
        return None, ()
    with_headers = getattr(serializer, "with_headers", None)
    if with_headers is None:
        return serializer(topic, value), ()
    data, headers = with_headers(topic, value)
    return data, tuple(headers)


def from_bytes(_topic: str, data: bytes | None) -> bytes | None:
    """Hand the bytes on."""
    return data


def from_text(_topic: str, data: bytes | None) -> str | None:
    """Read UTF-8."""
    return None if data is None else data.decode()


def from_json(_topic: str, data: bytes | None) -> Any:
    """Read JSON."""
    return None if data is None else json.loads(data)

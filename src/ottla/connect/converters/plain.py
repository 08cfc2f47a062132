"""Converters for text, numbers, and bytes as they are."""

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from ottla.connect.data.record import Header
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    optional,
    to_primitive,
)
from ottla.connect.errors import DataError


class StringConverter:
    """Text in UTF-8, or another encoding."""

    def __init__(self, config: Mapping[str, str]) -> None:
        encoding = config.get("converter.encoding", "UTF-8")
        try:
            "".encode(encoding)
        except LookupError as error:
            raise DataError(f"converter.encoding is {encoding!r}: there is no such encoding") from error
        self._encoding = encoding

    def to_bytes(self, _topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as text."""
        return None if value is None else text_of(schema, value).encode(self._encoding)

    def from_bytes(self, _topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return bytes as text."""
        try:
            return OPTIONAL_STRING, None if data is None else data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"Failed to deserialize string: {error}") from error


def text_of(schema: Schema | None, value: Any) -> str:
    """Return a value as text. Deviation: structs become JSON, where Java prints `Struct{a=1}`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Mapping | list):
        return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)
    return str(value if schema is None else to_primitive(schema, value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else text_of(None, value)


class ByteArrayConverter:
    """Bytes as they are."""

    def __init__(self, _config: Mapping[str, str]) -> None:
        pass

    def to_bytes(self, _topic: str, _schema: Schema | None, value: Any) -> bytes | None:
        """Return bytes."""
        if value is None or isinstance(value, bytes | bytearray | memoryview):
            return None if value is None else bytes(value)
        raise DataError(f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}")

    def from_bytes(self, _topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return bytes."""
        return optional(BYTES), data


class NumberConverter:
    """Numbers in Kafka's binary form."""

    def __init__(self, form: str, schema: Schema, name: str) -> None:
        self._form = struct.Struct(form)
        self._schema = optional(schema)
        self._name = name

    def to_bytes(self, _topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a number as bytes."""
        if value is None:
            return None
        try:
            return self._form.pack(value if schema is None else to_primitive(schema, value))
        except struct.error as error:
            raise DataError(f"{value!r} is not a number for {self._name}: {error}") from error

    def from_bytes(self, _topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return bytes as a number."""
        if data is None:
            return self._schema, None
        try:
            return self._schema, self._form.unpack(data)[0]
        except struct.error as error:
            raise DataError(f"{len(data)} bytes are not a number for {self._name}: {error}") from error


NUMBERS: Final = {
    "Short": (">h", Schema(Type.INT16)),
    "Integer": (">i", INT32),
    "Long": (">q", INT64),
    "Float": (">f", Schema(Type.FLOAT32)),
    "Double": (">d", FLOAT64),
    "Boolean": (">?", BOOLEAN),
}


class SimpleHeaderConverter:
    """Headers as text, whose types are found by looking at them."""

    def __init__(self, _config: Mapping[str, str]) -> None:
        pass

    def to_bytes(self, header: Header) -> bytes | None:
        """Return the value of a header as text."""
        return None if header.value is None else text_of(header.schema, header.value).encode()

    def from_bytes(self, name: str, data: bytes | None) -> Header:
        """Return a header: numbers, true, false, lists and maps are recognized in text."""
        if data is None:
            return Header(name, None, None)
        text = data.decode(errors="replace")
        try:
            value = json.loads(text)
        except ValueError:
            return Header(name, STRING, text)
        if isinstance(value, bool):
            return Header(name, BOOLEAN, value)
        if isinstance(value, int):
            return Header(name, INT64, value)
        if isinstance(value, float):
            return Header(name, FLOAT64, value)
        return Header(name, STRING if isinstance(value, str) else None, value)


class ValueHeaderConverter:
    """Headers by a converter of values."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def to_bytes(self, header: Header) -> bytes | None:
        """Return the value of a header as bytes."""
        data: bytes | None = self._converter.to_bytes("", header.schema, header.value)
        return data

    def from_bytes(self, name: str, data: bytes | None) -> Header:
        """Return a header with its value."""
        schema, value = self._converter.from_bytes("", data)
        return Header(name, schema, value)

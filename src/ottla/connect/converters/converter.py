"""What a converter does. It is made for keys or for values of one connector."""

from typing import Any, Protocol

from ottla.connect.data.record import Header
from ottla.connect.data.schema import Schema


class Converter(Protocol):
    """From values to bytes and back. Raises DataError.

    One that asks a server says so by an attribute `waits`. It is then called in a thread.
    """

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as the bytes of a record."""

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return the value of a record, with its schema."""


class HeaderConverter(Protocol):
    """From values of headers to bytes and back. Raises DataError."""

    def to_bytes(self, header: Header) -> bytes | None:
        """Return the value of a header as bytes."""

    def from_bytes(self, name: str, data: bytes | None) -> Header:
        """Return a header with its value."""

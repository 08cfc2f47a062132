"""How a record says which schema its value has.

The value begins with a zero byte and the id in four bytes. In Protobuf the path to the message within its
file follows, as zig-zag varints: their number and then each, and a single zero for the first message. Or a
header has a one, the 16 bytes of the schema's guid and that path, and the value is bare.
"""

import struct
import uuid
from collections.abc import Iterable, Sequence
from typing import Final

from ottla.schemas.errors import UnreadableValue

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
PREFIX_BYTES: Final = 5
_PREFIX: Final = struct.Struct(">bi")
_MAGIC_ID: Final = 0
_MAGIC_GUID: Final = 1
_GUID_BYTES: Final = 17
_FIRST_MESSAGE: Final = b"\x00"
_INDEXES_MAX: Final = 100

Headers = Sequence[tuple[str, bytes | None]]


def encode_prefix(schema_id: int) -> bytes:
    """Return what a value begins with."""
    return _PREFIX.pack(_MAGIC_ID, schema_id)


def decode_prefix(data: bytes) -> int:
    """Return the id that a value begins with. Raises UnreadableValue."""
    if len(data) < PREFIX_BYTES or data[0] != _MAGIC_ID:
        raise UnreadableValue("it does not begin with the id of a schema")
    schema_id: int = _PREFIX.unpack_from(data)[1]
    return schema_id


def encode_guid(guid: str) -> bytes:
    """Return the header that names a schema by its guid."""
    return bytes([_MAGIC_GUID]) + uuid.UUID(guid).bytes


def find_guid(headers: Headers, *, is_key: bool) -> tuple[str, bytes] | None:
    """Return the guid that a header names, and what follows it. Raises UnreadableValue."""
    name = KEY_HEADER if is_key else VALUE_HEADER
    for key, value in headers:
        if key == name and value:
            if len(value) < _GUID_BYTES or value[0] != _MAGIC_GUID:
                raise UnreadableValue(f"its header {name} does not name a schema")
            return str(uuid.UUID(bytes=bytes(value[1:_GUID_BYTES]))), bytes(value[_GUID_BYTES:])
    return None


def encode_indexes(path: Sequence[int]) -> bytes:
    """Return the path to a message within its file."""
    if list(path) == [0]:
        return _FIRST_MESSAGE
    return b"".join(map(_zig_zag, (len(path), *path)))


def decode_indexes(data: bytes, position: int) -> tuple[list[int], int]:
    """Read the path to a message. Returns it with the position after it. Raises UnreadableValue."""
    count, position = _decode_zig_zag(data, position)
    if count == 0:
        return [0], position
    if not 0 < count <= _INDEXES_MAX:
        raise UnreadableValue(f"it names a message by {count} indexes")
    path = []
    for _ in range(count):
        index, position = _decode_zig_zag(data, position)
        path.append(index)
    return path, position


def _zig_zag(number: int) -> bytes:
    return bytes(_varint((number << 1) ^ (number >> 63)))


def _varint(number: int) -> Iterable[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def _decode_zig_zag(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
    raise UnreadableValue("it ends within the path to its message")

"""The pieces that compiled codecs call: varints, runs of integers, and the errors they raise.

The common case (a length below 128, an array of at most 16 integers) is inlined by the compilers; what is
here is the rest.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NoReturn

from ottla.wire.errors import MalformedBytes

STRING_BYTES_MAX = 32767
TAGGED_FIELDS_MAX = 64
_INT32_MAX = (1 << 31) - 1
INTEGER_FORMAT = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
SHORT_RUN_MAX = 16

Unpack = Callable[[Any, int], tuple[Any, ...]]
Pack = Callable[..., bytes]


def unpack_runs(kind: str) -> tuple[Unpack, ...]:
    """Return functions that read 0, 1, ... 16 integers."""
    return tuple(Struct(f">{n}{INTEGER_FORMAT[kind]}").unpack_from for n in range(SHORT_RUN_MAX + 1))


def unpack_long_run(kind: str, buffer: Any, position: int, length: int, end: int) -> tuple[int, ...]:
    """Read more integers than the short runs can, if the bytes are there."""
    run = Struct(f">{INTEGER_FORMAT[kind]}")
    if length > (end - position) // run.size:
        too_many(length, end - position)
    return Struct(f">{length}{INTEGER_FORMAT[kind]}").unpack_from(buffer, position)


def pack_runs(kind: str, prefix: str) -> tuple[Pack, ...]:
    """Return functions that write a count of the given format and then 0, 1, ... 16 integers."""
    return tuple(Struct(f">{prefix}{n}{INTEGER_FORMAT[kind]}").pack for n in range(SHORT_RUN_MAX + 1))


def pack_long_run(kind: str, values: Sequence[int]) -> bytes:
    """Write any number of integers."""
    return Struct(f">{len(values)}{INTEGER_FORMAT[kind]}").pack(*values)


def read_uvarint(buffer: Any, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 31 bits. Return it and where it ends."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    return read_rest_of_uvarint(buffer, position + 1, byte)


def read_rest_of_uvarint(buffer: Any, position: int, value: int) -> tuple[int, int]:
    """Go on reading an unsigned varint whose first byte was above 127. Return it and where it ends."""
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _INT32_MAX:
                break
            return value, position
    raise MalformedBytes("a varint does not fit 31 bits")


def uvarint(value: int) -> bytes:
    """Write an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


ONE_BYTE = tuple(bytes((n,)) for n in range(256))


def not_null(field: str) -> NoReturn:
    """Refuse a null where the protocol has none."""
    raise MalformedBytes(f"{field} is null, which this version does not allow")


def too_short(field: str, length: int, left: int) -> NoReturn:
    """Refuse a length that reaches beyond the message."""
    raise MalformedBytes(f"{field} announces {length} bytes, {left} are left")


def too_many(count: int, left: int) -> NoReturn:
    """Refuse a count of elements that the bytes left cannot hold."""
    raise MalformedBytes(f"{count} elements are announced, {left} bytes are left")


def too_many_tags(count: int) -> NoReturn:
    """Refuse more tagged fields than any message has: a cheap way to eat memory."""
    raise MalformedBytes(f"{count} tagged fields are announced, at most {TAGGED_FIELDS_MAX} are allowed")


def bad_tag(tag: int) -> NoReturn:
    """Refuse tags that are out of order, repeated, or whose size does not fit their content."""
    raise MalformedBytes(f"the tagged field {tag} is out of order or not as long as it says")

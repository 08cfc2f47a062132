"""The pieces that compiled codecs call: varints, runs of integers, and the errors they raise.

The common case (a length below 128, an array of at most 16 integers) is inlined by the compilers; what is
here is the rest.
"""

from collections.abc import Callable, Generator, Sequence
from struct import Struct
from typing import Any, NoReturn

from ottla.wire.errors import MalformedBytes

STRING_BYTES_MAX = 32767
TAGGED_FIELDS_MAX = 64
_INT32_MAX = (1 << 31) - 1
INTEGER_FORMAT = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
SHORT_RUN_MAX = 16
_INTEGERS_AT_ONCE = 256

Unpack = Callable[[Any, int], tuple[Any, ...]]
Pack = Callable[..., bytes]


def unpack_runs(kind: str, one_more: int) -> tuple[Unpack, ...]:
    """Return functions that read 0, 1, ... 16 integers, to be looked up by their number or by one more."""
    runs = tuple(Struct(f">{n}{INTEGER_FORMAT[kind]}").unpack_from for n in range(SHORT_RUN_MAX + 1))
    return runs[:one_more] + runs


def read_long_integers(
    kind: str, buffer: Any, position: int, count: int, end: int, field: str, nullable: bool, compact: bool
) -> tuple[tuple[int, ...] | None, int]:
    """Read an array of integers that is longer than the short runs, or null. Return it and where it ends."""
    if compact:
        count, position = _finish_length(buffer, position, count)
    if count < 0:
        return None if nullable else not_null(field), position
    run = Struct(f">{INTEGER_FORMAT[kind]}")
    if count > (end - position) // run.size:
        too_many(count, end - position)
    integers = Struct(f">{count}{INTEGER_FORMAT[kind]}").unpack_from(buffer, position)
    return integers, position + count * run.size


def read_long_integers_patiently(
    kind: str, buffer: Any, position: int, count: int, end: int, field: str, nullable: bool, compact: bool
) -> Generator[None, None, tuple[tuple[int, ...] | None, int]]:
    """Do what `read_long_integers` does, and yield after some of them each time."""
    if compact:
        count, position = _finish_length(buffer, position, count)
    if count < 0:
        return None if nullable else not_null(field), position
    size = Struct(f">{INTEGER_FORMAT[kind]}").size
    if count > (end - position) // size:
        too_many(count, end - position)
    integers: list[int] = []
    while left := count - len(integers):
        run = Struct(f">{min(left, _INTEGERS_AT_ONCE)}{INTEGER_FORMAT[kind]}")
        integers += run.unpack_from(buffer, position)
        position += run.size
        yield
    return tuple(integers), position


def read_long_string(
    buffer: Any, position: int, length: int, end: int, field: str, nullable: bool
) -> tuple[str | None, int]:
    """Read a compact string of at least 127 bytes, or null. Return it and where it ends."""
    length, position = _finish_length(buffer, position, length)
    if length < 0:
        return None if nullable else not_null(field), position
    stop = position + length
    if stop > end or length > STRING_BYTES_MAX:
        too_short(field, length, end - position)
    return str(buffer[position:stop], "utf-8"), stop


def _finish_length(buffer: Any, position: int, first_byte: int) -> tuple[int, int]:
    """Read the rest of a compact length, which travels as one more than it is."""
    if first_byte > 0x7F:
        first_byte, position = read_rest_of_uvarint(buffer, position, first_byte)
    return first_byte - 1, position


def skip_tagged_fields(buffer: Any, position: int, end: int, count: int) -> int:
    """Skip tagged fields that this release does not know. Return where they end."""
    if count > TAGGED_FIELDS_MAX:
        too_many_tags(count)
    previous = -1
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if tag <= previous or size > end - position:
            bad_tag(tag)
        previous = tag
        position += size
    return position


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
    byte = buffer[position]
    value = value & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, position + 1
    for shift in (14, 21, 28):
        position += 1
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _INT32_MAX:
                break
            return value, position + 1
    raise MalformedBytes("a varint does not fit 31 bits")


def uvarint(value: int) -> bytes:
    """Write an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return _pack_two_bytes(value & 0x7F | 0x80, value >> 7)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_pack_two_bytes = Struct("BB").pack
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

"""Single records of format 2: decoded, scanned and encoded. The record area must be decompressed already.

A record, all numbers zig-zag varints unless noted:

    length of the rest · attributes (int8, unused) · timestamp delta · offset delta
    key length (negative: null) · key · value length (negative: null) · value
    number of headers · headers, each: key length · UTF-8 key · value length (negative: null) · value

This is the one module of the package where time goes per record. It is plain typed Python, so that it can be
compiled as it is. Its loops take records whose numbers are short inline, which are nearly all, and leave any
other record to `decode_record`, which also finds out what is wrong with a bad one.

What is declared is never believed: every length is checked against what is left of its record, and the number
of records is only the bound of a loop. Whether offsets are consecutive is not checked here, since a compacted
batch has gaps.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from ottla.records.errors import InvalidRecord

Header = tuple[str, bytes | None]
Headers = tuple[Header, ...]


class Record(NamedTuple):
    """One record with its absolute offset and timestamp.

    Key and value are bytes, not views: a memoryview costs more to make than a copy of 100 bytes, and a single
    one keeps its whole batch alive.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


# The same as a plain tuple. Making a record of one costs a third of decoding it, so loops that take it apart
# at once anyway are better off with this.
RecordTuple = tuple[int, int, bytes | None, bytes | None, Headers]

# Offset delta, timestamp delta, has a key, has a value.
ScannedRecord = tuple[int, int, bool, bool]

# Length, attributes, timestamp delta, offset delta, key length, value length, header count: a byte each.
RECORD_BYTES_MIN: Final = 7

# Header keys are text, but nothing keeps a client from sending other bytes. Those are carried as lone
# surrogates, so that what was read is written again unchanged.
_KEY_ERRORS: Final = "surrogateescape"

_INT32_BYTES_MAX: Final = 5
_INT64_BYTES_MAX: Final = 10
_INT64_MAX: Final = 2**63 - 1
_TWO_BYTE_MAX: Final = 8191

# A one-byte number, decoded.
_ONE: Final = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
# The first byte of a two-byte number, decoded: add the second, shifted by 6. That is right for a positive
# number. A negative one (odd first byte) comes out far below -64, and is left to the general decoder.
_LOW: Final = tuple(-(1 << 40) if byte < 128 or byte & 1 else (byte >> 1) - 64 for byte in range(256))

# One call instead of eight look-ups. Only a record of seven bytes at the very end has no eight.
_HEAD: Final = Struct("8B")


def _encode_zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


# By table a number is encoded ten times as fast as by the loop above.
_VARINTS: Final = tuple(_encode_zigzag(number) for number in range(4096))
# The start of a record, by its place in the batch: no attributes, no timestamp delta, then the offset delta.
_HEADS: Final = tuple(b"\x00\x00" + varint for varint in _VARINTS)


def encode_varint(number: int) -> bytes:
    """Encode a signed number of up to 64 bits, zig-zag."""
    return _VARINTS[number] if 0 <= number < 4096 else _encode_zigzag(number)


def decode_varint(data: bytes, position: int, end: int, index: int) -> tuple[int, int]:
    """Decode a zig-zag number of 32 bits and return it with the position after it.

    As in Kafka, bits beyond the 32nd are dropped.
    """
    if position < end:
        byte = data[position]
        if byte < 128:
            return _ONE[byte], position + 1
    unsigned, position = _decode_unsigned(data, position, end, _INT32_BYTES_MAX, index)
    unsigned &= 0xFFFFFFFF
    return unsigned >> 1 ^ -(unsigned & 1), position


def decode_varlong(data: bytes, position: int, end: int, index: int) -> tuple[int, int]:
    """Decode a zig-zag number of 64 bits and return it with the position after it."""
    unsigned, position = _decode_unsigned(data, position, end, _INT64_BYTES_MAX, index)
    unsigned &= 0xFFFFFFFFFFFFFFFF
    return unsigned >> 1 ^ -(unsigned & 1), position


def _decode_unsigned(data: bytes, position: int, end: int, bytes_max: int, index: int) -> tuple[int, int]:
    number = 0
    shift = 0
    for at in range(position, min(end, position + bytes_max)):
        byte = data[at]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at + 1
        shift += 7
    if end - position < bytes_max:
        raise InvalidRecord(index, "cut off within a number")
    raise InvalidRecord(index, f"a number of more than {bytes_max} bytes")


def iter_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> Iterator[Record]:
    """Decode one record after the other. With an `append_time`, all of them have that timestamp."""
    return map(_as_record, iter_record_tuples(data, count, base_offset, base_timestamp, append_time))


# The constructor of a named tuple is interpreted; this one is not, and takes half the time.
_as_record: Final[Callable[[RecordTuple], Record]] = partial(tuple.__new__, Record)


def iter_record_tuples(  # noqa: C901 - one loop: with its branches as functions it runs at half the speed
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> Iterator[RecordTuple]:
    """Decode one record after the other, as a plain tuple."""
    check_count(count)
    inline_count = inline_count_of(count, base_timestamp)
    one, low, unpack_head = _ONE, _LOW, _HEAD.unpack_from
    size = len(data)
    start = 0
    next_index = 0
    key: bytes | None
    value: bytes | None
    while next_index < count:
        index = next_index
        try:
            # A `break` or an error leaves the record at `start` to the general decoder.
            for index in range(next_index, inline_count):
                b0, b1, b2, b3, b4, b5, b6, b7 = unpack_head(data, start)
                if b0 > 127:
                    if b1 > 127:
                        break
                    position = start + 2
                    end = position + low[b0] + (b1 << 6)
                else:
                    position = start + 1
                    end = position + one[b0]
                    b3, b4, b5, b6, b7 = b2, b3, b4, b5, b6

                # b3 to b7 now follow the attributes, wherever those are.
                if b3 < 128:
                    timestamp_delta = one[b3]
                    if b4 < 128:
                        offset_delta = one[b4]
                        byte = b5
                        position += 4
                    else:
                        offset_delta = low[b4] + (b5 << 6)
                        if b5 > 127 or offset_delta < 0:
                            break
                        byte = b6
                        position += 5
                else:
                    timestamp_delta = low[b3] + (b4 << 6)
                    if b4 > 127 or timestamp_delta < 0:
                        break
                    if b5 < 128:
                        offset_delta = one[b5]
                        byte = b6
                        position += 5
                    else:
                        offset_delta = low[b5] + (b6 << 6)
                        if b6 > 127 or offset_delta < 0:
                            break
                        byte = b7
                        position += 6
                if byte > 127:
                    break

                length = one[byte]
                if length < 0:
                    key = None
                else:
                    stop = position + length
                    key = data[position:stop]
                    position = stop

                byte = data[position]
                if byte < 128:
                    length = one[byte]
                    position += 1
                else:
                    second = data[position + 1]
                    if second > 127:
                        break
                    length = low[byte] + (second << 6)
                    position += 2
                if length >= 0:
                    stop = position + length
                    value = data[position:stop]
                    position = stop
                elif length < -64:
                    break
                else:
                    value = None

                headers: Headers = ()
                if position + 1 != end or data[position] != 0:
                    if position >= end or end > size:
                        break
                    headers = decode_headers(data, position, end, index)
                timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
                yield base_offset + offset_delta, timestamp, key, value, headers
                start = end
            else:
                if inline_count > 0:
                    break
        except (IndexError, struct_error):
            pass
        offset_delta, timestamp_delta, key, value, headers, start = decode_record(data, start, index)
        timestamp = wrap_int64(base_timestamp + timestamp_delta) if append_time is None else append_time
        yield base_offset + offset_delta, timestamp, key, value, headers
        next_index = index + 1
    check_end(start, size, count)


def scan_records(data: bytes, count: int) -> Iterator[ScannedRecord]:  # noqa: C901 - as in `iter_record_tuples`
    """Check every record as decoding would, but only tell what a broker asks about it."""
    check_count(count)
    one, low, unpack_head = _ONE, _LOW, _HEAD.unpack_from
    size = len(data)
    start = 0
    next_index = 0
    while next_index < count:
        index = next_index
        try:
            for index in range(next_index, count):
                b0, b1, b2, b3, b4, b5, b6, b7 = unpack_head(data, start)
                if b0 > 127:
                    if b1 > 127:
                        break
                    position = start + 2
                    end = position + low[b0] + (b1 << 6)
                else:
                    position = start + 1
                    end = position + one[b0]
                    b3, b4, b5, b6, b7 = b2, b3, b4, b5, b6

                # b3 to b7 now follow the attributes, wherever those are.
                if b3 < 128:
                    timestamp_delta = one[b3]
                    if b4 < 128:
                        offset_delta = one[b4]
                        byte = b5
                        position += 4
                    else:
                        offset_delta = low[b4] + (b5 << 6)
                        if b5 > 127 or offset_delta < 0:
                            break
                        byte = b6
                        position += 5
                else:
                    timestamp_delta = low[b3] + (b4 << 6)
                    if b4 > 127 or timestamp_delta < 0:
                        break
                    if b5 < 128:
                        offset_delta = one[b5]
                        byte = b6
                        position += 5
                    else:
                        offset_delta = low[b5] + (b6 << 6)
                        if b6 > 127 or offset_delta < 0:
                            break
                        byte = b7
                        position += 6
                if byte > 127:
                    break

                key_length = one[byte]
                if key_length > 0:
                    position += key_length
                byte = data[position]
                if byte < 128:
                    length = one[byte]
                    position += 1
                else:
                    second = data[position + 1]
                    if second > 127:
                        break
                    length = low[byte] + (second << 6)
                    position += 2
                if length > 0:
                    position += length
                elif length < -64:
                    break

                if position + 1 != end or data[position] != 0:
                    if position >= end or end > size:
                        break
                    decode_headers(data, position, end, index)
                yield offset_delta, timestamp_delta, key_length >= 0, length >= 0
                start = end
            else:
                break
        except (IndexError, struct_error):
            pass
        offset_delta, timestamp_delta, key, value, _, start = decode_record(data, start, index)
        yield offset_delta, timestamp_delta, key is not None, value is not None
        next_index = index + 1
    check_end(start, size, count)


def check_count(count: int) -> None:
    if count < 0:
        raise InvalidRecord(0, f"the batch declares {count} records")


def inline_count_of(count: int, base_timestamp: int) -> int:
    """Return how many records may be decoded inline: none, if a small delta could overflow 64 bits."""
    return count if abs(base_timestamp) <= _INT64_MAX - _TWO_BYTE_MAX else 0


def check_end(position: int, size: int, count: int) -> None:
    if position != size:
        raise InvalidRecord(count, f"{size - position} bytes are left after the last declared record")


def wrap_int64(number: int) -> int:
    """Let a sum overflow as Java does, so that whatever was read can be written."""
    return (number + 2**63) % 2**64 - 2**63


def decode_record(
    data: bytes, start: int, index: int
) -> tuple[int, int, bytes | None, bytes | None, Headers, int]:
    """Decode any record. Returns offset delta, timestamp delta, key, value, headers, and where it ends."""
    if start >= len(data):
        raise InvalidRecord(index, "no bytes are left, though the batch declares more records")
    length, position = decode_varint(data, start, len(data), index)
    end = position + length
    if length < RECORD_BYTES_MIN - 1:
        raise InvalidRecord(index, f"a record of {length} bytes")
    if end > len(data):
        raise InvalidRecord(index, f"a record of {length} bytes, {len(data) - position} are left")
    timestamp_delta, position = decode_varlong(data, position + 1, end, index)
    offset_delta, position = decode_varint(data, position, end, index)
    key, position = _decode_bytes(data, position, end, index)
    value, position = _decode_bytes(data, position, end, index)
    return offset_delta, timestamp_delta, key, value, decode_headers(data, position, end, index), end


def decode_headers(data: bytes, position: int, end: int, index: int) -> Headers:
    """Decode the headers, which take all the rest of a record."""
    count, position = decode_varint(data, position, end, index)
    if count < 0 or count * 2 > end - position:
        raise InvalidRecord(index, f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _decode_bytes(data, position, end, index)
        if key is None:
            raise InvalidRecord(index, "a header without a key")
        value, position = _decode_bytes(data, position, end, index)
        headers.append((key.decode("utf-8", _KEY_ERRORS), value))
    if position != end:
        raise InvalidRecord(index, f"{end - position} bytes are left after its last field")
    return tuple(headers)


def _decode_bytes(data: bytes, position: int, end: int, index: int) -> tuple[bytes | None, int]:
    # Any negative length is a null to Kafka, although it only ever writes -1.
    length, position = decode_varint(data, position, end, index)
    if length < 0:
        return None, position
    if length > end - position:
        raise InvalidRecord(index, f"a field of {length} bytes, {end - position} are left of the record")
    return data[position : position + length], position + length


def encode_records(records: Iterable[RecordTuple], base_offset: int, base_timestamp: int) -> bytes:
    """Encode records as the record area of a batch."""
    varints = _VARINTS
    join = b"".join
    parts: list[bytes] = []  # two for each record
    for record in records:
        offset, timestamp, key, value, headers = record
        offset_delta = offset - base_offset
        timestamp_delta = timestamp - base_timestamp
        if headers or offset_delta < 0 or timestamp_delta < 0:
            parts += _encode_record(record, offset_delta, timestamp_delta, len(parts) // 2)
            continue
        try:
            # Joining a tuple and adding to the list once per record measured best among six ways.
            body = join(
                (
                    b"\x00",
                    varints[timestamp_delta],
                    varints[offset_delta],
                    b"\x01" if key is None else varints[len(key)],
                    b"" if key is None else key,
                    b"\x01" if value is None else varints[len(value)],
                    b"" if value is None else value,
                    b"\x00",
                )
            )
            parts += (varints[len(body)], body)
        except IndexError:
            # A number beyond the table.
            parts += _encode_record(record, offset_delta, timestamp_delta, len(parts) // 2)
    return join(parts)


def encode_fields(key: bytes | None, value: bytes | None) -> bytes:
    """Encode key and value of a record without headers: all that follows its offset."""
    return b"".join((*_encode_bytes(key), *_encode_bytes(value), b"\x00"))


def encode_numbered(fields: Iterable[bytes]) -> bytes:
    """Encode a record area of records whose fields are encoded already.

    Their offsets count from the base offset, and all have the base timestamp. That is what a coordinator
    writes, and a third of the work of `encode_records`.
    """
    varints = _VARINTS
    parts: list[bytes] = []
    for index, encoded in enumerate(fields):
        head = _HEADS[index] if index < 4096 else b"\x00\x00" + _encode_zigzag(index)
        length = len(head) + len(encoded)
        parts += (varints[length] if length < 4096 else _encode_zigzag(length), head, encoded)
    return b"".join(parts)


def _encode_record(
    record: RecordTuple, offset_delta: int, timestamp_delta: int, index: int
) -> tuple[bytes, bytes]:
    """Encode any record, as its length and the rest."""
    offset, _, key, value, headers = record
    if not 0 <= offset_delta < 2**31:
        raise InvalidRecord(index, f"offset {offset} is not within 2^31 after the base offset")
    parts = [b"\x00", encode_varint(wrap_int64(timestamp_delta)), encode_varint(offset_delta)]
    parts += _encode_bytes(key)
    parts += _encode_bytes(value)
    parts.append(encode_varint(len(headers)))
    for header_key, header_value in headers:
        parts += _encode_bytes(_encode_key(header_key, index))
        parts += _encode_bytes(header_value)
    body = b"".join(parts)
    return encode_varint(len(body)), body


def _encode_key(key: str, index: int) -> bytes:
    try:
        return key.encode("utf-8", _KEY_ERRORS)
    except UnicodeEncodeError as error:
        raise InvalidRecord(index, f"the header key {key!r} cannot be written as UTF-8") from error


def _encode_bytes(field: bytes | None) -> tuple[bytes, bytes]:
    return (b"\x01", b"") if field is None else (encode_varint(len(field)), field)

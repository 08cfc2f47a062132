"""How much of a producer's records is looked at before they are accepted: `ottla.records.validation`.

    header    nothing: the checksummed header has to make sense, and leave room for the records it counts
    auto      as many records as a tenth of a produce pays for, from the first one on
    records   all of them, as in Kafka

A batch that is wrong inside is stored as well as any other, and stops every consumer that comes to it. Kafka
opens all. Here that takes 0.6 us for a record, interpreted, and 0.05 us compiled, when a whole produce takes
20 us and one more for each kilobyte. So `auto`, the default, checks small batches to their end and the
beginning of large ones. To look at the length of a record alone takes a fifth, and finds most of what can be
wrong: each length has to lead to the next record, and the last one to the end.

docs/decisions/record-validation.md has the figures, and says what that leaves.
"""

from enum import Enum
from typing import Final

from ottla.records.attributes import Codec
from ottla.records.batch import HEADER_BYTES
from ottla.records.bulk import IS_COMPILED, check_numbered
from ottla.records.codec import RECORD_BYTES_MIN
from ottla.records.compression import DEFAULT_LIMITS, DecompressionLimits, decompress
from ottla.records.errors import CorruptCompression, DecompressionTooLarge


class RecordsValidation(Enum):
    """What is looked at, by the names that the config has for it."""

    HEADER = "header"
    AUTO = "auto"
    RECORDS = "records"


CHECKED_RECORDS: Final = 100 if IS_COMPILED else 3
"""How many records are always checked."""
MEASURED_RECORDS: Final = 100 if IS_COMPILED else 16
"""Of how many records the lengths are always looked at. A wrong count shows in them."""
BYTES_FOR_ANOTHER: Final = 500 if IS_COMPILED else 8192
"""How large a batch must be to have one more checked: at this size a produce takes ten times as long."""
BEGINNING_BYTES: Final = 64 * 1024
"""How much of an uncompressed batch is copied to check its beginning."""
OPENED_BYTES_MAX: Final = 1024
"""Up to this size compressed records are opened. To open less costs less than to find out."""

_LIMITS: Final = DecompressionLimits(bytes_max=BEGINNING_BYTES)


def have_room(count: int, size: int, codec: int) -> bool:
    """Say whether this many records can be in an area of this size, however well it is compressed."""
    if codec:
        size = max(size * DEFAULT_LIMITS.ratio_max, DEFAULT_LIMITS.ratio_free_bytes)
    return count * RECORD_BYTES_MIN <= size


def seem_sound(records: memoryview, count: int, codec: int, looks_inside: bool) -> bool:
    """Look at the records of a batch, as far as that is cheap. False says: open it and see.

    The header was checked: a positive count, a known codec, and the right checksum.
    """
    if count == 1 and looks_inside and not codec and is_one_plain_record(records):
        return True
    size = len(records) - HEADER_BYTES
    if not have_room(count, size, codec):
        return False
    if not looks_inside:
        return True
    if codec:
        return size > OPENED_BYTES_MAX or _seem_sound_opened(records[HEADER_BYTES:], count, codec)
    checked_max = CHECKED_RECORDS + size // BYTES_FOR_ANOTHER
    stop = HEADER_BYTES + BEGINNING_BYTES if count > checked_max else None
    data = records[HEADER_BYTES:stop].tobytes()
    return check_numbered(data, size, count, checked_max, max(checked_max, MEASURED_RECORDS)) is not None


def is_one_plain_record(records: memoryview) -> bool:  # noqa: C901 - inline, as in `check_numbered`
    """Say whether a batch has one whole record, and that is of the usual kind. False says: look again.

    This is what `check_numbered` does, without a copy and in a third of the time. Very many batches are so.
    """
    end = len(records)
    try:
        # The record's length, in up to three bytes: twice the number, since it is not negative.
        number, at = records[HEADER_BYTES], HEADER_BYTES + 1
        if number > 127:
            second = records[at]
            at += 1
            number = number & 127 | (second & 127) << 7
            if second > 127:
                if records[at] > 127:
                    return False
                number |= records[at] << 14
                at += 1
        # Attributes, which mean nothing. A timestamp delta of one byte. The offset delta of a first record.
        if number != end - at << 1 or records[at + 1] > 127 or records[at + 2]:
            return False
        # A key of up to 63 bytes, or none.
        number = records[at + 3]
        at += 4
        if number != 1:
            if number & 129:
                return False
            at += number >> 1
        number = records[at]
        at += 1
        if number > 127:
            second = records[at]
            at += 1
            number = number & 127 | (second & 127) << 7
            if second > 127:
                if records[at] > 127:
                    return False
                number |= records[at] << 14
                at += 1
        if number != 1:
            if number & 1:
                return False
            at += number >> 1
        # No headers.
        return at + 1 == end and records[at] == 0
    except IndexError:
        return False


def _seem_sound_opened(area: memoryview, count: int, codec: int) -> bool:
    try:
        data = decompress(Codec(codec), area, _LIMITS)
    except DecompressionTooLarge:
        # It may well be sound. What opens it later has its own limits.
        return True
    except CorruptCompression:
        return False
    size = len(data)
    return (
        have_room(count, size, Codec.NONE)
        and check_numbered(data, size, count, CHECKED_RECORDS, MEASURED_RECORDS) is not None
    )

"""Zig-zag varints, a whole column of them at a time."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_VARINT_BYTES_MAX: Final = 10


def decode_varints(data: Bytes, positions: Numbers) -> tuple[Numbers, Numbers]:
    """Decode the number at each position. Returns the numbers and the positions after them.

    Raises IndexError where a number runs over the end of `data`, and OverflowError where it has more than ten
    bytes. Whether it stays inside its record is the caller's to check.
    """
    first = data[positions]
    unsigned = (first & 127).astype(np.uint64)
    after = positions + 1
    (longer,) = np.nonzero(first & 128)
    shift = 7
    while longer.size:
        if shift == 7 * _VARINT_BYTES_MAX:
            raise OverflowError("a number of more than ten bytes")
        byte = data[after[longer]]
        unsigned[longer] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[(byte & 128).astype(bool)]
        shift += 7
    one = np.uint64(1)
    return (unsigned >> one).view(np.int64) ^ -(unsigned & one).view(np.int64), after


def varint_sizes(numbers: Numbers) -> Numbers:
    """Return how many bytes each number takes."""
    zigzag = _zigzag(numbers)
    sizes = np.ones(len(numbers), dtype=np.int64)
    bound = np.uint64(128)
    while (above := zigzag >= bound).any():
        sizes += above
        if bound >= np.uint64(1 << 63):
            break
        bound <<= np.uint64(7)
    return sizes


def write_varints(out: Bytes, positions: Numbers, numbers: Numbers) -> Numbers:
    """Write each number at its position. Returns the positions after them."""
    rest = _zigzag(numbers)
    where = positions.copy()
    (open_ones,) = np.nonzero(rest > np.uint64(127))
    while open_ones.size:
        low = rest[open_ones]
        out[where[open_ones]] = (low & np.uint64(127)).astype(np.uint8) | np.uint8(128)
        rest[open_ones] = low >> np.uint64(7)
        where[open_ones] += 1
        open_ones = open_ones[rest[open_ones] > np.uint64(127)]
    out[where] = rest.astype(np.uint8)
    return where + 1


def _zigzag(numbers: Numbers) -> NDArray[Any]:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)

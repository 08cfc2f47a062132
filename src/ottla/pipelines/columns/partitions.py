"""Which partition each row goes to, a whole column at a time.

Rows with a key go where Kafka's own clients put them: murmur2 of the key, modulo the partitions. It is
computed for all keys of one length together. Rows without a key are dealt out in turn: they come in
thousands, so that every batch is full, and each partition gets its share.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.pipelines.columns.encode import lengths_of
from ottla.pipelines.columns.varints import Numbers

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def murmur2_column(keys: Any) -> NDArray[np.uint32]:
    """Return the hash by which Kafka's Java client spreads keys, for each key that is not null."""
    hashes = np.zeros(len(keys), dtype=np.uint32)
    lengths = lengths_of(keys)
    _, bounds, content = keys.buffers()
    starts = np.frombuffer(bounds, dtype=np.int32)[keys.offset : keys.offset + len(keys)]
    data = np.frombuffer(content, dtype=np.uint8) if content is not None else np.empty(0, dtype=np.uint8)
    for length in np.unique(lengths):
        if length < 0:
            continue
        (rows,) = np.nonzero(lengths == length)
        places = starts[rows].astype(np.int64)[:, None] + np.arange(length)[None, :]
        hashes[rows] = _murmur2_of_equal_lengths(data[places], int(length))
    return hashes


def _murmur2_of_equal_lengths(keys: NDArray[np.uint8], length: int) -> NDArray[np.uint32]:
    """Hash the rows of a table of bytes. Products wrap at 32 bits, as they are meant to."""
    value = np.full(len(keys), (_SEED ^ length) & 0xFFFFFFFF, dtype=np.uint32)
    whole = length & ~3
    if whole:
        words = np.ascontiguousarray(keys[:, :whole]).view("<u4")
        for place in range(words.shape[1]):
            k = words[:, place] * _M
            k = (k ^ (k >> np.uint32(24))) * _M
            value = (value * _M) ^ k
    if whole < length:
        rest = np.zeros(len(keys), dtype=np.uint32)
        for place in range(length - whole):
            rest |= keys[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        value = (value ^ rest) * _M
    value = (value ^ (value >> np.uint32(13))) * _M
    return value ^ (value >> np.uint32(15))


def choose_partitions(keys: Any, given: Any | None, partitions: int, turn: int) -> Numbers:
    """Return the partition of each row: the given one, else by the key, else in turn from `turn` on."""
    chosen: Numbers = ((murmur2_column(keys) & _POSITIVE) % np.uint32(partitions)).astype(np.int64)
    if keys.null_count:
        without_key = np.asarray(keys.is_null())
        chosen[without_key] = (turn + np.arange(int(without_key.sum()))) % partitions
    if given is not None:
        is_given = np.asarray(given.is_valid())
        wanted = np.asarray(given.fill_null(-1)).astype(np.int64)
        chosen = np.where(is_given, wanted, chosen)
    return chosen


def rows_by_partition(chosen: Numbers) -> list[tuple[int, Any]]:
    """Return the rows of each partition, in their order, as indices that Arrow takes."""
    order = np.argsort(chosen, kind="stable")
    numbers, firsts = np.unique(chosen[order], return_index=True)
    pieces = np.split(order, firsts[1:])
    return [(int(number), pa.array(piece)) for number, piece in zip(numbers, pieces, strict=True)]

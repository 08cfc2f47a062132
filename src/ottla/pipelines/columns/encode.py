"""From columns to the record areas of batches, all records of a batch at a time.

A record is five pieces of bytes: numbers, key, length of the value, value, number of headers. Each piece is a
column, the numbers made by NumPy, and Arrow joins them row by row. The buffer of the joined column is the
record area. Records with headers are left to `ottla.records`.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.pipelines.columns.varints import Numbers, varint_sizes, write_varints
from ottla.records.codec import encode_records

# Attributes and the number of headers: a zero byte each.
_FIXED_BYTES: Final = 2
_NO_HEADERS: Final = pa.scalar(b"\x00")
_NOTHING: Final = pa.scalar(b"")
# More than a record's numbers can take: five lengths of five bytes, a timestamp of ten.
_NUMBERS_BYTES_MAX: Final = 32


def lengths_of(column: Any) -> Numbers:
    """Return how many bytes each item has; -1 for a null, as records have it."""
    lengths = pc.fill_null(pc.binary_length(column), -1)
    return np.asarray(lengths).astype(np.int64)


def encoded_sizes_max(keys: Any, values: Any) -> Numbers:
    """Return at most how many bytes each record takes, headers left out."""
    sizes: Numbers = np.maximum(lengths_of(keys), 0) + np.maximum(lengths_of(values), 0) + _NUMBERS_BYTES_MAX
    return sizes


def encode_area(keys: Any, values: Any, timestamps_ms: Numbers, headers: Any | None = None) -> bytes:
    """Encode records as the record area of a batch whose base timestamp is the first one's."""
    timestamp_deltas = timestamps_ms - timestamps_ms[0]
    if headers is not None and headers.null_count < len(headers):
        return _encode_one_by_one(keys, values, timestamps_ms, headers)
    key_lengths = lengths_of(keys)
    value_lengths = lengths_of(values)
    offset_deltas = np.arange(len(keys), dtype=np.int64)
    value_length_sizes = varint_sizes(value_lengths)
    sizes = (
        _FIXED_BYTES
        + varint_sizes(timestamp_deltas)
        + varint_sizes(offset_deltas)
        + varint_sizes(key_lengths)
        + np.maximum(key_lengths, 0)
        + value_length_sizes
        + np.maximum(value_lengths, 0)
    )
    size_sizes = varint_sizes(sizes)
    # What stands before the key: all of the record but key, value, and what lies between and behind them.
    front_sizes = (
        size_sizes
        + sizes
        - np.maximum(key_lengths, 0)
        - value_length_sizes
        - np.maximum(value_lengths, 0)
        - 1
    )
    fronts, bounds = _room(front_sizes)
    position = write_varints(fronts, bounds[:-1].astype(np.int64), sizes)
    fronts[position] = 0
    position = write_varints(fronts, position + 1, timestamp_deltas)
    position = write_varints(fronts, position, offset_deltas)
    write_varints(fronts, position, key_lengths)
    middles, middle_bounds = _room(value_length_sizes)
    write_varints(middles, middle_bounds[:-1].astype(np.int64), value_lengths)
    joined = pc.binary_join_element_wise(
        _as_column(fronts, bounds),
        pc.fill_null(keys, b""),
        _as_column(middles, middle_bounds),
        pc.fill_null(values, b""),
        _NO_HEADERS,
        _NOTHING,
    )
    return _content(joined)


def _room(sizes: Numbers) -> tuple[Any, Any]:
    bounds = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=bounds[1:])
    return np.empty(int(bounds[-1]), dtype=np.uint8), bounds


def _as_column(content: Any, bounds: Any) -> Any:
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(content)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def _content(column: Any) -> bytes:
    """Return all items of a column of bytes, one after the other."""
    _, bounds, content = column.buffers()
    edges = np.frombuffer(bounds, dtype=np.int32)
    first, last = int(edges[column.offset]), int(edges[column.offset + len(column)])
    area: bytes = content[first:last].to_pybytes()
    return area


def _encode_one_by_one(keys: Any, values: Any, timestamps_ms: Numbers, headers: Any) -> bytes:
    rows = zip(
        range(len(keys)),
        timestamps_ms.tolist(),
        keys.to_pylist(),
        values.to_pylist(),
        (tuple((item["key"], item["value"]) for item in row) if row else () for row in headers.to_pylist()),
        strict=True,
    )
    return encode_records(rows, 0, int(timestamps_ms[0]))

"""Random records and batches, and random damage to bytes."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ottla.records.attributes import Codec
from ottla.records.codec import Record

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

# Sizes around the edges of varints, and small ones.
SIZES = st.sampled_from((0, 1, 7, 60, 63, 64, 65, 120, 4095, 4096, 8191, 8192, 20_000))
FIELDS = st.none() | st.binary(max_size=40) | st.builds(lambda size: b"x" * size, SIZES)
HEADERS = st.lists(st.tuples(st.text(max_size=20), FIELDS), max_size=4).map(tuple)
TIMESTAMPS = st.integers(1_700_000_000_000, 1_700_000_010_000) | INT64


@st.composite
def records(draw: st.DrawFn, base_offset: int = 0, size_min: int = 1) -> list[Record]:
    """Return records with ascending offsets, perhaps with gaps."""
    gaps = draw(st.lists(st.sampled_from((0, 0, 0, 1, 100, 9000)), min_size=size_min, max_size=30))
    offset = base_offset
    made = []
    for gap in gaps:
        offset += gap
        made.append(Record(offset, draw(TIMESTAMPS), draw(FIELDS), draw(FIELDS), draw(HEADERS)))
        offset += 1
    return made


@st.composite
def batch_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Return all that `build_batch` takes besides records."""
    return {
        "base_offset": draw(st.integers(0, 2**62)),
        "leader_epoch": draw(INT32),
        "codec": draw(st.sampled_from(Codec)),
        "append_time": draw(st.none() | INT64),
        "producer_id": draw(INT64),
        "producer_epoch": draw(INT16),
        "base_sequence": draw(st.integers(-1, 2**31 - 1)),
        "is_transactional": draw(st.booleans()),
        "is_control": draw(st.booleans()),
        "delete_horizon_ms": draw(st.none() | INT64),
    }


def damaged(data: bytes | bytearray) -> SearchStrategy[bytes]:
    """Return strategies for the bytes with some changed, cut out, put in, or cut off."""
    edit = st.tuples(
        st.sampled_from(("change", "insert", "delete", "cut")),
        st.integers(0, max(0, len(data) - 1)),
        st.sampled_from((0, 1, 2, 0x7F, 0x80, 0x81, 0xFF)) | st.integers(0, 255),
    )
    return st.lists(edit, min_size=1, max_size=5).map(lambda edits: _apply(bytearray(data), edits))


def _apply(data: bytearray, edits: list[tuple[str, int, int]]) -> bytes:
    for kind, at, byte in edits:
        match kind:
            case "change" if at < len(data):
                data[at] = byte
            case "insert":
                data.insert(at, byte)
            case "delete":
                del data[at : at + 1]
            case "cut" if byte > 0xC0:
                del data[at:]
    return bytes(data)

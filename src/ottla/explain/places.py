"""Where a record lies on disk, for those who can read the data directory of a node.

The protocol does not tell it. Segments are files whose names are their first offsets, so the file is found by
name, and the byte by walking over the batches before it.
"""

from pathlib import Path
from typing import NamedTuple

from ottla.explain.evidence.logs import RecordFacts
from ottla.records.batch import LOG_OVERHEAD


class SegmentPlace(NamedTuple):
    """A segment, and where in it a batch begins."""

    path: Path
    position: int


def find_place(data: Path, record: RecordFacts) -> SegmentPlace | None:
    """Find the batch of a record. None if this node has no replica of it."""
    directory = data / f"{record.where.topic}-{record.where.partition}"
    bases = sorted(int(path.stem) for path in directory.glob("*.log") if path.stem.isdigit())
    below = [base for base in bases if base <= record.batch.base_offset]
    if not below:
        return None
    path = directory / f"{below[-1]:020}.log"
    position = 0
    with path.open("rb") as file:
        while len(head := file.read(LOG_OVERHEAD)) == LOG_OVERHEAD:
            base_offset = int.from_bytes(head[:8], signed=True)
            if base_offset >= record.batch.base_offset:
                return SegmentPlace(path, position) if base_offset == record.batch.base_offset else None
            position += LOG_OVERHEAD + int.from_bytes(head[8:])
            file.seek(position)
    return None

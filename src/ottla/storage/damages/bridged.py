"""A note of the offsets that empty batches cover in the place of what was lost, until it is healed.

A start that repairs a segment leaves a sound log: the next start would not know that anything is missing. If
the records were not fetched from another replica by then, this one would lead without them. So the ranges are
noted beside the log, one line each: the first offset, and the one after the last.
"""

from collections.abc import Iterable
from typing import Final

from ottla.model.ids import Offset
from ottla.world.disk import Disk

FILE: Final = "ottla-bridged"

Range = tuple[Offset, Offset]


def read_bridged(disk: Disk, directory: str) -> tuple[Range, ...]:
    """Return the ranges that are still to be fetched."""
    path = f"{directory}/{FILE}"
    if not disk.exists(path):
        return ()
    found: list[Range] = []
    for line in disk.read_file(path).decode("ascii", "replace").splitlines():
        first, _, after = line.partition(" ")
        # A bit of the note itself may have changed. A start does not fail for that.
        if first.isdecimal() and after.isdecimal():
            found.append((Offset(int(first)), Offset(int(after))))
    return tuple(found)


def write_bridged(disk: Disk, directory: str, ranges: Iterable[Range]) -> None:
    """Note the ranges, on disk."""
    path = f"{directory}/{FILE}"
    content = "".join([f"{first} {after}\n" for first, after in ranges]).encode()
    if content:
        disk.write_file_atomically(path, content)
    elif disk.exists(path):
        disk.remove(path)
        disk.sync_directory(directory)

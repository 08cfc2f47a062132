"""What a stop or a crash left half done in a partition's directory: finished or undone before it is loaded.

    .deleted    removed
    .cleaned    being written when the broker stopped: removed
    .swap       complete, and about to replace what it was made from: put in its place

Since a split makes several segments of one, a `.swap` at or after the first `.cleaned` belongs to a split
that was not complete. It is removed too, and what it was made from is still there.
"""

from ottla.model.ids import Offset
from ottla.storage.names import FileKind, FileState, SegmentFile, find_segment_file
from ottla.storage.scan import scan_batches
from ottla.world.disk import Disk, Entry

# Files of a partition's directory that are named after an offset.
SegmentFiles = dict[FileKind, dict[Offset, Entry]]


def settle_leftovers(disk: Disk, path: str) -> SegmentFiles:
    """Finish or undo what was half done, and return the files that are in use."""
    files = _list(disk, path)
    if any(file.state is not FileState.CURRENT for file, _ in files):
        _remove_unfinished(disk, path, files)
        _finish_swaps(disk, path)
        disk.sync_directory(path)
        files = _list(disk, path)
    by_kind: SegmentFiles = {kind: {} for kind in FileKind}
    for file, entry in files:
        by_kind[file.kind][file.offset] = entry
    return by_kind


def _list(disk: Disk, path: str) -> list[tuple[SegmentFile, Entry]]:
    found = [(find_segment_file(entry.name), entry) for entry in disk.list(path) if not entry.is_directory]
    return [(file, entry) for file, entry in found if file is not None]


def _remove_unfinished(disk: Disk, path: str, files: list[tuple[SegmentFile, Entry]]) -> None:
    first_cleaned = min([file.offset for file, _ in files if file.state is FileState.CLEANED], default=None)
    for file, entry in files:
        is_of_split = (
            file.state is FileState.SWAP and first_cleaned is not None and file.offset >= first_cleaned
        )
        if file.state in (FileState.DELETED, FileState.CLEANED) or is_of_split:
            disk.remove(f"{path}/{entry.name}")


def _finish_swaps(disk: Disk, path: str) -> None:
    files = _list(disk, path)
    swaps = [(file, entry) for file, entry in files if file.state is FileState.SWAP]
    replaced_from: int | None = None
    replaced_to = 0
    for file, entry in swaps:
        if file.kind is FileKind.LOG:
            handle = disk.open(f"{path}/{entry.name}")
            last = file.offset - 1
            for place in scan_batches(handle, 0, entry.size):
                last = Offset(place.last_offset)
            handle.close()
            replaced_from = file.offset if replaced_from is None else min(replaced_from, file.offset)
            replaced_to = max(replaced_to, last + 1)
    if replaced_from is not None:
        for file, entry in files:
            is_segment = file.kind is not FileKind.PRODUCER_SNAPSHOT
            if file.state is FileState.CURRENT and is_segment and replaced_from <= file.offset < replaced_to:
                disk.remove(f"{path}/{entry.name}")
    for _, entry in swaps:
        disk.rename(f"{path}/{entry.name}", f"{path}/{entry.name.removesuffix(FileState.SWAP.value)}")

"""What a stop or a crash left half done in a partition's directory: finished or undone before it is loaded.

    .deleted    removed
    .cleaned    being written when the broker stopped: removed
    .swap       complete, and about to replace what it was made from: put in its place

Since a split makes several segments of one, a `.swap` at or after the first `.cleaned` belongs to a split
that was not complete. It is removed too, and what it was made from is still there.

Which names of a swap survived a power cut is not to be relied on. As long as the log file is a `.swap`, an
index beside it may be an old or a new one, and an old transaction index would hide committed records. So the
segment is left without indexes, and recovered.
"""

from ottla.model.ids import Offset
from ottla.storage.names import FileKind, FileState, SegmentFile, find_segment_file
from ottla.storage.scan import scan_batches
from ottla.world.disk import Disk, Entry

# Files of a partition's directory that are named after an offset.
SegmentFiles = dict[FileKind, dict[Offset, Entry]]
FoundFiles = list[tuple[SegmentFile, Entry]]


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


def _list(disk: Disk, path: str) -> FoundFiles:
    found = [(find_segment_file(entry.name), entry) for entry in disk.list(path) if not entry.is_directory]
    return [(file, entry) for file, entry in found if file is not None]


def _remove_unfinished(disk: Disk, path: str, files: FoundFiles) -> None:
    cleaned = [entry.name for file, entry in files if file.state is FileState.CLEANED]
    first_cleaned = min([file.offset for file, _ in files if file.state is FileState.CLEANED], default=None)
    for file, entry in files:
        is_of_split = (
            file.state is FileState.SWAP and first_cleaned is not None and file.offset >= first_cleaned
        )
        if file.state is FileState.DELETED or is_of_split:
            disk.remove(f"{path}/{entry.name}")
    if cleaned:
        # They are what tells that the swap files next to them are not to be used. So they go last.
        disk.sync_directory(path)
        for name in cleaned:
            disk.remove(f"{path}/{name}")


def _finish_swaps(disk: Disk, path: str) -> None:
    files = _list(disk, path)
    swaps = [(file, entry) for file, entry in files if file.state is FileState.SWAP]
    if not swaps:
        return
    swapped = {file.offset for file, _ in swaps if file.kind is FileKind.LOG}
    start, end = _replaced_range(disk, path, swaps)
    for file, entry in files:
        is_doubtful = file.kind is not FileKind.LOG and file.offset in swapped
        is_replaced = file.state is FileState.CURRENT and (start <= file.offset < end or is_doubtful)
        is_snapshot = file.kind is FileKind.PRODUCER_SNAPSHOT
        if not is_snapshot and (is_replaced or (file.state is FileState.SWAP and is_doubtful)):
            disk.remove(f"{path}/{entry.name}")
    # Otherwise a name of what was replaced could come back beside that of its replacement.
    disk.sync_directory(path)
    for file, entry in swaps:
        if file.kind is FileKind.LOG or file.offset not in swapped:
            disk.rename(f"{path}/{entry.name}", f"{path}/{entry.name.removesuffix(FileState.SWAP.value)}")


def _replaced_range(disk: Disk, path: str, swaps: FoundFiles) -> tuple[int, int]:
    """Return the first offset of the segments that are to be swapped in, and the one after their last."""
    start, end = -1, -1
    for file, entry in swaps:
        if file.kind is FileKind.LOG:
            handle = disk.open(f"{path}/{entry.name}")
            last_offset = max(
                [place.last_offset for place in scan_batches(handle, 0, entry.size)], default=file.offset - 1
            )
            handle.close()
            start = file.offset if start < 0 else min(start, file.offset)
            end = max(end, last_offset + 1)
    return start, end

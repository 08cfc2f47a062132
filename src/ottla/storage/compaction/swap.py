"""Putting cleaned segments in the place of those they were made from. A crash leaves one or the other.

    1  stage_swap        .cleaned becomes .swap            any thread; synced
    2  replace_segments  the originals become .deleted     the log's thread; the log uses the .swap files now
    3                    the directory is synced           any thread
    4  finish_swap       .swap becomes the plain name      the log's thread

A start that finds `.cleaned` files removes them, and with them every `.swap` file at or above the lowest of
them: then step 1 was not over, and the originals are all there. Else it finishes the swap for each `.swap`
file it finds: it removes the originals that lie in its range and renames it.

Step 3 is why a swap takes more than one call. If the names of step 4 survived a power cut and those of step 2
did not, an original would lie beside the segment that replaces it, and nothing would tell. In the thread of
the log a sync of the directory would hold up every partition of the node, so it is left to the worker that
did the cleaning, and the log reads from the `.swap` files meanwhile.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.model.ids import Offset
from ottla.storage.compaction.cleaned_segment import CleanedSegment
from ottla.storage.log import Log
from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.storage.segment import Segment
from ottla.world.disk import Disk, DiskError


class Replacement(NamedTuple):
    """Segments that took the place of others, whose files are to be removed after a while."""

    replaced: tuple[Segment, ...]
    cleaned: tuple[Segment, ...]


def stage_swap(disk: Disk, directory: str, cleaned: Sequence[CleanedSegment]) -> None:
    """Say of cleaned segments, in order, that they are complete. From here on a crash does not undo them.

    The first of them goes last: a start that finds it not renamed undoes all of them.
    """
    first, *others = cleaned
    if others:
        for segment in others:
            _rename(disk, directory, segment, FileState.CLEANED, FileState.SWAP)
        disk.sync_directory(directory)
    _rename(disk, directory, first, FileState.CLEANED, FileState.SWAP)
    disk.sync_directory(directory)


def discard_staged(disk: Disk, directory: str, cleaned: Sequence[CleanedSegment]) -> None:
    """Remove what was staged, and as for a crash meanwhile: all of it or nothing."""
    first, *others = cleaned
    _rename(disk, directory, first, FileState.SWAP, FileState.CLEANED)
    disk.sync_directory(directory)
    for segment in others:
        for kind in segment.kinds:
            disk.remove(f"{directory}/{segment_file_name(segment.base_offset, kind, FileState.SWAP)}")
    disk.sync_directory(directory)
    for kind in first.kinds:
        disk.remove(f"{directory}/{segment_file_name(first.base_offset, kind, FileState.CLEANED)}")


def _rename(disk: Disk, directory: str, segment: CleanedSegment, old: FileState, new: FileState) -> None:
    for kind in segment.kinds:
        old_name = segment_file_name(segment.base_offset, kind, old)
        new_name = segment_file_name(segment.base_offset, kind, new)
        disk.rename(f"{directory}/{old_name}", f"{directory}/{new_name}")


def replace_segments(
    log: Log, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]
) -> Replacement | None:
    """Have the log use staged segments instead of those at the base offsets `replaced`.

    Returns None, having done nothing, if the log has changed since: a segment was deleted or truncated away.
    """
    log.volume.check()
    start = next((at for at, segment in enumerate(log.segments) if segment.base_offset == replaced[0]), -1)
    old = log.segments[start : start + len(replaced)] if start >= 0 else []
    is_active = bool(old) and old[-1] is log.active_segment
    if [segment.base_offset for segment in old] != list(replaced) or is_active:
        return None
    try:
        for segment in old:
            segment.rename(FileState.DELETED)
        _drop_snapshots(log, cleaned, replaced)
    except DiskError as error:
        raise log.volume.fail(error) from error
    new = [_open_staged(log, segment) for segment in cleaned]
    log.segments[start : start + len(replaced)] = new
    log.end_position = (Offset(-1), None, 0)
    return Replacement(tuple(old), tuple(new))


def finish_swap(log: Log, replacement: Replacement) -> None:
    """Give the new segments their plain names, once the directory was synced after `replace_segments`.

    A segment that has left the log again meanwhile is left alone.
    """
    log.volume.check()
    try:
        for segment in replacement.cleaned:
            if segment in log.segments:
                segment.rename(FileState.CURRENT)
    except DiskError as error:
        raise log.volume.fail(error) from error
    log.has_unsynced_names = True


def _open_staged(log: Log, cleaned: CleanedSegment) -> Segment:
    name = segment_file_name(cleaned.base_offset, FileKind.LOG, FileState.SWAP)
    return Segment.of_files(
        log.volume,
        log.volume.disk.open(f"{log.path}/{name}"),
        cleaned.base_offset,
        cleaned.modified_ms,
        size=cleaned.size_bytes,
        offset_bytes=cleaned.offset_index_bytes,
        time_bytes=cleaned.time_index_bytes,
        has_aborted=cleaned.has_aborted,
    )


def _drop_snapshots(log: Log, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> None:
    """Producer snapshots lie where segments start. Where none does any more, a start would drop them."""
    starts = {segment.base_offset for segment in cleaned}
    disk = log.volume.disk
    for offset in replaced:
        path = f"{log.path}/{segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)}"
        if offset not in starts and disk.exists(path):
            disk.rename(path, path + FileState.DELETED.value)

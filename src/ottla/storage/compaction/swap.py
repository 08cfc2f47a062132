"""Putting cleaned segments in the place of those they were made from. A crash leaves one or the other.

    1  stage_swap        .cleaned becomes .swap; synced         any thread
    2  replace_segments  the old log files become .deleted,     the log's thread
                         and the log uses the .swap files
    3                    the directory is synced                any thread
    4  finish_swap       .swap becomes the plain name, and      the log's thread
                         the old indexes go

A start that finds `.cleaned` files removes them, and with them every `.swap` file at or above the lowest of
them: then step 1 was not over, and the originals are all there. Otherwise it finishes the swap for each
`.swap` file it finds: it removes the originals that lie in its range and renames it. So before anything is
cleaned again, the names of step 4 have to be synced (`cleaning` does that at the beginning of a round).

A power cut may keep any of the names that changed since the last sync, and lose any. That is why there is
step 3: if a name of step 4 survived and one of step 2 did not, an original would lie beside the segment that
replaces it. And that is why the old indexes stay until step 4: an original that comes back without its
transaction index would show aborted records. In the log's thread a sync would hold up every partition of the
node, so it is left to the worker that did the cleaning, and the log reads from the `.swap` files meanwhile.

A log that is truncated or moved ends its cleaning first (`Log.end_cleaning`). What is staged would survive a
crash, and bring back what was cut off.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.model.ids import Offset
from ottla.storage.compaction.cleaned_segment import CleanedSegment
from ottla.storage.deletion import Deletion, not_found_is_fine
from ottla.storage.log import Log
from ottla.storage.names import SEGMENT_KINDS, FileKind, FileState, segment_file_name
from ottla.storage.segment import Segment
from ottla.world.disk import Disk, DiskError


class Replacement(NamedTuple):
    """Segments that took the place of others."""

    cleaned: tuple[Segment, ...]
    # Base offsets of the segments that are gone, where no new one starts.
    vanished: tuple[Offset, ...]
    # The old files, which fetches may still be reading from.
    deletion: Deletion


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
    log: Log, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset], truncations: int | None = None
) -> Replacement | None:
    """Have the log use staged segments instead of those at the base offsets `replaced`.

    Returns None, having done nothing, if the log has changed since: a segment was deleted, or the log was
    truncated more than the `truncations` times that it had been when the cleaning was planned.
    """
    log.volume.check()
    if truncations is not None and truncations != log.truncations:
        return None
    start = next((at for at, segment in enumerate(log.segments) if segment.base_offset == replaced[0]), -1)
    old = log.segments[start : start + len(replaced)] if start >= 0 else []
    if [segment.base_offset for segment in old] != list(replaced) or old[-1] is log.active_segment:
        return None
    starts = {segment.base_offset for segment in cleaned}
    vanished = tuple(offset for offset in replaced if offset not in starts)
    try:
        paths = [_retire(segment) for segment in old]
        for offset in vanished:
            # Producer snapshots lie where segments start. Elsewhere the next start would drop them.
            snapshot = f"{log.path}/{segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)}"
            with not_found_is_fine():
                log.volume.disk.rename(snapshot, snapshot + FileState.DELETED.value)
                paths.append(snapshot + FileState.DELETED.value)
    except DiskError as error:
        raise log.volume.fail(error) from error
    new = [_open_staged(log, segment) for segment in cleaned]
    log.segments[start : start + len(replaced)] = new
    log.end_position = (Offset(-1), None, 0)
    handles = tuple(segment.file for segment in old)
    return Replacement(tuple(new), vanished, Deletion(tuple(paths), handles, log.config.file_delete_delay_ms))


def _retire(segment: Segment) -> str:
    """Rename the log file of an old segment, but not its indexes. Returns the new path."""
    path = segment.file.path + FileState.DELETED.value
    segment.volume.disk.rename(segment.file.path, path)
    segment.file.path = path
    # A sync that is under way may look for the old name.
    segment.volume.renames += 1
    segment.volume.index_cache.forget(segment)
    return path


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


def finish_swap(log: Log, replacement: Replacement) -> None:
    """Give the new segments their plain names, once the directory was synced after `replace_segments`.

    A segment that has left the log again meanwhile is left alone.
    """
    log.volume.check()
    disk = log.volume.disk
    try:
        for offset in replacement.vanished:
            for kind in SEGMENT_KINDS[1:]:
                with not_found_is_fine():
                    disk.remove(f"{log.path}/{segment_file_name(offset, kind)}")
        for segment in replacement.cleaned:
            if segment in log.segments:
                segment.rename(FileState.CURRENT)
    except DiskError as error:
        raise log.volume.fail(error) from error
    log.has_unsynced_names = True

"""The files of a segment that are derived from its log file: whether they fit it, and making them again."""

from ottla.storage.deletion import not_found_is_fine
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.index_files import replace_index, sync_index
from ottla.storage.indexes.transaction_index import AbortedTransaction, encode_transaction_index
from ottla.storage.loading.recovery import RecoveredSegment
from ottla.storage.names import FileKind
from ottla.storage.segment import Segment
from ottla.world.disk import Disk


def index_end_is_plausible(segment: Segment) -> bool:
    """Say whether the last entries of the indexes fit the log file: neither torn nor padded nor foreign."""
    offset, position = segment.last_entry()
    if segment.offset_bytes and not 0 < position < segment.size:
        return False
    found = segment.find_batch_at(position)
    if segment.offset_bytes and (found is None or found.last_offset > offset):
        return False
    timestamp_ms, time_offset = segment.last_time_entry()
    return segment.time_bytes == 0 or (timestamp_ms >= 0 and time_offset >= segment.base_offset)


def read_aborted(segment: Segment) -> list[AbortedTransaction]:
    """Return what the transaction index of a segment says: nothing, if it is damaged."""
    try:
        return segment.aborted()
    except CorruptFile:
        return []


def replace_derived_files(
    disk: Disk, directory: str, segment: Segment, recovered: RecoveredSegment, *, lasts: bool
) -> None:
    """Write the indexes that recovery has made, and let the segment know what it found out.

    Nothing below the recovery point is looked at again, so there they have to last. A segment without an
    offset index is always recovered. So that one goes first, and comes back when the others are safe.
    """
    offset_path, time_path = segment.path_of(FileKind.OFFSET_INDEX), segment.path_of(FileKind.TIME_INDEX)
    if lasts:
        with not_found_is_fine():
            disk.remove(offset_path)
        disk.sync_directory(directory)
    replace_index(disk, time_path, recovered.time_entries)
    transaction_path = segment.path_of(FileKind.TRANSACTION_INDEX)
    if recovered.aborted:
        disk.write_file_atomically(transaction_path, encode_transaction_index(recovered.aborted))
    elif segment.has_aborted:
        disk.remove(transaction_path)
    if lasts:
        sync_index(disk, time_path)
        disk.sync_directory(directory)
    replace_index(disk, offset_path, recovered.offset_entries)
    if lasts:
        sync_index(disk, offset_path)
        disk.sync_directory(directory)
    segment.take_recovered(recovered)

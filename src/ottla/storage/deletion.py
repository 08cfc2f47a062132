"""Taking segments out of a log. Their files get the suffix `.deleted`, and are removed some time later.

A fetch that is under way may still be sending from them, and reading on is cheaper than failing it. What a
stop leaves with that suffix is removed at the next start.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.storage.segment import Segment
from ottla.world.disk import Disk, DiskError, File, Reason

if TYPE_CHECKING:
    from ottla.storage.log import Log


class Deletion(NamedTuple):
    """Files to be removed after a while. The handles are closed then."""

    paths: tuple[str, ...]
    handles: tuple[File, ...]
    delay_ms: int

    def run(self, disk: Disk) -> None:
        """Remove the files. One that is gone already, with its whole directory perhaps, is fine."""
        for handle in self.handles:
            handle.close()
        for path in self.paths:
            with not_found_is_fine():
                disk.remove(path)


def take_out(log: "Log", segments: Sequence[Segment]) -> list[Deletion]:
    """Rename the files of segments that are no longer part of the log. Returns what is left to do."""
    disk = log.volume.disk
    deletions: list[Deletion] = []
    for segment in segments:
        paths = segment.rename(FileState.DELETED)
        snapshot = f"{log.path}/{segment_file_name(segment.base_offset, FileKind.PRODUCER_SNAPSHOT)}"
        with not_found_is_fine():
            disk.rename(snapshot, snapshot + FileState.DELETED.value)
            paths.append(snapshot + FileState.DELETED.value)
        deletions.append(Deletion(tuple(paths), (segment.file,), log.config.file_delete_delay_ms))
    if deletions:
        log.has_unsynced_names = True
        # A path that was renamed needs no sync under its old name.
        log.unsynced_paths = tuple([path for path in log.unsynced_paths if disk.exists(path)])
    return deletions


@contextmanager
def not_found_is_fine() -> Iterator[None]:
    """Let it pass that a file is not there."""
    try:
        yield
    except DiskError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise

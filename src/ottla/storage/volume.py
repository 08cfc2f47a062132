"""What the logs of one log directory share: the disk, whether it still works, and a bound on memory.

The first error of a disk is the last thing done with its directory: it is marked offline, and every later
use is refused. A disk that failed once may fail halfway through the next write too, and after a failed sync
the kernel may have dropped what was to be written, so trying again would claim durability that is not there.

A disk without space is the one error that can be seen coming. While less than the reserve is free, records of
producers are refused, and while less than half of it is, followers copy nothing either. What is left is for
deleting topics, for lower retention, for commits and for metadata: all of them have to write something.
"""

from collections.abc import Callable
from typing import Final

from ottla.storage.damages.damage import Damage
from ottla.storage.damages.synced_offsets import SyncedOffsets
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.indexes.index_cache import IndexCache
from ottla.storage.log_dirs.epoch_note import EpochNote
from ottla.storage.syncing.syncs import Syncs, SyncsAtOnce
from ottla.world.disk import Disk, DiskError

INDEX_CACHE_BYTES: Final = 64 << 20
_RESERVE_SHARE: Final = 10
"""Of a small disk, this part is the reserve at most."""
_LEAVES_SHARE: Final = 8
"""How much more than the reserve has to be free before producers may write again, so that they are not let in
and refused in turns."""


def _no_jitter(_bound_ms: int) -> int:
    return 0


def _tell_nobody(_damage: Damage) -> None:
    pass


class Volume:
    """A log directory, as its logs see it."""

    __slots__ = (
        "damaged_bytes",
        "damaged_ranges",
        "disk",
        "epoch_note",
        "error",
        "index_cache",
        "is_nearly_full",
        "is_short",
        "path",
        "pick_jitter_ms",
        "renames",
        "reserve_bytes",
        "synced",
        "syncs",
        "tell",
    )

    def __init__(
        self,
        disk: Disk,
        path: str,
        pick_jitter_ms: Callable[[int], int] = _no_jitter,
        index_cache_bytes: int = INDEX_CACHE_BYTES,
        syncs: Syncs | None = None,
    ) -> None:
        """`pick_jitter_ms` is given a bound and returns a number from 0 to below it."""
        self.disk = disk
        self.path = path
        self.error: DiskError | None = None
        self.pick_jitter_ms = pick_jitter_ms
        # How often files that may be in use elsewhere got another name.
        self.renames = 0
        self.index_cache = IndexCache(index_cache_bytes)
        # What its logs were found to have lost since the start.
        self.damaged_ranges = 0
        self.damaged_bytes = 0
        # Called when a reader meets damage.
        self.tell: Callable[[Damage], None] = _tell_nobody
        self.syncs: Syncs = syncs or SyncsAtOnce()
        # Set when the logs of the directory are loaded.
        self.synced: SyncedOffsets | None = None
        self.epoch_note: EpochNote | None = None
        # What is left for everything but records of producers; 0 is none.
        self.reserve_bytes = 0
        # Whether less than the reserve is free, or less than half of it.
        self.is_short = False
        self.is_nearly_full = False

    def look_at_room(self) -> None:
        """See whether less than the reserve is free. A disk that does not tell it has what it had."""
        if self.error is not None or not self.reserve_bytes:
            self.is_short = self.is_nearly_full = False
            return
        try:
            total_bytes, usable_bytes = self.disk.usage(self.path)
        except DiskError:
            return
        reserve = min(self.reserve_bytes, total_bytes // _RESERVE_SHARE)
        self.is_short = usable_bytes < (reserve + reserve // _LEAVES_SHARE if self.is_short else reserve)
        self.is_nearly_full = usable_bytes < reserve // 2

    def save_synced(self) -> None:
        """Write down how far logs were synced, after syncs and before anybody learns of them."""
        if self.synced is not None:
            try:
                self.synced.save()
            except DiskError as error:
                self.fail(error)

    def promise_nothing(self) -> None:
        """Have it known, and for good, that a log here may lose what it has acknowledged."""
        if self.epoch_note is not None and self.error is None:
            try:
                self.epoch_note.withdraw()
            except DiskError as error:
                self.fail(error)

    def fail(self, error: DiskError) -> LogDirectoryOffline:
        """Mark the directory offline and return the error to raise."""
        if self.error is None:
            self.error = error
            if self.epoch_note is not None:
                self.epoch_note.fail()
        return self.offline_error()

    def offline_error(self) -> LogDirectoryOffline:
        """Return the error of a directory that is offline."""
        return LogDirectoryOffline(self.path, str(self.error))

    def check(self) -> None:
        """Raise if the directory is offline."""
        if self.error is not None:
            raise self.offline_error()

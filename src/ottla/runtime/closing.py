"""Stopping a log directory cleanly: the syncs of all its logs, several at once.

A log that was written to needs some seven syncs when it is closed. One after the other a thousand logs would
take several seconds; the file system commits what is synced at the same time together.
"""

from collections.abc import Callable, Sequence

from ottla.storage.errors import StorageError
from ottla.storage.log import Log
from ottla.storage.log_dirs.clean_shutdown import NO_BROKER_EPOCH
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.world.disk import DiskError
from ottla.world.workers import MakeSyncs, SyncResult


class _LastSync:
    """The last sync of one log. A `SyncJob`."""

    only_file = None

    def __init__(self, log: Log, ticket: FlushTicket) -> None:
        self._log = log
        self._ticket = ticket

    def __repr__(self) -> str:
        return f"<last sync of {self._log.path}>"

    def run(self) -> None:
        flush.run(self._ticket, self._log.volume.disk)
        for file in self._ticket.files:
            # Here nobody else closes them, and there may be more logs than descriptors.
            file.close()


class ClosingDirectory:
    """Closes all logs, writes the checkpoints and the mark of a clean stop. No sync may be under way.

    `closed` is called on the loop with None, or with why it failed. Then there is no mark, and the next start
    recovers.
    """

    def __init__(
        self,
        directory: LogDirectory,
        make_syncs: MakeSyncs,
        closed: Callable[[StorageError | DiskError | None], None],
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        self._directory = directory
        self._closed = closed
        self._broker_epoch = broker_epoch
        self._error: DiskError | None = None
        self._syncs = make_syncs(self._take)
        self._starts: list[tuple[Log, FlushTicket]] = []
        self._missing = 0

    def begin(self) -> None:
        """Begin. `closed` may be called before this returns."""
        directory = self._directory
        try:
            self._starts = directory.start_close()
        except (StorageError, DiskError) as error:
            self._fail(error)
            return
        self._missing = len(self._starts)
        if not self._starts:
            self._finish()
        for log, ticket in self._starts:
            self._syncs.begin(_LastSync(log, ticket))

    def _take(self, results: Sequence[SyncResult]) -> None:
        self._missing -= len(results)
        for result in results:
            self._error = self._error or result.error
        if self._missing:
            return
        if self._error is not None:
            self._fail(self._error)
        else:
            self._finish()

    def _finish(self) -> None:
        self._syncs.close()
        error: StorageError | DiskError | None = None
        try:
            for log, ticket in self._starts:
                log.finish_flush(ticket)
            self._directory.finish_close(self._broker_epoch)
        except (StorageError, DiskError) as caught:
            error = caught
        self._closed(error)

    def _fail(self, error: StorageError | DiskError) -> None:
        self._syncs.close()
        self._directory.release()
        if isinstance(error, DiskError):
            self._closed(self._directory.volume.fail(error))
        else:
            self._closed(error)

"""Syncs that happen when a test says so."""

from ottla.model.ids import Offset
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.syncing.syncs import Waiter


class ManualSyncs:
    """Implements `Syncs`."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Log, Waiter]] = []
        # Logs that were to be synced for nobody in particular.
        self.asked: list[Log] = []
        self.syncs = 0

    def request(self, log: Log, _offset: Offset | None = None, waiter: Waiter | None = None) -> None:
        """Keep who waits."""
        if waiter is None:
            self.asked.append(log)
        else:
            self.waiting.append((log, waiter))

    def forget(self, log: Log) -> list[Waiter]:
        """Return who waits for a log, and let go of them."""
        forgotten = [waiter for one, waiter in self.waiting if one is log]
        self.waiting = [pair for pair in self.waiting if pair[0] is not log]
        return forgotten

    def sync(self) -> None:
        """Sync, for all who wait."""
        waiting, self.waiting = self.waiting, []
        for log, waiter in waiting:
            self.syncs += 1
            log.flush()
            waiter(None)

    def fail(self) -> None:
        """Tell all who wait that the disk failed."""
        waiting, self.waiting = self.waiting, []
        for log, waiter in waiting:
            waiter(LogDirectoryOffline(log.path, "it broke"))

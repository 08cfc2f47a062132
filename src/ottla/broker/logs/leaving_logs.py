"""Logs of partitions that are gone, on their way out: their directories get other names, some at a time.

A rename takes about 50 us. A topic of 10,000 partitions held the loop up for a second when all were renamed
at once. Nobody can reach these logs any more, so it does not matter when it is done, with two exceptions:
before a log of the same name is made, and before the node stops. If a crash comes first, the next start finds
logs of no known topic and sets them aside as strays.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import DirectoryDeletion, LogDirectory
from ottla.storage.names import DirectoryState
from ottla.world.scheduler import Scheduler

AT_ONCE: Final = 100


class _Leaving(NamedTuple):
    log: Log
    directory: LogDirectory
    unique_id: Uuid


class LeavingLogs:
    """Renames the directories of logs that are to be deleted."""

    def __init__(
        self,
        scheduler: Scheduler,
        renamed: Callable[[DirectoryDeletion], None],
        names_changed: Callable[[LogDirectory], None],
    ) -> None:
        """`renamed` is called with each directory to remove, `names_changed` where all renames are done."""
        self._scheduler = scheduler
        self._renamed = renamed
        self._names_changed = names_changed
        self._leaving: dict[TopicPartition, _Leaving] = {}
        # Where something was renamed since the names were last made safe.
        self._changed: dict[LogDirectory, None] = {}
        self._is_under_way = False

    def add(self, directory: LogDirectory, log: Log, unique_id: Uuid) -> None:
        """Take a log out of its directory. `go_on` is to be called after the last one."""
        assert log.topic_partition not in self._leaving, "a name is free before a log gets it"
        directory.let_go(log)
        self._leaving[log.topic_partition] = _Leaving(log, directory, unique_id)

    def go_on(self) -> None:
        """Rename some, and come again for the others."""
        if not self._is_under_way:
            self._rename_some()

    def finish(self, partitions: Iterable[TopicPartition]) -> None:
        """Make sure that the names of these partitions are free."""
        if self._leaving:
            for partition in partitions:
                self._rename(partition)

    def finish_all(self) -> None:
        """Rename all that are left."""
        self.finish(list(self._leaving))
        self._tell_changed()

    def _rename_some(self) -> None:
        self._is_under_way = False
        for partition in list(self._leaving)[:AT_ONCE]:
            self._rename(partition)
        if self._leaving:
            self._is_under_way = True
            self._scheduler.call_later(0, self._rename_some)
        else:
            self._tell_changed()

    def _rename(self, partition: TopicPartition) -> None:
        leaving = self._leaving.pop(partition, None)
        if leaving is None:
            return
        try:
            deletion = leaving.directory.set_aside(
                leaving.log, DirectoryState.DELETE, leaving.unique_id, syncs=False
            )
        except LogDirectoryOffline:
            return
        self._changed[leaving.directory] = None
        self._renamed(deletion)

    def _tell_changed(self) -> None:
        for directory in self._changed:
            self._names_changed(directory)
        self._changed.clear()

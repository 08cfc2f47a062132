"""All log directories of a node (JBOD): where a log is, where a new one goes, and which still work.

A directory whose disk fails goes offline, and with it the logs in it; the others serve on. A directory that
is somebody else's, or in use, is an operator's mistake, and stops the start.
"""

from collections.abc import Iterable, Sequence

from ottla.model.ids import NodeId, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.errors import LogDirectoryOffline, UnusableDirectory
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import DirectoryDeletion, LogDirectory, parse_state
from ottla.storage.log_dirs.opening import open_directory
from ottla.storage.names import DirectoryState
from ottla.storage.volume import Volume


class LogDirectories:
    """The log directories of a node, in the order of its settings."""

    def __init__(
        self, directories: Sequence[LogDirectory], failed: Sequence[LogDirectoryOffline] = ()
    ) -> None:
        self.directories = list(directories)
        # Directories that could not even be opened.
        self.failed = list(failed)
        # Partitions of which several directories had a log. It is for the metadata to say which one counts.
        self.doubled: dict[TopicPartition, None] = {}
        # The paths of directories that are to get no new logs.
        self.cordoned: frozenset[str] = frozenset()

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.is_offline]

    @property
    def open_to_new(self) -> list[LogDirectory]:
        """Where new logs may go. Where all are cordoned the first takes them, as in Kafka."""
        online = self.online
        return [directory for directory in online if directory.path not in self.cordoned] or online[:1]

    @property
    def offline_paths(self) -> list[str]:
        opened = [directory.path for directory in self.directories if directory.is_offline]
        return [*[error.path for error in self.failed], *opened]

    @property
    def was_clean(self) -> bool:
        return not self.failed and all(directory.was_clean for directory in self.directories)

    def find(self, partition: TopicPartition) -> Log | None:
        """Find the log of a partition in a directory that works."""
        for directory in self.online:
            log = directory.logs.get(partition)
            if log is not None:
                return log
        return None

    def directory_of(self, log: Log) -> LogDirectory:
        """Return the directory that a log lies in."""
        for directory in self.directories:
            if directory.volume is log.volume:
                return directory
        raise KeyError(log.path)

    def choose(self) -> LogDirectory:
        """Return the directory for a new log: that with the fewest, as in Kafka."""
        candidates = self.open_to_new
        if not candidates:
            raise LogDirectoryOffline(", ".join(self.offline_paths), "no log directory is left")
        return min(candidates, key=lambda directory: len(directory.logs) + len(directory.future_logs))

    def add(self, directory: LogDirectory, log: Log) -> None:
        """Take a log that was loaded from a directory.

        There may be another one of the partition. A directory may have been offline while the partition was
        made again in the other one, or while the end of a move would have removed its log. None of this is
        an operator's mistake, and either log may be the one that holds the records.
        """
        is_current = parse_state(log.path) is DirectoryState.CURRENT
        if is_current and self.find(log.topic_partition) is not None:
            self.doubled[log.topic_partition] = None
        directory.add(log)

    def settle_doubled(
        self, partition: TopicPartition, topic_id: Uuid | None, unique_id: Uuid
    ) -> tuple[Log, list[Log]]:
        """Set all logs of a partition aside but one. Returns that one, and the others under their new names.

        The one of the topic that there is now comes first, then the one that reaches further: the later
        leader epoch, and in the same epoch the later end. As in an election, it has all that the others have
        which was committed, and if it has more, the leader tells where to cut it.
        """

        def rank(log: Log) -> tuple[bool, int, int]:
            return log.topic_id == topic_id, log.leader_epochs.latest, log.log_end_offset

        logs = [one.logs[partition] for one in self.online if partition in one.logs]
        kept = max(logs, key=rank)
        others = [log for log in logs if log is not kept]
        for log in others:
            self.directory_of(log).set_aside(log, DirectoryState.STRAY, unique_id)
        return kept, others

    def replace_by_future(self, partition: TopicPartition, unique_id: Uuid) -> DirectoryDeletion | None:
        """Let the future log of a partition, which has caught up, take over from the current one.

        It gets its name before the old one loses its own, as in Kafka. If power goes in between, there are
        two, and the next start chooses one; the other way round there would be none.
        """
        old = self.find(partition)
        target = next((each for each in self.online if partition in each.future_logs), None)
        if target is None:
            raise KeyError(partition)
        target.promote_future(partition)
        if old is None:
            return None
        source = self.directory_of(old)
        if partition in source.cleaner_offsets:
            # The copy has been cleaned as far as the original was.
            target.cleaner_offsets[partition] = source.cleaner_offsets[partition]
        try:
            return source.set_aside(old, DirectoryState.DELETE, unique_id)
        except LogDirectoryOffline:
            # The original cannot be removed: its directory has just failed. The copy serves.
            return None

    def release(self) -> None:
        """Unlock all directories, without a clean stop."""
        for directory in self.directories:
            directory.release()


def open_directories(
    volumes: Iterable[Volume], node_id: NodeId | None = None, cluster_id: str | None = None
) -> LogDirectories:
    """Open all log directories of a node. At least one must work, and all must belong together."""
    found = LogDirectories([])
    try:
        for volume in volumes:
            _open_next(found, volume, node_id, cluster_id)
    except UnusableDirectory:
        found.release()
        raise
    if not found.directories:
        paths = ", ".join([error.path for error in found.failed])
        raise UnusableDirectory(paths, "; ".join([error.cause for error in found.failed]))
    return found


def _open_next(found: LogDirectories, volume: Volume, node_id: NodeId | None, cluster_id: str | None) -> None:
    if found.directories:
        first = found.directories[0].meta
        node_id = first.node_id if node_id is None else node_id
        cluster_id = cluster_id or first.cluster_id
    try:
        found.directories.append(open_directory(volume, node_id, cluster_id))
    except LogDirectoryOffline as error:
        found.failed.append(error)
    else:
        _check_unique(found.directories)


def _check_unique(directories: Sequence[LogDirectory]) -> None:
    """Refuse a copy of another directory: two of the same id would be taken for one by the controller."""
    newest = directories[-1]
    for other in directories[:-1]:
        if newest.meta.directory_id is not None and newest.meta.directory_id == other.meta.directory_id:
            raise UnusableDirectory(
                newest.path, f"it has the same directory.id as {other.path}: one is a copy of the other"
            )

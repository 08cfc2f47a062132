"""The partitions of which this node has replicas, kept in step with the metadata.

Partitions are found by `(topic name, number)` and by `(topic id, number)` in one dictionary, because the
newer half of the protocol's versions names topics by id. If one cannot be found, `why_missing` says why.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from ottla.broker.limits.throttles import is_limited
from ottla.broker.logs.leaving_logs import LeavingLogs
from ottla.broker.logs.log_configs import SettingsOfTopics, TopicSettings
from ottla.broker.logs.new_logs import create_logs, create_logs_elsewhere
from ottla.broker.logs.partition import Partition, PartitionWatcher
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.directory_ids import MIGRATING, UNASSIGNED, is_reserved
from ottla.metadata.image import DEFAULT_BROKERS, ConfigResource, MetadataImage
from ottla.metadata.topics import PartitionChange, Topic
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LONG_MAX
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.new_log import NewLog
from ottla.storage.log import Log
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.names import DirectoryState
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.partitions import PartitionRecord
from ottla.world.clock import Clock
from ottla.world.workers import Run

_logger: Final = logging.getLogger("ottla.partitions")


class LogEvents(PartitionWatcher, Protocol):
    """Who acts on what happens to partitions and their logs."""

    def changed(self, partition: Partition) -> None:
        """Another leader, another log, or gone: requests that wait for it have to look again."""

    def log_is_gone(self, log: Log) -> None:
        """A log is to be deleted: nobody can reach it any more."""

    def new_id(self) -> Uuid:
        """Return a random id."""

    def partition_is_gone(self, partition: Partition) -> None:
        """This node has no replica of it any more."""

    def names_changed(self, directory: LogDirectory) -> None:
        """Logs were renamed: the directory is to be synced."""

    def directory_changed(self, partition: Partition) -> None:
        """A replica lies in another directory than the metadata says."""

    def is_missing(self, topic_id: Uuid, index: int) -> None:
        """A replica may lie in a directory that is offline, and the metadata does not say so."""


class Partitions:
    """All partitions of this node."""

    def __init__(
        self,
        node_id: int,
        directories: LogDirectories,
        configs: Callable[[], EffectiveConfigs],
        events: LogEvents,
        clock: Clock,
        leaving: LeavingLogs,
        act: Callable[..., None],
    ) -> None:
        """`act` takes a step in which something acts on new metadata, and goes on if it fails."""
        self._node_id = node_id
        self._directories = directories
        self._settings = SettingsOfTopics(configs)
        self._limits_moves = configs().node.ottla_balance_auto
        self._events = events
        self._clock = clock
        self._leaving = leaving
        self._act = act
        self._image: MetadataImage | None = None
        # Those whose topic sets `flush.ms`: few, if any, so that nobody has to go through all of them. In
        # a set, the order of the syncs would depend on addresses in memory.
        self.flushed_by_time: dict[Partition, None] = {}
        self.by_key: dict[tuple[str | Uuid, int], Partition] = {}
        # Whether records were set aside at the start that may be those of a replica of this node.
        self.has_set_records_aside = False
        # Whether a replica that may be elected lay in a directory that this node has not any more.
        self.lacks_a_directory = False

    def __iter__(self) -> Iterator[Partition]:
        """Give every partition once. What is gone when its turn comes is left out: a round may take long."""
        return (
            partition
            for key, partition in list(self.by_key.items())
            if isinstance(key[0], str) and partition in self
        )

    def __contains__(self, partition: Partition) -> bool:
        """Say whether this node has this replica still, and not another one of the same name."""
        return self.by_key.get((partition.topic_id, partition.index)) is partition

    def __len__(self) -> int:
        return len(self.by_key) // 2

    def find(self, topic: str, index: int) -> Partition | None:
        """Return a partition by the name of its topic."""
        return self.by_key.get((topic, index))

    def why_missing(self, topic: str | Uuid, index: int) -> ErrorCode:
        """Say why this node does not have a partition."""
        topics = None if self._image is None else self._image.topics
        is_name = isinstance(topic, str)
        found = None if topics is None else topics.find(topic) if is_name else topics.find_by_id(topic)  # type: ignore[arg-type]
        if found is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_name else ErrorCode.UNKNOWN_TOPIC_ID
        if index not in found.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._node_id in found.partitions[index].replicas:
            # It should be here, so its directory has failed.
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def settings_of(self, image: MetadataImage, topic: str) -> TopicSettings:
        """Return what the partitions of a topic obey."""
        return self._settings.find(image.topic_config(topic))

    # Following the metadata

    def prepare(
        self,
        image: MetadataImage,
        delta: MetadataDelta,
        run: Run,
        done: Callable[[], None],
    ) -> bool:
        """Make the logs that `delta` asks for. True: there is none to make. Else `done` is called later."""
        coming = self._coming(image, delta)
        missing = [
            NewLog("", TopicPartition(change.topic, change.partition), change.topic_id, settings.log)
            for change, settings in coming
            if (change.topic_id, change.partition) not in self.by_key
            and self._directories.find(TopicPartition(change.topic, change.partition)) is None
            and self._may_make(change)
        ]
        if not missing:
            return True
        self._leaving.finish(one.partition for one in missing)
        create_logs_elsewhere(self._directories, missing, self._clock.now_ms(), run, done)
        return False

    def _coming(
        self, image: MetadataImage, delta: MetadataDelta
    ) -> list[tuple[PartitionChange, TopicSettings]]:
        """Return the partitions that this node has after a change, with what they obey."""
        coming: list[tuple[PartitionChange, TopicSettings]] = []
        settings: tuple[str, TopicSettings] | None = None
        for change in delta.topics:
            if change.after is not None and self._node_id in change.after.replicas:
                if settings is None or settings[0] != change.topic:
                    settings = (change.topic, self.settings_of(image, change.topic))
                coming.append((change, settings[1]))
        return coming

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Create, change and delete partitions as the metadata says."""
        self._image = image
        if delta.configs:
            self._take_configs(image, delta)
        # One for all of them. It tells them from logs of the same names that were deleted before.
        unique_id = self._events.new_id()
        for change in delta.topics:
            if change.after is None or self._node_id not in change.after.replicas:
                self._act(self._remove, change, unique_id)
        self._take_all(self._coming(image, delta))
        self._leaving.go_on()

    def load(self, image: MetadataImage) -> None:
        """Take over the logs that were loaded. Those of no known partition are set aside as strays."""
        self._image = image
        self._settle_doubled(image)
        self._set_strays_aside(image)
        coming: list[tuple[PartitionChange, TopicSettings]] = []
        for topic in image.topics:
            settings = self.settings_of(image, topic.name)
            coming += [
                (PartitionChange(topic.name, topic.id, number, self._before_start(record), record), settings)
                for number, record in topic.partitions.items()
                if self._node_id in record.replicas
            ]
        nowhere = [change for change, _ in coming if self._is_nowhere(change)]
        self.lacks_a_directory = bool(nowhere)
        self._take_all(coming)
        if self._directories.offline_paths:
            self._report_missing(coming)
        elif nowhere:
            _logger.critical(
                "%d replicas, such as %s-%d, lay in directories that log.dirs does not name any more, and "
                "begin again without records: if that is a mistake, stop the node and name them again",
                len(nowhere),
                nowhere[0].topic,
                nowhere[0].partition,
            )
        self._leaving.go_on()

    def _take_all(self, coming: Sequence[tuple[PartitionChange, TopicSettings]]) -> None:
        """Have the partitions that the metadata gives to this node, new and changed ones."""
        new = [pair for pair in coming if (pair[0].topic_id, pair[0].partition) not in self.by_key]
        for (change, settings), log in zip(new, self._find_or_create_logs(new), strict=True):
            if log is not None:
                self._act(self._add, change, settings, log)
        for change, settings in coming:
            self._act(self._take, change, settings)

    def _take(self, change: PartitionChange, settings: TopicSettings) -> None:
        partition = self.by_key.get((change.topic_id, change.partition))
        if partition is not None and change.after is not None:
            if len(partition.replicas) != len(change.after.replicas):
                self._configure_partition(partition, settings, change.after)
            partition.follow(change.after, self._node_id)
            if partition.parked or partition.parked_replicas:
                self._events.changed(partition)

    def _add(self, change: PartitionChange, settings: TopicSettings, log: Log) -> None:
        assert change.after is not None, "what is gone has no log"
        partition = Partition(change.topic, change.topic_id, change.partition, log, self._events)
        self.by_key[change.topic, change.partition] = partition
        self.by_key[change.topic_id, change.partition] = partition
        self._configure_partition(partition, settings, change.after)
        if self._lies_elsewhere(log, change.after):
            self._events.directory_changed(partition)

    def _find_or_create_logs(self, new: Sequence[tuple[PartitionChange, TopicSettings]]) -> list[Log | None]:
        """Return the logs of new partitions; None where a directory has failed. `prepare` has made most."""
        keys = [TopicPartition(change.topic, change.partition) for change, _ in new]
        missing: list[NewLog] = []
        for key, (change, settings) in zip(keys, new, strict=True):
            log = self._directories.find(key)
            if log is not None and log.topic_id != change.topic_id:
                # A topic of the same name that is no more: its records must not come back to life.
                self._let_leave(log, self._events.new_id())
                log = None
            if log is not None:
                log.config = settings.log
            elif self._may_make(change):
                missing.append(NewLog("", key, change.topic_id, settings.log))
        self._leaving.finish(one.partition for one in missing)
        create_logs(self._directories, missing, self._clock.now_ms())
        return [
            None if self._was_left_behind(change) else self._directories.find(key)
            for key, (change, _) in zip(keys, new, strict=True)
        ]

    def _was_left_behind(self, change: PartitionChange) -> bool:
        """Say whether a replica lies in a directory that is offline, as the metadata says.

        A log of it in another directory is what a move left there, or an earlier assignment: it may lack
        what was acknowledged since. So it neither leads nor follows. As in Kafka, the replica is offline.
        """
        assert change.after is not None, "what is gone has no directory"
        if not self._directories.offline_paths:
            return False
        named = self._named_directory(change.after)
        own = [directory.meta.directory_id for directory in self._directories.online]
        return named is not None and not is_reserved(named) and named not in own

    def _may_make(self, change: PartitionChange) -> bool:
        """Say whether a replica without a log gets one.

        While a directory is offline, the log of a replica may lie there. A new one in its place would be
        empty, and might lead. A replica that this node has just been given has no log anywhere.
        """
        if not self._directories.offline_paths:
            return True
        return change.before is None or self._node_id not in change.before.replicas

    def _before_start(self, record: PartitionRecord) -> PartitionRecord | None:
        """Return what a replica was in the run before, or None if it may only have come since."""
        is_unassigned = self._named_directory(record) == UNASSIGNED
        return None if is_unassigned and not self._may_be_elected(record) else record

    def _may_be_elected(self, record: PartitionRecord) -> bool:
        return self._node_id in record.isr or self._node_id in (record.eligible_leader_replicas or ())

    def _is_nowhere(self, change: PartitionChange) -> bool:
        """Say whether a replica that may be elected has no log, and lay in a directory of no known id.

        Somebody has taken the directory out of `log.dirs`, or has replaced its disk. The replica begins again
        in another one.
        """
        assert change.after is not None, "what is gone has no directory"
        named = self._named_directory(change.after)
        if named is None or is_reserved(named) or not self._may_be_elected(change.after):
            return False
        own = [one.meta.directory_id for one in self._directories.directories]
        key = TopicPartition(change.topic, change.partition)
        return named not in own and self._directories.find(key) is None

    def _report_missing(self, coming: Sequence[tuple[PartitionChange, TopicSettings]]) -> None:
        """Report replicas that have no log because a directory is offline, and seem to lie in another one.

        Otherwise they could be elected.
        """
        known = {directory.meta.directory_id for directory in self._directories.online}
        for change, _ in coming:
            if (change.topic_id, change.partition) not in self.by_key and change.after is not None:
                named = self._named_directory(change.after)
                self._warn_of_missing(TopicPartition(change.topic, change.partition))
                if named in known or named in (UNASSIGNED, MIGRATING):
                    self._events.is_missing(change.topic_id, change.partition)

    def _warn_of_missing(self, key: TopicPartition) -> None:
        offline, left = ", ".join(self._directories.offline_paths), self._directories.find(key)
        if left is None:
            _logger.warning(
                "%s has no log, and may have one in %s, which is offline: no other one is made", key, offline
            )
            return
        _logger.warning(
            "%s lies in %s, which is offline, and %s is not used, since it may lack records: mend that "
            "directory, or take it out of log.dirs if its disk is lost, and start the node again",
            key,
            offline,
            left.path,
        )

    def _named_directory(self, record: PartitionRecord) -> Uuid | None:
        return dict(zip(record.replicas, record.directories, strict=False)).get(self._node_id)

    def _lies_elsewhere(self, log: Log, record: PartitionRecord) -> bool:
        """Say whether the metadata names another directory than the one a log lies in, or none."""
        own = self._directories.directory_of(log).meta.directory_id
        return self._named_directory(record) not in (None, MIGRATING, own)

    def _remove(self, change: PartitionChange, unique_id: Uuid) -> None:
        partition = self.by_key.pop((change.topic_id, change.partition), None)
        if partition is None:
            return
        self.flushed_by_time.pop(partition, None)
        if self.by_key.get((change.topic, change.partition)) is partition:
            del self.by_key[change.topic, change.partition]
        partition.leave()
        self._let_leave(partition.log, unique_id)
        self._events.partition_is_gone(partition)

    def _let_leave(self, log: Log, unique_id: Uuid) -> None:
        self._leaving.add(self._directories.directory_of(log), log, unique_id)
        self._events.log_is_gone(log)

    def _settle_doubled(self, image: MetadataImage) -> None:
        """Choose among the logs of a partition that lie in several directories."""
        for key in self._directories.doubled:
            topic = image.topics.find(key.topic)
            topic_id = None if topic is None else topic.id
            try:
                kept, others = self._directories.settle_doubled(key, topic_id, self._events.new_id())
            except LogDirectoryOffline as error:
                _logger.critical("%s", error)
                continue
            for one in others:
                _logger.warning(
                    "%s is in two log directories: %s (topic id %s, ends at %d) is used, and the other "
                    "(topic id %s, ends at %d) is kept as %s",
                    key,
                    kept.path,
                    kept.topic_id,
                    kept.log_end_offset,
                    one.topic_id,
                    one.log_end_offset,
                    one.path,
                )
        self._directories.doubled.clear()

    def _set_strays_aside(self, image: MetadataImage) -> None:
        for directory in self._directories.online:
            strays = 0
            for log in [*directory.logs.values(), *directory.future_logs.values()]:
                topic = None if log.topic_id is None else image.topics.find_by_id(log.topic_id)
                if log.topic_id is None and log.log_end_offset == 0:
                    # It was about to be made when the power went.
                    self._let_leave(log, self._events.new_id())
                    self._leaving.finish((log.topic_partition,))
                elif not self._is_assigned(topic, log.topic_partition):
                    named = image.topics.find(log.topic_partition.topic)
                    if log.topic_id is None and self._is_assigned(named, log.topic_partition):
                        self.has_set_records_aside = True
                    _logger.warning("%s belongs to no partition of this node, so it is set aside", log.path)
                    strays += self._set_stray_aside(directory, log)
            if strays:
                self._events.names_changed(directory)

    def _set_stray_aside(self, directory: LogDirectory, log: Log) -> bool:
        try:
            directory.set_aside(log, DirectoryState.STRAY, self._events.new_id(), syncs=False)
        except LogDirectoryOffline:
            return False
        return True

    def _is_assigned(self, topic: Topic | None, key: TopicPartition) -> bool:
        if topic is None or topic.name != key.topic:
            return False
        record = topic.partitions.get(key.partition)
        return record is not None and self._node_id in record.replicas

    # Configs

    def _take_configs(self, image: MetadataImage, delta: MetadataDelta) -> None:
        changed = delta.configs.changed
        own = ConfigResource(ResourceType.BROKER, str(self._node_id))
        if DEFAULT_BROKERS in changed or own in changed:
            topics = {partition.topic for partition in self}
        else:
            topics = {resource.name for resource in changed if resource.type == ResourceType.TOPIC}
        for name in topics:
            self._configure(image, name)

    def _configure(self, image: MetadataImage, name: str) -> None:
        topic = image.topics.find(name)
        if topic is None:
            return
        settings = self.settings_of(image, name)
        for number, record in topic.partitions.items():
            partition = self.by_key.get((topic.id, number))
            if partition is not None:
                self._configure_partition(partition, settings, record)

    def _configure_partition(
        self, partition: Partition, settings: TopicSettings, record: PartitionRecord
    ) -> None:
        # A topic cannot ask for more in-sync replicas than it has.
        in_sync_replicas_min = min(settings.in_sync_replicas_min, len(record.replicas))
        partition.configure(settings.log, in_sync_replicas_min)
        node_id, number = self._node_id, partition.index
        partition.is_sending_limited = is_limited(settings.sending_limited, number, node_id)
        partition.is_copying_limited = is_limited(settings.copying_limited, number, node_id) or (
            self._limits_moves and node_id in record.adding_replicas
        )
        if settings.log.flush_ms < LONG_MAX:
            self.flushed_by_time[partition] = None
        else:
            self.flushed_by_time.pop(partition, None)

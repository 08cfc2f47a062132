"""Loading the logs of a broker at its start, one directory after the other.

While a directory is loaded, the loop serves others. A directory that cannot be read goes offline, and the
start goes on without it.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from ottla.broker.node import Broker
from ottla.model.ids import TopicPartition
from ottla.runtime.recovery import LoadingLogs
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory

_logger: Final = logging.getLogger("ottla.startup")


class LogLoading:
    """Loads all logs of a broker. `then` runs a step in a later turn of the loop."""

    def __init__(
        self,
        broker: Broker,
        then: Callable[..., None],
        loaded: Callable[[Broker], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._broker = broker
        self._then = then
        self._loaded = loaded
        self._failed = failed

    def begin(self) -> None:
        """Begin. One of the callbacks is called when it is over."""
        for directory in self._broker.directories.online:
            try:
                _restore_missing(self._broker, directory)
            except LogDirectoryOffline as error:
                _logger.critical("%s", error)
        self._then(self._load_next, iter(self._broker.directories.online))

    def _load_next(self, left: Iterator[LogDirectory]) -> None:
        """Load the logs of one directory, and continue with the others."""
        broker = self._broker
        directory = next(left, None)
        if directory is None:
            self._loaded(broker)
            return
        clock = broker.clock
        started_ms = clock.monotonic_ms()

        def loaded(logs: list[Log]) -> None:
            for log in logs:
                broker.directories.add(directory, log)
            broker.deletions.add_all(plan.deletions)
            _logger.info(
                "loaded %d logs of %s in %d ms, %s",
                len(logs),
                directory.path,
                clock.monotonic_ms() - started_ms,
                _last_stop_of(directory),
            )
            self._then(self._load_next, left)

        def failed(error: Exception) -> None:
            if not isinstance(error, LogDirectoryOffline):
                self._failed(error)
                return
            _logger.critical("%s", error)
            self._then(self._load_next, left)

        try:
            plan = directory.plan_load(
                lambda topic: broker.partitions.settings_of(broker.image, topic).log, clock.now_ms()
            )
        except LogDirectoryOffline as error:
            failed(error)
            return
        LoadingLogs(broker.world, directory.volume, plan.loads, loaded, failed).begin()


def _last_stop_of(directory: LogDirectory) -> str:
    if directory.is_new:
        return "in a new directory"
    return "after a clean shutdown" if directory.was_clean else "after an unclean shutdown"


def _restore_missing(broker: Broker, directory: LogDirectory) -> None:
    """Make the directories of logs that somebody has removed, so that their loss is noticed.

    And let those say again of which topic they are that have lost it, or they would be set aside.
    """
    for topic_id, number in directory.noted_logs():
        topic = broker.image.topics.find_by_id(topic_id)
        record = None if topic is None else topic.partitions.get(number)
        if topic is None or record is None or broker.node_id not in record.replicas:
            continue
        partition = TopicPartition(topic.name, number)
        if not any(one.has_log(partition) for one in broker.directories.online):
            # It may have been moved to a directory that is offline: then it is not lost.
            if not broker.directories.offline_paths:
                directory.restore(partition, topic_id)
        elif directory.has_log(partition) and directory.find_topic_id(partition) is None:
            _logger.warning("%s in %s has no topic id; restoring it", partition, directory.path)
            directory.restore(partition, topic_id)

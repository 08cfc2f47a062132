"""Making the logs of new partitions, before anybody learns that the partitions exist.

A topic of 10,000 partitions takes 30,000 files and directories, and seconds. So a worker makes them while the
loop serves others, and the metadata that names them is published when they are there.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from ottla.storage.errors import StorageError
from ottla.storage.loading.new_log import NewLog, make_logs
from ottla.storage.log import Log
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.names import directory_name
from ottla.world.workers import Run

_logger: Final = logging.getLogger("ottla.partitions")


def create_logs(directories: LogDirectories, wanted: Sequence[NewLog], now_ms: int) -> None:
    """Make logs in this thread."""
    for directory, share in _deal(directories, wanted):
        _add(directory, _try_to_make(directory, share, now_ms))


def create_logs_elsewhere(
    directories: LogDirectories,
    wanted: Sequence[NewLog],
    now_ms: int,
    run: Run,
    done: Callable[[], None],
) -> None:
    """Make logs while the loop serves others. `done` is called when all are there that could be made."""
    shares = _deal(directories, wanted)
    made: list[tuple[LogDirectory, list[Log]]] = []

    def work() -> None:
        made.extend((directory, _try_to_make(directory, share, now_ms)) for directory, share in shares)

    def take(error: Exception | None) -> None:
        if error is not None:
            # A bug of ours. It affects these partitions only.
            _logger.critical("cannot create the logs of %d replicas", len(wanted), exc_info=error)
        for directory, logs in made:
            _add(directory, logs)
        done()

    run(work, take)


def _deal(directories: LogDirectories, wanted: Sequence[NewLog]) -> list[tuple[LogDirectory, list[NewLog]]]:
    """Give each log to the directory that has the fewest, counting those that are about to be made."""
    candidates = directories.open_to_new
    counts = Counter({one.path: len(one.logs) + len(one.future_logs) for one in candidates})
    shares: dict[str, list[NewLog]] = {one.path: [] for one in candidates}
    for new in wanted if candidates else ():
        path = min(counts, key=lambda path: counts[path])
        counts[path] += 1
        shares[path].append(new._replace(path=f"{path}/{directory_name(new.partition)}"))
    return [(one, shares[one.path]) for one in candidates if shares[one.path]]


def _try_to_make(directory: LogDirectory, wanted: Sequence[NewLog], now_ms: int) -> list[Log]:
    try:
        return make_logs(directory.volume, wanted, now_ms)
    except StorageError as error:
        # It must not affect the logs in other directories.
        _logger.critical("cannot create %d new replicas: %s", len(wanted), error)
        return []


def _add(directory: LogDirectory, logs: Sequence[Log]) -> None:
    for log in logs:
        directory.add(log)

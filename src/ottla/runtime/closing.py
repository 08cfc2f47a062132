"""Stopping a log directory cleanly: the syncs of all its logs, several at once.

A log that was written to needs some seven syncs when it is closed. One after the other a thousand logs would
take several seconds; the file system commits what is synced at the same time together.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ottla.storage import flush
from ottla.storage.clean_shutdown import NO_BROKER_EPOCH
from ottla.storage.directory import LogDirectory
from ottla.storage.errors import StorageError
from ottla.storage.flush import FlushTicket
from ottla.world.disk import Disk, DiskError

THREADS: Final = 8


def close_directory(
    directory: LogDirectory, broker_epoch: int = NO_BROKER_EPOCH, threads: int = THREADS
) -> None:
    """Close all logs, write the checkpoints and the mark of a clean stop. No sync may be under way.

    Raises `LogDirectoryOffline` if the disk fails. Then there is no mark, and the next start recovers.
    """
    try:
        starts = directory.start_close()
        with ThreadPoolExecutor(threads) as pool:
            # Asked for one by one, so that the first error shows.
            for _ in pool.map(_sync, [(ticket, directory.volume.disk) for _, ticket in starts]):
                pass
    except DiskError as error:
        directory.release()
        raise directory.volume.fail(error) from error
    except StorageError:
        directory.release()
        raise
    for log, ticket in starts:
        log.finish_flush(ticket)
    directory.finish_close(broker_epoch)


def _sync(work: tuple[FlushTicket, Disk]) -> None:
    ticket, disk = work
    flush.run(ticket, disk)
    for file in ticket.files:
        # Here nobody else closes them, and there may be more logs than descriptors.
        file.close()

"""Making a log survive a power cut: what has to be synced, and who may do it.

`start_flush` says what there is to do, as a ticket. `run` does it, and may do so in another thread, because
it touches nothing but the disk. `finish_flush` then moves the recovery point. Appends go on meanwhile.

A ticket covers everything below its offset: the segments' files and, of inactive segments, their indexes and
producer snapshots, since nothing below the recovery point is looked at after a crash; the names of new files;
and the leader epochs.
"""

from typing import TYPE_CHECKING, NamedTuple

from ottla.model.ids import Offset
from ottla.storage.checkpoints import LEADER_EPOCH_FILE, encode_epoch_checkpoint
from ottla.storage.names import FileKind
from ottla.world.disk import Disk, DiskError, File

if TYPE_CHECKING:
    from ottla.storage.log import Log


class FlushTicket(NamedTuple):
    """What makes everything below `offset` survive. `truncations` tells a log that was truncated since."""

    offset: Offset
    truncations: int
    files: tuple[File, ...]
    # Content by path, to be replaced atomically.
    contents: tuple[tuple[str, bytes], ...]
    # A directory in which names changed, or "".
    directory: str


def start_flush(log: "Log") -> FlushTicket | None:
    """Return what is to be synced now, or None if everything is safe already."""
    log.volume.check()
    if (
        log.recovery_point >= log.log_end_offset
        and not log.has_unsynced_names
        and not log.has_unsynced_epochs
    ):
        return None
    files = tuple(_unsynced_files(log))
    contents: tuple[tuple[str, bytes], ...] = ()
    if log.has_unsynced_epochs:
        path = f"{log.path}/{LEADER_EPOCH_FILE}"
        contents = ((path, encode_epoch_checkpoint(log.leader_epochs.entries)),)
    directory = log.path if log.has_unsynced_names else ""
    log.has_unsynced_epochs = log.has_unsynced_names = False
    return FlushTicket(log.log_end_offset, log.truncations, files, contents, directory)


def _unsynced_files(log: "Log") -> list[File]:
    active = log.segments[-1]
    if log.recovery_point >= active.base_offset and not log.unsynced_paths:
        return [active.file]
    files = []
    disk = log.volume.disk
    for segment in log.segments_from(log.recovery_point):
        files.append(segment.file)
        if segment is not active:
            files.append(disk.open(segment.path_of(FileKind.OFFSET_INDEX)))
            files.append(disk.open(segment.path_of(FileKind.TIME_INDEX)))
            if segment.has_aborted:
                files.append(disk.open(segment.path_of(FileKind.TRANSACTION_INDEX)))
    files.extend([disk.open(path) for path in log.unsynced_paths])
    log.unsynced_paths = ()
    return files


def run(ticket: FlushTicket, disk: Disk) -> None:
    """Do what a ticket says. Touches the disk only, so it may run in another thread."""
    for file in ticket.files:
        file.sync()
    for path, content in ticket.contents:
        disk.write_file_atomically(path, content)
    if ticket.directory:
        disk.sync_directory(ticket.directory)


def finish_flush(log: "Log", ticket: FlushTicket) -> None:
    """Move the recovery point: everything below the ticket's offset has been synced."""
    if ticket.truncations == log.truncations and ticket.offset > log.recovery_point:
        log.recovery_point = ticket.offset


def fail_flush(log: "Log", error: DiskError) -> None:
    """Take the directory offline. What the failed sync covered is lost or not, and no retry would tell."""
    log.volume.fail(error)

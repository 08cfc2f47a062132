"""A log directory as it is made, and as a process takes it: locked, and with what it says of itself."""

from ottla.model.ids import NodeId
from ottla.storage.errors import UnusableDirectory
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs import clean_shutdown, meta_properties
from ottla.storage.log_dirs.directory import NO_CLEAN_STOP, LogDirectory
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.names import (
    LOCK_FILE,
)
from ottla.storage.volume import Volume
from ottla.world.disk import Disk, DiskError, Reason


def format_directory(disk: Disk, path: str, meta: MetaProperties) -> None:
    """Make a directory one that a node may use. One that is formatted already is refused."""
    disk.make_directory(path)
    meta_path = f"{path}/{meta_properties.FILE}"
    if disk.exists(meta_path):
        raise UnusableDirectory(path, "it is already formatted")
    disk.write_file_atomically(meta_path, meta_properties.encode_meta_properties(meta))


def open_directory(
    volume: Volume, node_id: NodeId | None = None, cluster_id: str | None = None
) -> LogDirectory:
    """Lock a directory and find out whose it is.

    Raises `UnusableDirectory` if it is in use, not formatted, or of another node or cluster, and
    `LogDirectoryOffline` if the disk fails.
    """
    disk, path = volume.disk, volume.path
    try:
        if not disk.exists(path):
            raise UnusableDirectory(path, "the directory does not exist")
        lock = disk.lock(f"{path}/{LOCK_FILE}")
    except DiskError as error:
        if error.reason is Reason.LOCKED:
            who = error.detail or "another process"
            raise UnusableDirectory(path, f"{who} is using it: stop that process first") from error
        raise volume.fail(error) from error
    try:
        meta = _read_meta(disk, path, node_id, cluster_id)
        directory = LogDirectory(volume, lock, meta, _read_clean_stop(disk, path))
    except DiskError as error:
        lock.release()
        raise volume.fail(error) from error
    except UnusableDirectory:
        lock.release()
        raise
    return directory


def _read_meta(disk: Disk, path: str, node_id: NodeId | None, cluster_id: str | None) -> MetaProperties:
    try:
        meta = meta_properties.decode_meta_properties(disk.read_file(f"{path}/{meta_properties.FILE}"))
    except CorruptFile as error:
        raise UnusableDirectory(path, str(error)) from error
    except DiskError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        raise UnusableDirectory(path, f"it has no {meta_properties.FILE}, so it is not formatted") from error
    if node_id is not None and meta.node_id is not None and meta.node_id != node_id:
        raise UnusableDirectory(path, f"it belongs to node {meta.node_id}, but this is node {node_id}")
    if cluster_id is not None and meta.cluster_id is not None and meta.cluster_id != cluster_id:
        raise UnusableDirectory(
            path, f"it belongs to cluster {meta.cluster_id}, but this is cluster {cluster_id}"
        )
    return meta


def _read_clean_stop(disk: Disk, path: str) -> int:
    """Return the broker epoch of the mark of a clean stop."""
    try:
        return clean_shutdown.decode_clean_shutdown(disk.read_file(f"{path}/{clean_shutdown.FILE}"))
    except DiskError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        return NO_CLEAN_STOP

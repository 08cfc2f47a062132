"""Making the files of new logs, many at once, with as few syncs as that takes.

A new log is a directory with `partition.metadata`, which says whose it is, and an empty first segment. They
have to survive a power cut before anything is appended: a log without `partition.metadata` is taken for a
stray, and one without its first segment would seem to start at its second one.

Nothing else is there yet, so the order of the syncs does not matter, only that all is safe in the end. Many
logs are made safe by one sync of their file system. A power cut before that leaves directories that are half
made. They hold no record, and are made again by the next start.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs import partition_metadata
from ottla.storage.roll import create_segment
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError

TOGETHER_MIN: Final = 16
"""From this many logs on, their whole file system is synced instead of each of them."""


class NewLog(NamedTuple):
    """A log that is to be made, in a directory of its own."""

    path: str
    partition: TopicPartition
    topic_id: Uuid
    config: LogConfig


def make_logs(volume: Volume, wanted: Sequence[NewLog], now_ms: int) -> list[Log]:
    """Make the logs, in this thread. When this returns, a power cut does not undo it."""
    volume.check()
    try:
        logs = [_make(volume, new, now_ms) for new in wanted]
        if len(logs) < TOGETHER_MIN or not volume.disk.sync_all(volume.path):
            _sync_each(volume, logs)
    except DiskError as error:
        raise volume.fail(error) from error
    return logs


def _make(volume: Volume, new: NewLog, now_ms: int) -> Log:
    disk = volume.disk
    is_new = disk.make_directory(new.path)
    metadata_path = f"{new.path}/{partition_metadata.FILE}"
    if is_new or not disk.exists(metadata_path):
        file = disk.open(metadata_path, create=True)
        file.write(0, (partition_metadata.encode_partition_metadata(new.topic_id),))
        file.close()
    if not is_new:
        return _load(volume, new, now_ms)
    log = Log(volume, new.path, new.partition, new.topic_id, new.config)
    segment = create_segment(log, Offset(0), now_ms)
    # Whether it is used at all will show. Many idle ones should cost no descriptors.
    segment.file.close()
    log.segments = [segment]
    return log


def _load(volume: Volume, new: NewLog, now_ms: int) -> Log:
    log = load_log(volume, LoadRequest(new.path, new.partition, new.config, now_ms=now_ms))
    if log.topic_id != new.topic_id:
        raise StorageError(
            f"{new.path} belongs to topic {log.topic_id}, not to {new.topic_id}: it must be set aside first"
        )
    return log


def _sync_each(volume: Volume, logs: Sequence[Log]) -> None:
    disk = volume.disk
    for log in logs:
        file = disk.open(f"{log.path}/{partition_metadata.FILE}")
        file.sync()
        file.close()
        disk.sync_directory(log.path)
    disk.sync_directory(volume.path)

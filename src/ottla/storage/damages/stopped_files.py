"""What the files of all logs were at a clean stop (`.ottla-stopped-files`): a start sees what is missing.

After a clean stop a start believes the files, and reads next to nothing. A file that was removed, cut or
extended since would go unnoticed: without its transaction index a segment shows aborted records, and without
a segment its records are gone. Nor has the checkpoint of log starts a checksum, and a digit that changed
would delete records. So this is written down, as JSON with a checksum in front:

    9ae0daaf {"brokerEpoch":492,"logs":{"orders-0":["WF8a…",0,1200,[[0,98765,40,60,-1],[900,4321,0,12,78]]]}}

A log is the id of its topic, its start offset, its end offset and its segments: base offset, the bytes of
log, offset index and time index, and the checksum of the transaction index, or -1 if there is none. It is for
the stop that the mark of a clean stop is for: if Apache Kafka has used the directory since, the epochs
differ, and it says nothing.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crc32c import crc32c

from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.storage.names import FileKind
from ottla.world.disk import Disk, DiskError, Reason

if TYPE_CHECKING:
    from ottla.storage.log import Log

FILE: Final = ".ottla-stopped-files"
NO_FILE: Final = -1


class StoppedSegment(NamedTuple):
    """The files of a segment."""

    base_offset: Offset
    size: int
    offset_bytes: int
    time_bytes: int
    aborted_crc: int


class StoppedLog(NamedTuple):
    """The files of a log."""

    topic_id: Uuid | None
    log_start_offset: Offset
    log_end_offset: Offset
    segments: tuple[StoppedSegment, ...]


def state_of(log: "Log") -> StoppedLog:
    """Return what the files of a log are. It must be closed."""
    disk = log.volume.disk
    segments = [
        StoppedSegment(
            one.base_offset,
            one.size,
            one.offset_bytes,
            one.time_bytes,
            crc_of(disk, one.path_of(FileKind.TRANSACTION_INDEX)) if one.has_aborted else NO_FILE,
        )
        for one in log.segments
    ]
    return StoppedLog(log.topic_id, log.log_start_offset, log.log_end_offset, tuple(segments))


def crc_of(disk: Disk, path: str) -> int:
    """Return the checksum of a file, or -1 if there is none."""
    try:
        return crc32c(disk.read_file(path))
    except DiskError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        return NO_FILE


def write(disk: Disk, directory: str, broker_epoch: int, logs: Mapping[str, StoppedLog]) -> None:
    """Write down what the files are, by the name of the log's directory."""
    content = {"brokerEpoch": broker_epoch, "logs": {name: _encode(log) for name, log in logs.items()}}
    text = json.dumps(content, separators=(",", ":")).encode()
    disk.write_file_atomically(f"{directory}/{FILE}", b"%08x " % crc32c(text) + text)


def _encode(log: StoppedLog) -> list[Any]:
    topic_id = None if log.topic_id is None else str(log.topic_id)
    return [topic_id, log.log_start_offset, log.log_end_offset, log.segments]


def read(disk: Disk, directory: str, broker_epoch: int) -> dict[str, StoppedLog]:
    """Return what was written down at the clean stop with this epoch, by the name of the log's directory."""
    try:
        crc, _, text = disk.read_file(f"{directory}/{FILE}").partition(b" ")
        if crc != b"%08x" % crc32c(text):
            return {}
        content = json.loads(text)
        if content["brokerEpoch"] != broker_epoch:
            return {}
        return {name: _decode(*log) for name, log in content["logs"].items()}
    except (ValueError, TypeError, KeyError, IndexError):
        # The checksum is right, so another release has written it.
        return {}
    except DiskError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        return {}


def _decode(
    topic_id: str | None, log_start_offset: int, log_end_offset: int, segments: list[list[int]]
) -> StoppedLog:
    return StoppedLog(
        None if topic_id is None else Uuid.from_text(topic_id),
        Offset(log_start_offset),
        Offset(log_end_offset),
        tuple([StoppedSegment(Offset(one[0]), one[1], one[2], one[3], one[4]) for one in segments]),
    )

"""What the files of all logs were at a clean stop (`.ottla-stopped-files`): a start sees what is missing.

After a clean stop a start believes the files, and reads next to nothing. A file that was removed, cut or
extended since would go unnoticed: without its transaction index a segment shows aborted records, and without
a segment its records are gone. Nor has the checkpoint of log starts a checksum, and a digit that changed
would delete records. So this is written down, as JSON with a checksum in front:

    9ae0daaf {"brokerEpoch":492,"logs":{"orders-0":[0,1200,[[0,98765,40,60,0],[900,4321,0,12,1]]]}}

A log is its start offset, its end offset and its segments: base offset, the bytes of log, offset index and
time index, and whether there is a transaction index. It is for the stop that the mark of a clean stop is for:
if Apache Kafka has used the directory since, the epochs differ, and it says nothing.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from ottla.model.ids import Offset
from ottla.world.disk import Disk, DiskError, Reason

if TYPE_CHECKING:
    from ottla.storage.log import Log

FILE: Final = ".ottla-stopped-files"


class StoppedSegment(NamedTuple):
    """The files of a segment."""

    base_offset: Offset
    size: int
    offset_bytes: int
    time_bytes: int
    has_aborted: bool


class StoppedLog(NamedTuple):
    """The files of a log."""

    log_start_offset: Offset
    log_end_offset: Offset
    segments: tuple[StoppedSegment, ...]


def write(disk: Disk, directory: str, broker_epoch: int, logs: Iterable["Log"]) -> None:
    """Write down what the files are. All logs must be closed."""
    content = {
        "brokerEpoch": broker_epoch,
        "logs": {
            log.path.rpartition("/")[2]: (log.log_start_offset, log.log_end_offset, _segments_of(log))
            for log in logs
        },
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    disk.write_file_atomically(f"{directory}/{FILE}", b"%08x " % crc32c(text) + text)


def _segments_of(log: "Log") -> list[tuple[int, int, int, int, int]]:
    return [
        (
            segment.base_offset,
            segment.size,
            segment.offset_bytes,
            segment.time_bytes,
            int(segment.has_aborted),
        )
        for segment in log.segments
    ]


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


def _decode(log_start_offset: int, log_end_offset: int, segments: list[list[int]]) -> StoppedLog:
    return StoppedLog(
        Offset(log_start_offset),
        Offset(log_end_offset),
        tuple([StoppedSegment(Offset(one[0]), one[1], one[2], one[3], bool(one[4])) for one in segments]),
    )

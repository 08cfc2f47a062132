"""Names of files and directories below a log directory: put together and taken apart.

A partition's directory is `<topic>-<partition>`, or with an id of its own when it is not in use:

    orders-3                                            a log
    orders-3.<32 hex digits>-delete                     to be deleted
    orders-3.<32 hex digits>-future                     being copied from another log directory
    orders-3.<32 hex digits>-stray                      of no known topic; kept for a human to look at

Apache Kafka reads the name of *every* directory in a log directory like this and refuses to start when it
cannot, so nothing else may be made there.

A segment's files are its base offset in 20 digits and a kind. A suffix tells a file that is not in use:

    00000000000000000170.log                            in use
    00000000000000000170.log.deleted                    to be deleted
    00000000000000000170.log.cleaned                    being written by compaction or a split
    00000000000000000170.log.swap                       complete, about to replace what it was made from
"""

import re
from enum import Enum
from typing import Final, NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.storage.file_errors import CorruptFile

LOCK_FILE: Final = ".lock"
METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
# Kept by a tiered Apache Kafka in its log directories. It is no log.
REMOTE_INDEX_CACHE_DIRECTORY: Final = "remote-log-index-cache"

_NAME_CHARACTERS_MAX: Final = 255
_PARTITION_MAX: Final = 0x7FFFFFFF
_OFFSET_MAX: Final = 0x7FFFFFFFFFFFFFFF


class DirectoryState(Enum):
    """What a partition's directory is there for. The value is the suffix of its name."""

    CURRENT = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class DirectoryName(NamedTuple):
    """A partition's directory. `unique_id` tells the ones not in use apart."""

    partition: TopicPartition
    state: DirectoryState
    unique_id: str


def directory_name(partition: TopicPartition) -> str:
    """Return the name of the directory of a partition's log."""
    return f"{partition.topic}-{partition.partition}"


def directory_name_with_state(partition: TopicPartition, state: DirectoryState, unique_id: Uuid) -> str:
    """Return the name of a directory not in use. A long topic name is cut to what a file system takes."""
    assert state is not DirectoryState.CURRENT, "a log in use has no state in its name"
    rest = _after_topic(partition, state, unique_id)
    return partition.topic[: _NAME_CHARACTERS_MAX - len(rest)] + rest


def holds_whole_topic_name(partition: TopicPartition, state: DirectoryState) -> bool:
    """Return whether a directory not in use says of which partition it is, with no part of its name cut."""
    # All ids are equally long.
    return len(partition.topic) + len(_after_topic(partition, state, ZERO_UUID)) <= _NAME_CHARACTERS_MAX


def _after_topic(partition: TopicPartition, state: DirectoryState, unique_id: Uuid) -> str:
    return f"-{partition.partition}.{unique_id.hex()}{state.value}"


_DIRECTORY: Final = re.compile(
    r"(?P<topic>\S+)-(?P<partition>[0-9]{1,10})(?:\.(?P<id>[^\s.]+)(?P<state>-delete|-future|-stray))?"
)


def parse_directory_name(name: str) -> DirectoryName:
    """Take a directory's name apart. Raises `CorruptFile` if it is no partition's."""
    match = _DIRECTORY.fullmatch(name)
    if match is None or int(match["partition"]) > _PARTITION_MAX:
        raise CorruptFile("log directory", f"{name!r} is not the name of a partition's directory")
    partition = TopicPartition(match["topic"], int(match["partition"]))
    return DirectoryName(partition, DirectoryState(match["state"] or ""), match["id"] or "")


class FileKind(Enum):
    """What one of a segment's files holds. The value is the extension of its name."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"


SEGMENT_KINDS: Final = (
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TRANSACTION_INDEX,
)


class FileState(Enum):
    """What a file is there for. The value is the suffix of its name."""

    CURRENT = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"


class SegmentFile(NamedTuple):
    """A file of a partition's directory that is named after an offset."""

    offset: Offset
    kind: FileKind
    state: FileState


def segment_file_name(offset: Offset, kind: FileKind, state: FileState = FileState.CURRENT) -> str:
    """Return the name of a segment's file, or of the producer snapshot at an offset."""
    return f"{offset:020d}{kind.value}{state.value}"


_FILE: Final = re.compile(
    r"(?P<offset>[0-9]{1,20})(?P<kind>\.log|\.index|\.timeindex|\.txnindex|\.snapshot)"
    r"(?P<state>\.deleted|\.cleaned|\.swap)?"
)


def find_segment_file(name: str) -> SegmentFile | None:
    """Take a file's name apart, or return None if it is not named after an offset."""
    match = _FILE.fullmatch(name)
    if match is None or int(match["offset"]) > _OFFSET_MAX:
        return None
    return SegmentFile(Offset(int(match["offset"])), FileKind(match["kind"]), FileState(match["state"] or ""))

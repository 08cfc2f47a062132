"""What can be said of a stopped data directory without a server: what is in it, and whether it is sound.

The checks are those that decide whether Apache Kafka, or Ottla, opens the directory and finds everything:

- nothing but partitions' directories in it, each with the id of its topic, each known to the metadata;
- segments of whole batches with right checksums, offsets going up;
- indexes that point to the beginnings of batches, snapshots and checkpoints that can be read;
- metadata that can be read from the last snapshot to the end.

Nothing is changed.
"""

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.cli.directories.dump import mapped, used_entries
from ottla.metadata.errors import MetadataError
from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.quorum.batches import decode_batch
from ottla.quorum.snapshot_file import find_snapshot_id
from ottla.records.batch import iter_batches
from ottla.records.errors import RecordsError
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.indexes.transaction_index import decode_transaction_index
from ottla.storage.log_dirs.checkpoints import (
    LEADER_EPOCH_FILE,
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
)
from ottla.storage.log_dirs.clean_shutdown import FILE as CLEAN_SHUTDOWN_FILE
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES_FILE
from ottla.storage.log_dirs.meta_properties import MetaProperties, decode_meta_properties
from ottla.storage.log_dirs.partition_metadata import FILE as PARTITION_METADATA_FILE
from ottla.storage.log_dirs.partition_metadata import decode_partition_metadata
from ottla.storage.names import (
    LOCK_FILE,
    METADATA_PARTITION,
    DirectoryState,
    FileKind,
    find_segment_file,
    parse_directory_name,
)
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot
from ottla.wire.control_records import VotersRecord
from ottla.wire.errors import WireError
from ottla.wire.metadata_records.access_control import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from ottla.wire.metadata_records.partitions import PartitionRecord
from ottla.wire.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord

_UNREADABLE: Final = (RecordsError, CorruptFile, MetadataError, WireError, ValueError, OSError)
_ENTRY_BYTES: Final = {FileKind.OFFSET_INDEX.value: 8, FileKind.TIME_INDEX.value: 12}


class Problem(NamedTuple):
    """Something that is not as it should be."""

    path: str
    what: str


class Contents(NamedTuple):
    """What a directory holds, as far as its names and metadata tell."""

    meta: MetaProperties
    was_stopped_cleanly: bool
    is_in_use: bool
    partitions: int
    segments: int
    size_bytes: int
    topics: dict[str, Uuid]
    has_dynamic_quorum: bool
    rules: int = 0
    """How many access rules the metadata has."""
    users: int = 0
    """How many credentials of users it has."""


class UnusableData(Exception):
    """A directory of which nothing can be said."""


def read_contents(directory: Path) -> Contents:
    """Look at a data directory. Raises `UnusableData` for one that is none."""
    try:
        meta = decode_meta_properties((directory / META_PROPERTIES_FILE).read_bytes())
    except FileNotFoundError:
        raise UnusableData(
            f"{directory} is not a data directory, because it has no {META_PROPERTIES_FILE}; use `ottla "
            "storage format` to create one"
        ) from None
    except _UNREADABLE as error:
        raise UnusableData(f"{directory / META_PROPERTIES_FILE} cannot be read: {error}") from error
    logs = list(directory.glob("*/*.log"))
    metadata = _Metadata(directory / f"{METADATA_PARTITION.topic}-{METADATA_PARTITION.partition}")
    try:
        metadata.read()
    except _UNREADABLE as error:
        raise UnusableData(f"the metadata in {directory} cannot be read: {error}") from error
    return Contents(
        meta,
        (directory / CLEAN_SHUTDOWN_FILE).exists(),
        is_locked(directory / LOCK_FILE),
        sum(1 for path in directory.iterdir() if path.is_dir()),
        len(logs),
        sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
        {name: topic_id for topic_id, name in metadata.topics.items()},
        metadata.has_voters,
        len(metadata.rules),
        len(metadata.users),
    )


def find_problems(directory: Path, checked: Callable[[], None]) -> Iterator[Problem]:
    """Check a data directory, file by file. `checked` is called after each directory of a partition."""
    metadata = _Metadata(directory / f"{METADATA_PARTITION.topic}-{METADATA_PARTITION.partition}")
    try:
        metadata.read()
    except _UNREADABLE as error:
        yield Problem(str(metadata.directory), f"the metadata cannot be read: {error}")
        return
    for path in sorted(directory.iterdir()):
        if path.is_dir():
            yield from _check_partition(path, metadata)
            checked()
        elif path.name.endswith("-offset-checkpoint"):
            yield from check_readable(path, decode_offset_checkpoint)
    for where in sorted(metadata.partitions()):
        path = directory / f"{where.topic}-{where.partition}"
        if not path.is_dir():
            yield Problem(str(path), "the metadata has this partition, but its directory is missing")


class _Metadata:
    """The topics and partitions that the metadata knows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.topics: dict[Uuid, str] = {}
        self.has_voters = False
        self.rules: set[Uuid] = set()
        self.users: set[tuple[int, str]] = set()
        self._partitions: set[tuple[Uuid, int]] = set()

    def read(self) -> None:
        """Read the last snapshot, and the log behind it."""
        first = 0
        snapshots = [
            (found, path)
            for path in self.directory.glob("*.checkpoint")
            if (found := find_snapshot_id(path.name))
        ]
        for snapshot_id, path in sorted(snapshots)[-1:]:
            first = snapshot_id.end_offset
            self._replay(path, 0)
        for path in sorted(self.directory.glob("*.log")):
            self._replay(path, first)

    def _replay(self, path: Path, first_offset: int) -> None:
        for batch in iter_batches(mapped(path)):
            if batch.last_offset < first_offset:
                continue
            for record in decode_batch(batch).records:
                if isinstance(record, TopicRecord):
                    self.topics[record.topic_id] = record.name
                elif isinstance(record, RemoveTopicRecord):
                    self.topics.pop(record.topic_id, None)
                elif isinstance(record, PartitionRecord):
                    self._partitions.add((record.topic_id, record.partition_id))
                elif isinstance(record, VotersRecord):
                    self.has_voters = True
                else:
                    self._replay_security(record)

    def _replay_security(self, record: Any) -> None:
        match record:
            case AccessControlEntryRecord():
                self.rules.add(record.id)
            case RemoveAccessControlEntryRecord():
                self.rules.discard(record.id)
            case UserScramCredentialRecord():
                self.users.add((record.mechanism, record.name))
            case RemoveUserScramCredentialRecord():
                self.users.discard((record.mechanism, record.name))

    def partitions(self) -> set[TopicPartition]:
        """Return the partitions of the topics that were not removed."""
        return {
            TopicPartition(self.topics[topic_id], number)
            for topic_id, number in self._partitions
            if topic_id in self.topics
        }


def _check_partition(directory: Path, metadata: _Metadata) -> Iterator[Problem]:
    try:
        name = parse_directory_name(directory.name)
    except CorruptFile:
        yield Problem(str(directory), "only partition directories may be here: move it elsewhere")
        return
    if name.state is DirectoryState.DELETE:
        return
    if name.partition != METADATA_PARTITION:
        yield from _check_topic_id(directory, name.partition, metadata)
    if (directory / LEADER_EPOCH_FILE).exists():
        yield from check_readable(directory / LEADER_EPOCH_FILE, decode_epoch_checkpoint)
    previous_end = 0
    for path in sorted(directory.glob("*.log")):
        found = find_segment_file(path.name)
        if found is None:
            continue
        if found.offset < previous_end:
            yield Problem(str(path), f"it begins at {found.offset}, before the end of the previous segment")
        positions: set[int] = set()
        previous_end, problems = _check_segment(path, found.offset, positions)
        yield from problems
        for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX):
            yield from check_index(path.with_suffix(kind.value), found.offset, positions)
    for path in sorted(directory.glob("*.snapshot")):
        yield from check_readable(path, decode_producer_snapshot)


def _check_topic_id(directory: Path, where: TopicPartition, metadata: _Metadata) -> Iterator[Problem]:
    path = directory / PARTITION_METADATA_FILE
    try:
        topic_id = decode_partition_metadata(path.read_bytes())
    except FileNotFoundError:
        yield Problem(str(directory), f"it has no {PARTITION_METADATA_FILE}, which holds the topic id")
        return
    except _UNREADABLE as error:
        yield Problem(str(path), f"it cannot be read: {error}")
        return
    if metadata.topics.get(topic_id) != where.topic or where not in metadata.partitions():
        yield Problem(str(directory), "the metadata does not have this partition: a start would set it aside")


def _check_segment(path: Path, base_offset: Offset, positions: set[int]) -> tuple[int, list[Problem]]:
    problems = []
    view = mapped(path)
    position, next_offset = 0, int(base_offset)
    try:
        for batch in iter_batches(view):
            if not batch.crc_is_valid():
                problems.append(Problem(str(path), f"the checksum of the batch at {position} does not match"))
            if batch.base_offset < next_offset:
                problems.append(Problem(str(path), f"offsets go back at {position}: {batch.base_offset}"))
            positions.add(position)
            position += batch.size_bytes
            next_offset = batch.last_offset + 1
    except RecordsError as error:
        problems.append(Problem(str(path), f"no batch is at {position}: {error}"))
    else:
        if any(view[position:]):
            problems.append(
                Problem(str(path), f"the {len(view) - position} bytes at the end are not a batch")
            )
    return next_offset, problems


def check_index(path: Path, base_offset: Offset, positions: set[int]) -> Iterator[Problem]:
    """Check an index of a segment whose batches begin at `positions`."""
    if not path.exists():
        if path.suffix != FileKind.TRANSACTION_INDEX.value:
            yield Problem(str(path), "it is missing; the next start will rebuild it")
        return
    content = path.read_bytes()
    entry_bytes = _ENTRY_BYTES.get(path.suffix, 1)
    if len(content) % entry_bytes:
        yield Problem(str(path), f"its {len(content)} bytes are no whole entries of {entry_bytes}")
        return
    try:
        if path.suffix == FileKind.OFFSET_INDEX.value:
            for entry in OffsetIndex(base_offset, used_entries(content, entry_bytes)):
                if entry.position not in positions:
                    yield Problem(str(path), f"it points to {entry.position}, where no batch begins")
                    return
        elif path.suffix == FileKind.TIME_INDEX.value:
            times = [item.timestamp_ms for item in TimeIndex(base_offset, used_entries(content, entry_bytes))]
            if times != sorted(times):
                yield Problem(str(path), "its timestamps are out of order")
        else:
            decode_transaction_index(content, base_offset)
    except _UNREADABLE as error:
        yield Problem(str(path), f"it cannot be read: {error}")


def check_readable(path: Path, decode: Callable[[bytes], object]) -> Iterator[Problem]:
    """Check a file that can be read as a whole or not at all."""
    try:
        decode(path.read_bytes())
    except _UNREADABLE as error:
        yield Problem(str(path), f"it cannot be read: {error}")


def is_locked(path: Path) -> bool:
    """Say whether a server has the directory."""
    try:
        with path.open("rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False

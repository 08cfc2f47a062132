"""The files of a log as `ottla log verify` and `ottla log salvage` see them: sound batches and damage.

Both read only, and work on anything with batches in it: segments, and what was kept aside (`.damaged`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ottla.cli.directories.directory_checks import Problem, check_index, check_readable
from ottla.cli.directories.dump import mapped
from ottla.cli.records.templates import Printable
from ottla.model.ids import Offset, TopicPartition
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.errors import RecordsError
from ottla.storage.damages.damage import SUFFIX
from ottla.storage.damages.examine import DamagedRange, SoundBatch, examine
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.checkpoints import LEADER_EPOCH_FILE, decode_epoch_checkpoint
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES_FILE
from ottla.storage.names import DirectoryState, FileKind, FileState, find_segment_file, parse_directory_name
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot

_INDEXES: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
_LOG_SUFFIX: Final = FileKind.LOG.value


class MappedFile:
    """A file that is only read."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._content = mapped(path)

    def size(self) -> int:
        """Return its length."""
        return len(self._content)

    def read(self, position: int, length: int) -> bytes:
        """Return some of its bytes."""
        return bytes(self._content[position : position + length])


class Finding(NamedTuple):
    """Something to report about a file. `is_damage` is False for what is only worth knowing."""

    path: str
    what: str
    is_damage: bool


def is_kept(path: Path) -> bool:
    """Say whether a file holds batches that were taken out of a log."""
    return path.name.endswith(SUFFIX) and f"{_LOG_SUFFIX}." in path.name


def partition_directories(path: Path) -> list[Path]:
    """Return the directories of partitions that a path stands for: itself, or those of a data directory."""
    if not (path / META_PROPERTIES_FILE).exists():
        return [path]
    return sorted(one for one in path.iterdir() if one.is_dir() and _is_log(one))


def _is_log(path: Path) -> bool:
    try:
        return parse_directory_name(path.name).state is not DirectoryState.DELETE
    except CorruptFile:
        return False


# Verifying


def verify_file(path: Path) -> Iterator[Finding]:
    """Check a segment, or say what is in a file that was kept aside."""
    if is_kept(path):
        yield _describe_kept(path)
        return
    found = find_segment_file(path.name)
    yield from _verify_segment(path, found.offset if found is not None else Offset(0), None, set())


def verify_partition(directory: Path) -> Iterator[Finding]:
    """Check every file of a partition's directory."""
    segments = [
        (found.offset, path)
        for path in directory.glob(f"*{_LOG_SUFFIX}")
        if (found := find_segment_file(path.name)) is not None and found.state is FileState.CURRENT
    ]
    segments.sort()
    for index, (base_offset, path) in enumerate(segments):
        end = segments[index + 1][0] if index + 1 < len(segments) else None
        positions: set[int] = set()
        yield from _verify_segment(path, base_offset, end, positions)
        for kind in _INDEXES:
            yield from _damages(check_index(path.with_suffix(kind.value), base_offset, positions))
    for path in sorted(directory.glob("*.snapshot")):
        yield from _damages(check_readable(path, decode_producer_snapshot))
    epochs = directory / LEADER_EPOCH_FILE
    if epochs.exists():
        yield from _damages(check_readable(epochs, decode_epoch_checkpoint))
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        if is_kept(path):
            yield _describe_kept(path)


def _damages(problems: Iterator[Problem]) -> Iterator[Finding]:
    for problem in problems:
        yield Finding(problem.path, problem.what, is_damage=True)


def _verify_segment(
    path: Path, base_offset: Offset, end: Offset | None, positions: set[int]
) -> Iterator[Finding]:
    file = MappedFile(path)
    for part in examine(file, file.size(), base_offset, end):
        if isinstance(part, SoundBatch):
            positions.add(part.position)
        elif part.end == file.size() and not any(file.read(part.position, part.size_bytes)):
            yield Finding(str(path), f"{part.size_bytes} zero bytes at the end: preallocated space", False)
        else:
            yield Finding(str(path), _words(part), is_damage=True)


def _words(part: DamagedRange) -> str:
    offsets = f"from offset {part.first_offset} on"
    if part.next_offset is not None:
        offsets = f"offsets {part.first_offset} to {part.next_offset - 1}"
    if part.next_offset == part.first_offset:
        offsets = "no offset"
    return f"{part.size_bytes} bytes at position {part.position} are not a valid batch: {offsets}"


def _describe_kept(path: Path) -> Finding:
    file = MappedFile(path)
    sound = [part for part in examine(file, file.size(), 0) if isinstance(part, SoundBatch)]
    offsets = f", offsets {sound[0].base_offset} to {sound[-1].last_offset}" if sound else ""
    what = f"{file.size()} bytes of damaged data, with {len(sound)} valid batches{offsets}"
    return Finding(str(path), what, is_damage=False)


# Salvaging


class Salvage:
    """What can be read of some files. The counts are right when all records were given."""

    def __init__(self) -> None:
        self.records = 0
        self.doubtful_records = 0
        self.unreadable_bytes = 0

    def read(self, path: Path, *, with_doubtful: bool) -> Iterator[Printable]:
        """Give the records of a file, those of damaged batches only if they are wanted."""
        partition = _partition_of(path)
        file = MappedFile(path)
        found = find_segment_file(path.name)
        for part in examine(file, file.size(), 0 if found is None else found.offset):
            content = memoryview(file.read(part.position, part.end - part.position))
            if isinstance(part, SoundBatch):
                for record in _records(content, partition):
                    self.records += 1
                    yield record
                continue
            doubtful = list(_records(content, partition))
            self.doubtful_records += len(doubtful)
            self.unreadable_bytes += part.size_bytes
            if with_doubtful:
                yield from doubtful


def _partition_of(path: Path) -> TopicPartition:
    try:
        return parse_directory_name(path.absolute().parent.name).partition
    except CorruptFile:
        return TopicPartition("", 0)


def _records(content: memoryview, partition: TopicPartition) -> Iterator[Printable]:
    """Give the records of some bytes, as long as they can be read."""
    try:
        for batch in iter_batches(content):
            if not batch.is_control:
                yield from _records_of(batch, partition)
    except (RecordsError, ValueError, OverflowError):
        return


def _records_of(batch: BatchView, partition: TopicPartition) -> Iterator[Printable]:
    for one in iter_batch_records(batch):
        yield Printable(
            partition.topic,
            partition.partition,
            one.offset,
            one.timestamp,
            one.key,
            one.value,
            tuple((name, value) for name, value in one.headers),
        )

"""Checkpoints: small text files of offsets, one entry per line.

    0                    version
    2                    number of entries
    orders 0 1207        topic partition offset; or, in leader-epoch-checkpoint: epoch and start offset
    orders 1 1190

Four of them lie in each log directory (recovery point, log start, high watermark, first dirty offset), and
`leader-epoch-checkpoint` in each partition's directory. They are replaced as a whole, atomically. An empty
file has no entries. Any white space separates fields when read; one blank when written.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.model.ids import LeaderEpoch, Offset, TopicPartition
from ottla.storage.file_errors import CorruptFile

VERSION: Final = 0

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of the first record appended under it."""

    epoch: LeaderEpoch
    start_offset: Offset


def encode_offset_checkpoint(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """Return the bytes of a checkpoint of one offset per partition."""
    return _encode(
        f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items()
    )


def decode_offset_checkpoint(text: bytes) -> dict[TopicPartition, Offset]:
    """Read a checkpoint of one offset per partition."""
    offsets: dict[TopicPartition, Offset] = {}
    for fields in _decode(text, "offset checkpoint", fields_per_line=3):
        topic, partition, offset = fields
        numbers = _numbers("offset checkpoint", [partition, offset])
        offsets[TopicPartition(topic, numbers[0])] = Offset(numbers[1])
    return offsets


def encode_epoch_checkpoint(epochs: Iterable[EpochEntry]) -> bytes:
    """Return the bytes of `leader-epoch-checkpoint`."""
    return _encode(f"{entry.epoch} {entry.start_offset}" for entry in epochs)


def decode_epoch_checkpoint(text: bytes) -> list[EpochEntry]:
    """Read `leader-epoch-checkpoint`, in the order of the file."""
    epochs: list[EpochEntry] = []
    for fields in _decode(text, "leader epoch checkpoint", fields_per_line=2):
        epoch, start_offset = _numbers("leader epoch checkpoint", fields)
        epochs.append(EpochEntry(LeaderEpoch(epoch), Offset(start_offset)))
    return epochs


def _encode(lines: Iterable[str]) -> bytes:
    written = list(lines)
    return "".join([f"{VERSION}\n{len(written)}\n", *[line + "\n" for line in written]]).encode()


def _decode(text: bytes, kind: str, fields_per_line: int) -> list[list[str]]:
    try:
        lines = text.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFile(kind, "not a text") from error
    if not lines:
        return []
    version, *counts = _numbers(kind, lines[:2])
    if version != VERSION:
        raise CorruptFile(kind, f"unknown version {version}")
    entries = [line.split() for line in lines[2:]]
    if counts and counts[0] != len(entries):
        raise CorruptFile(kind, f"{counts[0]} entries announced, {len(entries)} there")
    for fields, line in zip(entries, lines[2:], strict=True):
        if len(fields) != fields_per_line:
            raise CorruptFile(kind, f"malformed line {line!r}")
    return entries


def _numbers(kind: str, fields: list[str]) -> list[int]:
    try:
        return [int(field) for field in fields]
    except ValueError as error:
        raise CorruptFile(kind, f"no number in {fields!r}") from error

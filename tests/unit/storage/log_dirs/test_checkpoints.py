"""Checkpoint files: what Apache Kafka writes, and what it takes for broken."""

import pytest

from ottla.model.ids import LeaderEpoch, Offset, TopicPartition
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.checkpoints import (
    EpochEntry,
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
)

OFFSETS = {TopicPartition("t-zstd", 0): Offset(60), TopicPartition("t-compact-txn", 0): Offset(24)}
OFFSETS_TEXT = b"0\n2\nt-zstd 0 60\nt-compact-txn 0 24\n"


def test_offsets_are_written_and_read() -> None:
    assert encode_offset_checkpoint(OFFSETS) == OFFSETS_TEXT
    assert decode_offset_checkpoint(OFFSETS_TEXT) == OFFSETS


def test_epochs_are_written_and_read_in_order() -> None:
    epochs = [EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(7), Offset(12))]
    assert encode_epoch_checkpoint(epochs) == b"0\n2\n0 0\n7 12\n"
    assert decode_epoch_checkpoint(b"0\n2\n0 0\n7 12\n") == epochs


def test_no_entries_are_a_checkpoint_too() -> None:
    assert encode_offset_checkpoint({}) == b"0\n0\n"
    assert decode_offset_checkpoint(b"0\n0\n") == {}


def test_an_empty_file_has_no_entries() -> None:
    assert decode_offset_checkpoint(b"") == {}
    assert decode_epoch_checkpoint(b"") == []


def test_any_white_space_separates() -> None:
    assert decode_offset_checkpoint(b"0\n1\nt \t 3   9\n") == {TopicPartition("t", 3): 9}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"1\n0\n", "version 1"),
        (b"x\n0\n", "no number"),
        (b"0\nmany\n", "no number"),
        (b"0\n2\nt 0 1\n", "2 entries announced, 1 there"),
        (b"0\n0\nt 0 1\n", "0 entries announced, 1 there"),
        (b"0\n99999999999999\nt 0 1\n", "announced"),
        (b"0\n1\nt 0\n", "malformed line"),
        (b"0\n1\nt 0 1 2\n", "malformed line"),
        (b"0\n1\n\n", "malformed line"),
        (b"0\n1\nt 0 x\n", "no number"),
        (b"\xff\xfe", "not a text"),
    ],
)
def test_a_broken_checkpoint_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason):
        decode_offset_checkpoint(text)


def test_a_broken_epoch_checkpoint_is_refused() -> None:
    with pytest.raises(CorruptFile, match="malformed line"):
        decode_epoch_checkpoint(b"0\n1\n1 2 3\n")

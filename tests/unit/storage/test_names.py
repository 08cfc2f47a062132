"""Names of files and directories below a log directory."""

import pytest

from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.file_errors import CorruptFile
from ottla.storage.names import (
    DirectoryName,
    DirectoryState,
    FileKind,
    FileState,
    directory_name,
    directory_name_with_state,
    find_segment_file,
    holds_whole_topic_name,
    parse_directory_name,
    segment_file_name,
)

UNIQUE = Uuid(bytes(range(16)))


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-3", TopicPartition("orders", 3)),
        ("a-b-c-12", TopicPartition("a-b-c", 12)),
        ("a.b_c-0", TopicPartition("a.b_c", 0)),
        ("x-1-2147483647", TopicPartition("x-1", 2147483647)),
        ("__cluster_metadata-0", TopicPartition("__cluster_metadata", 0)),
    ],
)
def test_a_log_is_named_after_its_partition(name: str, partition: TopicPartition) -> None:
    assert parse_directory_name(name) == DirectoryName(partition, DirectoryState.CURRENT, "")
    assert directory_name(partition) == name


@pytest.mark.parametrize("state", [DirectoryState.DELETE, DirectoryState.FUTURE, DirectoryState.STRAY])
def test_a_directory_not_in_use_carries_its_state(state: DirectoryState) -> None:
    partition = TopicPartition("my.orders-x", 3)
    name = directory_name_with_state(partition, state, UNIQUE)
    assert name == f"my.orders-x-3.000102030405060708090a0b0c0d0e0f{state.value}"
    assert parse_directory_name(name) == DirectoryName(partition, state, UNIQUE.hex())


def test_a_long_topic_name_is_cut_to_what_a_file_system_takes() -> None:
    name = directory_name_with_state(TopicPartition("t" * 249, 10), DirectoryState.DELETE, UNIQUE)
    assert len(name) == 255
    assert parse_directory_name(name).partition.partition == 10


@pytest.mark.parametrize(("length", "partition"), [(213, 0), (214, 0), (212, 10), (213, 10), (249, 0)])
def test_a_topic_name_is_held_whole_if_it_can_be_read_back(length: int, partition: int) -> None:
    key = TopicPartition("t" * length, partition)
    name = directory_name_with_state(key, DirectoryState.FUTURE, UNIQUE)
    is_read_back = parse_directory_name(name).partition == key
    assert holds_whole_topic_name(key, DirectoryState.FUTURE) is is_read_back
    assert is_read_back is (len(f"{key.topic}-{partition}.{UNIQUE.hex()}-future") <= 255)


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        "orders-",
        "-3",
        "orders-x",
        "orders-3-delete",
        "orders-3.-delete",
        "orders--1x",
        "",
        "o-2147483648",
    ],
)
def test_any_other_directory_is_refused(name: str) -> None:
    with pytest.raises(CorruptFile, match="log directory"):
        parse_directory_name(name)


@pytest.mark.parametrize("kind", FileKind)
@pytest.mark.parametrize("state", FileState)
def test_every_file_of_a_segment_has_a_name(kind: FileKind, state: FileState) -> None:
    name = segment_file_name(Offset(170), kind, state)
    assert name == f"00000000000000000170{kind.value}{state.value}"
    assert find_segment_file(name) == (170, kind, state)


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "partition.metadata",
        "00000000000000000170",
        "00000000000000000170.log.tmp",
        "00000000000000000170-0000000005.checkpoint",
        "99999999999999999999.log",
        "x.log",
    ],
)
def test_other_files_are_not_a_segments(name: str) -> None:
    assert find_segment_file(name) is None

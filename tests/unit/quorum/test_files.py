"""The files of the quorum, as bytes. That they are Kafka's is tested on its own files."""

import random

import pytest
from tests.support.deciding import registration

from ottla.metadata.errors import MetadataError
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.batches import decode_batch, encode_batch, encode_control_batch
from ottla.quorum.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from ottla.quorum.random_id import random_id
from ottla.quorum.snapshot_file import (
    FORMAT_SNAPSHOT,
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    find_snapshot_id,
)
from ottla.quorum.snapshots import StoredSnapshot, surplus
from ottla.quorum.voters import DYNAMIC, Endpoint, VoterHistory, voter
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.metadata_records.features import FeatureLevelRecord

QUORUM = VoterHistory(DYNAMIC, (voter(1, Uuid(b"directory-000001"), [Endpoint("C", "localhost", 1)]),))
RECORDS = [FeatureLevelRecord(name=f"feature-{number}", feature_level=1) for number in range(3000)]


def snapshot(*, records: int = 3000) -> bytes:
    return b"".join(encode_snapshot(RECORDS[:records], 30, 4, 123, QUORUM, 456))


def test_a_snapshot_is_read_as_it_was_written() -> None:
    read = decode_snapshot(snapshot(), "s")
    assert list(read.records) == RECORDS
    assert read.quorum == QUORUM
    assert read.last_contained_timestamp_ms == 123


def test_a_large_snapshot_is_written_in_several_batches() -> None:
    pieces = list(encode_snapshot(RECORDS, 30, 4, 123, QUORUM, 456))
    assert len(pieces) == 5, "a header, three times up to 1,024 records, a footer"


@pytest.mark.parametrize("cut", [1, 30, 80, 200, 5000])
def test_a_snapshot_without_its_end_is_refused(cut: int) -> None:
    with pytest.raises(MetadataError, match="not complete"):
        decode_snapshot(snapshot()[:-cut], "s")


def test_a_snapshot_without_its_footer_is_refused() -> None:
    pieces = list(encode_snapshot(RECORDS[:3], 30, 4, 123, QUORUM, 456))
    with pytest.raises(MetadataError, match="not complete"):
        decode_snapshot(b"".join(pieces[:-1]), "s")
    with pytest.raises(MetadataError, match="not complete"):
        decode_snapshot(b"", "s")


def test_a_snapshot_without_its_header_is_refused() -> None:
    pieces = list(encode_snapshot(RECORDS[:3], 30, 4, 123, QUORUM, 456))
    with pytest.raises(MetadataError, match="header"):
        decode_snapshot(b"".join(pieces[1:]), "s")


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_snapshot_is_refused(seed: int) -> None:
    damaged = bytearray(snapshot(records=20))
    chance = random.Random(seed)
    # The base offset and the epoch of a batch lie outside its checksum.
    position = chance.randrange(16, len(damaged))
    damaged[position] ^= 1 << chance.randrange(8)
    try:
        read = decode_snapshot(bytes(damaged), "s")
    except MetadataError:
        return
    assert read == decode_snapshot(snapshot(records=20), "s"), f"replay with seed={seed}"


def test_names_of_snapshots_are_taken_apart() -> None:
    assert find_snapshot_id("00000000000000000575-0000000002.checkpoint") == SnapshotId(Offset(575), 2)
    assert SnapshotId(Offset(575), 2).file_name == "00000000000000000575-0000000002.checkpoint"
    assert find_snapshot_id(FORMAT_SNAPSHOT.file_name) == FORMAT_SNAPSHOT
    for other in ("bootstrap.checkpoint", "00000000000000000575-0000000002.checkpoint.part", "quorum-state"):
        assert find_snapshot_id(other) is None


def test_a_batch_says_where_it_ends() -> None:
    raw = encode_batch([registration(1), RECORDS[0]], 30, Offset(40), 6, 1234)
    batch = decode_batch(BatchView(memoryview(raw)))
    assert batch.records == (registration(1), RECORDS[0])
    assert batch.position == (41, 6, 1234)
    assert not batch.is_control


def test_control_records_are_told_apart() -> None:
    raw = encode_control_batch(QUORUM.records(), Offset(0), 1, 5)
    batch = decode_batch(BatchView(memoryview(raw)))
    assert batch.is_control
    assert VoterHistory().after(batch.records) == QUORUM


@pytest.mark.parametrize(
    "record",
    [
        Record(0, 0, None, None),
        Record(0, 0, None, b""),
        Record(0, 0, None, b"\x01\x63\x00"),
        Record(0, 0, None, b"\x02\x14\x00"),
        Record(0, 0, None, b"\x01\x14\x07"),
        Record(0, 0, None, b"\x01\x0c\x00\x05ab"),
    ],
    ids=["null", "empty", "unknown type", "unknown frame", "unknown version", "cut off"],
)
def test_metadata_that_cannot_be_understood_is_refused(record: Record) -> None:
    raw = build_batch([record])
    with pytest.raises(MetadataError):
        decode_batch(BatchView(memoryview(raw)))


def test_control_records_that_cannot_be_understood_are_refused() -> None:
    for key, value in (
        (b"\0\0\0\x02", None),
        (b"\0\0\0\x63", b"\0\0"),
        (b"\0\0\0\x02", b"\0"),
        (None, b"\0\0"),
    ):
        raw = build_batch([Record(0, 0, key, value)], is_control=True)
        with pytest.raises(MetadataError):
            decode_batch(BatchView(memoryview(raw)))


def test_a_damaged_or_compressed_batch_is_refused() -> None:
    raw = encode_batch(RECORDS[:2], 30, Offset(0), 1, 0)
    raw[-1] ^= 1
    with pytest.raises(MetadataError, match="damaged"):
        decode_batch(BatchView(memoryview(raw)))
    squeezed = build_batch([Record(0, 0, None, b"\x01\x14\x00\x00")], codec=Codec.GZIP)
    with pytest.raises(MetadataError, match="damaged"):
        decode_batch(BatchView(memoryview(squeezed)))


def test_quorum_state_of_a_static_quorum_has_its_old_form() -> None:
    text = encode_quorum_state(QuorumState(leader_id=3, leader_epoch=9), kraft_version=0, voters=[3])
    assert text == (
        b'{"clusterId":"","leaderId":3,"leaderEpoch":9,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":3}],"data_version":0}'
    )
    assert decode_quorum_state(text) == QuorumState(leader_id=3, leader_epoch=9)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b"null", b'{"leaderId":1}', b"\xff\xfe",
     b'{"leaderId":1,"leaderEpoch":-5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
     b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAA","data_version":1}',
     b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":7}'],
)  # fmt: skip
def test_a_quorum_state_that_cannot_be_understood_is_refused(content: bytes) -> None:
    with pytest.raises(MetadataError, match="quorum-state"):
        decode_quorum_state(content)


def stored(*sizes: int) -> list[StoredSnapshot]:
    return [
        StoredSnapshot(SnapshotId(Offset(number * 10), 1), size, number * 100)
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "bytes_max", "age_ms_max", "gone"),
    [
        ((10, 10, 10), 1000, 100_000, 0),
        ((10, 10, 10), 70, 100_000, 1),
        ((10, 10, 10), 60, 100_000, 2),
        ((10, 10, 10), 1, 100_000, 2),
        ((10,), 1, 1, 0),
        ((), 1, 1, 0),
        ((10, 10, 10), -1, 850, 2),
        ((10, 10, 10), -1, 950, 1),
        ((10, 10, 10), -1, -1, 0),
    ],
    ids=[
        "all fit",
        "one too many",
        "two too many",
        "one stays",
        "only one",
        "none",
        "old",
        "older",
        "no bounds",
    ],
)
def test_which_snapshots_are_let_go(
    sizes: tuple[int, ...], bytes_max: int, age_ms_max: int, gone: int
) -> None:
    found = stored(*sizes)
    assert surplus(found, 50, bytes_max, age_ms_max, 1000) == [one.id for one in found[:gone]]


def test_random_ids_are_never_reserved_nor_look_like_options() -> None:
    ids = {random_id(random.Random(seed)) for seed in range(500)}
    assert len(ids) == 500
    assert not any(str(one).startswith("-") for one in ids)

    class Unlucky:
        """Gives what would begin with a dash first."""

        def __init__(self) -> None:
            self.draws = [b"\xf8" + bytes(15), b"\x01" * 16]

        def randbytes(self, n: int) -> bytes:
            return self.draws.pop(0)

    assert not str(random_id(Unlucky())).startswith("-")

"""Metadata that is damaged stops the start with a sentence. Nothing of it is changed."""

import pytest
from tests.support.deciding import new_topic
from tests.support.quorum_node import START_MS, QuorumNode
from tests.unit.metadata.images import have_same_content
from tests.unit.quorum.test_metadata_quorum import FIRST_SEGMENT, new_disk

from ottla.metadata.errors import MetadataError
from ottla.model.ids import Offset
from ottla.quorum.batches import encode_batch
from ottla.quorum.known_directories import read_image, read_known_directories
from ottla.quorum.load import is_blank
from ottla.records.batch import iter_batches
from ottla.storage.errors import DamagedLog
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.wire.metadata_records.no_op import NoOpRecord

_UNCHECKED = (*range(8), *range(12, 16))


def written() -> tuple[SimulatedDisk, QuorumNode]:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    for number in range(3):
        node.create(new_topic(f"t{number}", 1, 1))
    disk.kill()
    return disk, node


def flip(disk: SimulatedDisk, path: str, position: int) -> None:
    content = bytearray(disk.read_file(path))
    content[position] ^= 0x10
    file = disk.open(path)
    file.write(0, (bytes(content),))
    file.sync()


def test_damage_with_sound_batches_behind_it_is_refused_and_left_alone() -> None:
    disk, _ = written()
    content = disk.read_file(FIRST_SEGMENT)
    *batches, last = iter_batches(memoryview(content))
    position = 0
    for batch in batches:
        for at in {0, 8, 16, 17, 21, 57, batch.size_bytes - 1} - set(_UNCHECKED):
            twin = disk.copy()
            flip(twin, FIRST_SEGMENT, position + at)
            damaged = twin.read_file(FIRST_SEGMENT)
            with pytest.raises(DamagedLog, match=f"at position {position} of {FIRST_SEGMENT}") as refused:
                QuorumNode(twin)
            assert f"offsets {batch.base_offset} to {batch.last_offset}" in str(refused.value)
            assert twin.read_file(FIRST_SEGMENT) == damaged
        position += batch.size_bytes
    assert position + last.size_bytes == len(content)


def test_a_torn_end_that_nothing_follows_is_cut_as_before() -> None:
    disk, node = written()
    content = disk.read_file(FIRST_SEGMENT)
    *_, last = iter_batches(memoryview(content))
    flip(disk, FIRST_SEGMENT, len(content) - last.size_bytes + 30)
    image = QuorumNode(disk).image
    assert image.topics.find("t1") is not None
    assert image.topics.find("t2") is None
    assert node.image.topics.find("t2") is not None


def test_a_snapshot_that_is_damaged_anywhere_gives_a_sentence() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    node.create(new_topic("t", 2, 1))
    node.write_snapshot()
    path = f"{node.metadata_path}/{node.image.offset + 1:020d}-0000000001.checkpoint"
    size = len(disk.read_file(path))
    disk.kill()
    refused = 0
    for position in range(size):
        twin = disk.copy()
        flip(twin, path, position)
        sentence = _refusal(twin)
        assert sentence is None or path in sentence
        refused += sentence is not None
    assert refused > size * 0.8


def _refusal(disk: SimulatedDisk) -> str | None:
    try:
        QuorumNode(disk)
    except MetadataError as error:
        return str(error)
    return None


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff\xfe", b"{}", b"[1]", b'{"data_version": 7}'])
def test_a_garbage_quorum_state_gives_a_sentence_with_its_path(content: bytes) -> None:
    disk, node = written()
    path = f"{node.metadata_path}/quorum-state"
    disk.write_file_atomically(path, content)
    with pytest.raises(MetadataError, match=path):
        QuorumNode(disk)


def test_what_is_in_a_metadata_log_can_be_read_without_opening_it() -> None:
    disk, node = written()
    image = read_image(disk, node.metadata_path)
    assert have_same_content(image, node.image)
    assert read_known_directories(disk, "/data", node.node_id) == {node.directory_id}
    assert not is_blank(disk, node.metadata_path)
    assert is_blank(disk, "/nowhere")


def test_a_repaired_batch_may_lie_across_the_end_of_a_snapshot() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    node.write_snapshot()
    before = node.image
    end = node.driver.log_end_offset
    disk.kill()
    content = disk.read_file(FIRST_SEGMENT)
    *_, last = iter_batches(memoryview(content))
    file = disk.open(FIRST_SEGMENT)
    file.truncate(len(content) - last.size_bytes)
    filler = encode_batch([NoOpRecord()] * 9, 20, Offset(last.base_offset), 1, START_MS)
    file.write(len(content) - last.size_bytes, (filler,))
    file.sync()
    assert last.base_offset < end < last.base_offset + 9
    assert have_same_content(QuorumNode(disk).image, before)

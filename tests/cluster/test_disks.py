"""The power of a real file system is cut: what was synced is there, what was not is lost."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.disks import MOUNT_OPTIONS, NodeDisk, image_directory, why_no_power_cuts

BYTES = b"x" * 100_000


@pytest.fixture(params=MOUNT_OPTIONS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeDisk]:
    if (reason := why_no_power_cuts()) is not None:
        pytest.skip(f"no power cuts here: {reason}")
    image = image_directory() / f"ottla-{os.getpid()}-test.image"
    with NodeDisk(tmp_path / "disk", image, request.param) as made:
        yield made


def write(path: Path, data: bytes, *, is_synced: bool) -> None:
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        if is_synced:
            os.fsync(file.fileno())


def test_power_cut_loses_what_was_not_synced_and_nothing_else(disk: NodeDisk, tmp_path: Path) -> None:
    log = tmp_path / "disk" / "t0-0"
    log.mkdir()
    write(log / "synced.log", BYTES, is_synced=True)
    write(log / "half.log", BYTES, is_synced=True)
    write(log / "half.log", BYTES, is_synced=False)
    write(log / "lost.log", BYTES, is_synced=False)
    disk.cut_power()
    lost_bytes = disk.restore()
    assert (log / "synced.log").read_bytes() == BYTES
    assert (log / "half.log").read_bytes().startswith(BYTES)
    assert not (log / "lost.log").exists() or (log / "lost.log").read_bytes() != BYTES
    assert (log / "half.log").read_bytes() != BYTES * 2
    assert lost_bytes > 0


def test_nothing_can_be_written_after_a_power_cut(disk: NodeDisk, tmp_path: Path) -> None:
    with (tmp_path / "disk" / "open").open("wb", buffering=0) as file:
        file.write(BYTES)
        disk.cut_power()
        with pytest.raises(OSError):
            os.fsync(file.fileno())
    disk.restore()
    assert not list((tmp_path / "disk").iterdir())


def test_disk_works_again_after_it_was_restored(disk: NodeDisk, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "disk" / str(number), BYTES, is_synced=True)
        disk.cut_power()
        disk.restore()
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == ["0", "1", "2"]

"""What is in memory is told from what is not."""

import errno
import os
import platform
from pathlib import Path

import pytest

from ottla.runtime.connections.page_cache import is_in_memory

_release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


_can_tell = pytest.mark.skipif(_release < (6, 5), reason="the kernel cannot tell")


@_can_tell
def test_written_pages_are_in_memory_and_those_of_a_hole_are_not(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b") as file:
        file.write(b"x" * 100_000)
        file.truncate(1_000_000)
        file.flush()
        descriptor = file.fileno()
        assert is_in_memory(descriptor, 0, 100_000)
        assert is_in_memory(descriptor, 99_999, 1)
        assert not is_in_memory(descriptor, 0, 200_000)
        assert not is_in_memory(descriptor, 500_000, 1)
        assert not is_in_memory(descriptor, 2_000_000, 10)


@_can_tell
@pytest.mark.parametrize(
    ("error", "is_there"), [(BlockingIOError(), False), (OSError(errno.EOPNOTSUPP, "no such flag"), True)]
)
def test_pages_that_are_still_being_read_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, is_there: bool
) -> None:
    def preadv(_: int, __: tuple[bytearray], position: int, ___: int) -> int:
        assert position == 49_999
        raise error

    monkeypatch.setattr(os, "preadv", preadv)
    with (tmp_path / "log").open("w+b") as file:
        file.write(b"x" * 100_000)
        file.flush()
        assert is_in_memory(file.fileno(), 10_000, 40_000) is is_there


def test_nothing_is_known_of_what_is_no_file() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    os.close(reading)
    assert not is_in_memory(reading, 0, 10)

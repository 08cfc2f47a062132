"""What is in memory is told from what is not."""

import os
import platform
from pathlib import Path

import pytest

from ottla.runtime.page_cache import is_in_memory

_release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


@pytest.mark.skipif(_release < (6, 5), reason="the kernel cannot tell")
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


def test_nothing_is_known_of_what_is_no_file() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    os.close(reading)
    assert not is_in_memory(reading, 0, 10)

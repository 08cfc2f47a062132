"""Arrays of integers, read in one piece or a part at a time, end where they should and are never too long."""

from collections.abc import Generator
from struct import pack
from typing import Any

import pytest

from ottla.wire.errors import MalformedBytes
from ottla.wire.primitives import read_long_integers, read_long_integers_patiently


def at_once(content: bytes, position: int, count: int, *, nullable: bool, compact: bool) -> Any:
    return read_long_integers("int32", content, position, count, len(content), "xs", nullable, compact)


def patiently(content: bytes, position: int, count: int, *, nullable: bool, compact: bool) -> Any:
    reading: Generator[None, None, Any] = read_long_integers_patiently(
        "int32", content, position, count, len(content), "xs", nullable, compact
    )
    while True:
        try:
            next(reading)
        except StopIteration as done:
            return done.value


@pytest.fixture(params=[at_once, patiently], ids=["at once", "patiently"])
def read(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("count", [0, 1, 17, 255, 256, 257, 600])
def test_all_of_them_are_read(read: Any, count: int) -> None:
    content = b"..." + pack(f">{count}i", *range(count)) + b"rest"
    found, position = read(content, 3, count, nullable=False, compact=False)
    assert found == tuple(range(count))
    assert content[position:] == b"rest"


def test_an_empty_array_is_not_null(read: Any) -> None:
    found, _ = read(b"", 0, 0, nullable=False, compact=False)
    assert found == ()


def test_null_is_told_from_empty_and_refused_where_it_may_not_be(read: Any) -> None:
    assert read(b"", 0, -1, nullable=True, compact=False) == (None, 0)
    with pytest.raises(MalformedBytes, match="xs"):
        read(b"", 0, -1, nullable=False, compact=False)


@pytest.mark.parametrize("missing", [1, 3, 4])
def test_more_than_there_are_bytes_is_refused(read: Any, missing: int) -> None:
    with pytest.raises(MalformedBytes):
        read(pack(">20i", *range(20))[:-missing], 0, 20, nullable=False, compact=False)

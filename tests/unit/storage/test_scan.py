"""Walking batches by their headers."""

from tests.unit.storage.logs import NOW_MS, batch, new_disk

from ottla.storage.scan import BatchPlace, scan_batches
from ottla.world.disk import File

LARGE = bytes(batch(value=b"x" * 10_000, base_offset=1, timestamps=[NOW_MS + 3], leader_epoch=7))


def file_of(content: bytes) -> File:
    file = new_disk().open("/data/orders-0/00000000000000000000.log", create=True)
    file.write(0, [content])
    return file


def scanned(content: bytes, position: int = 0) -> list[BatchPlace]:
    return list(scan_batches(file_of(content), position, len(content)))


def legacy(offset: int, magic: int, value: bytes) -> bytes:
    """Make a message of format 0 or 1, whose checksum a scan does not look at."""
    timestamp = NOW_MS.to_bytes(8) if magic else b""
    body = bytes(4) + bytes([magic, 0]) + timestamp + b"\xff\xff\xff\xff" + len(value).to_bytes(4) + value
    return offset.to_bytes(8) + len(body).to_bytes(4) + body


def test_batches_of_any_size_are_found() -> None:
    content = bytes(batch()) + LARGE + bytes(batch(3, base_offset=2))
    first, second, third = scanned(content)
    assert (first.base_offset, second.base_offset, third.base_offset, third.last_offset) == (0, 1, 2, 4)
    assert second == BatchPlace(first.end, len(LARGE), 1, 1, NOW_MS + 3, 7)
    assert third.end == len(content)
    assert scanned(content, first.end) == [second, third]


def test_a_scan_stops_before_what_is_cut_off() -> None:
    content = bytes(batch()) + LARGE
    for missing in (1, 5000, len(LARGE) - 61, len(LARGE) - 20, len(LARGE)):
        assert len(scanned(content[: len(content) - missing])) == 1


def test_a_scan_stops_before_what_is_no_batch() -> None:
    for tail in (bytes(100), b"\xff" * 100, b"\x00" * 16 + b"\x02" + bytes(50)):
        assert len(scanned(bytes(batch()) + tail)) == 1


def test_old_formats_are_walked_too() -> None:
    content = legacy(3, 0, b"a") + legacy(4, 1, b"bc") + bytes(batch(base_offset=5)) + legacy(9, 0, b"")
    places = scanned(content)
    assert [place.last_offset for place in places] == [3, 4, 5, 9]
    assert [place.max_timestamp for place in places] == [-1, NOW_MS, NOW_MS, -1]
    assert places[-1].end == len(content)


def test_an_empty_file_has_no_batches() -> None:
    assert scanned(b"") == []

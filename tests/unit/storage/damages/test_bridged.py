"""What a start has bridged is known to the next ones, until it is healed."""

from tests.unit.storage.logs import PATH, new_disk

from ottla.model.ids import Offset
from ottla.storage.damages.bridged import FILE, read_bridged, write_bridged


def test_ranges_survive_a_power_cut_until_none_is_left() -> None:
    disk = new_disk()
    ranges = ((Offset(4), Offset(5)), (Offset(7), Offset(12)))
    write_bridged(disk, PATH, ranges)
    disk.cut_power()
    assert read_bridged(disk, PATH) == ranges
    write_bridged(disk, PATH, ())
    disk.cut_power()
    assert read_bridged(disk, PATH) == ()
    assert not disk.exists(f"{PATH}/{FILE}")


def test_a_note_that_is_damaged_fails_no_start() -> None:
    disk = new_disk()
    disk.write_file_atomically(f"{PATH}/{FILE}", b"4 5\nx\xff 9\n7 12\n")
    assert read_bridged(disk, PATH) == ((4, 5), (7, 12))

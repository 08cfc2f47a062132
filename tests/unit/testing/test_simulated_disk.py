"""The simulated disk keeps what was synced, loses what was not in every way it says, and is deterministic."""

from collections.abc import Callable
from random import Random

import pytest

from ottla.testing.power_cut import PAGE_BYTES, SECTOR_BYTES
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk, Speed
from ottla.world.disk import Disk, DiskError, Reason

SEEDS = range(300)


def disk_with(content: bytes = b"", path: str = "data/file") -> SimulatedDisk:
    """Return a disk on which one file is durable, name and all."""
    disk = SimulatedDisk()
    disk.make_directory("data")
    disk.sync_directory("")
    handle = disk.open(path, create=True)
    handle.write(0, (content,))
    handle.sync()
    disk.sync_directory("data")
    return disk


def after_power_cuts(
    disk: SimulatedDisk, look: Callable[[SimulatedDisk], object]
) -> dict[object, SimulatedDisk]:
    """Cut the power of many copies of one disk, and return the distinct outcomes."""
    outcomes: dict[object, SimulatedDisk] = {}
    for seed in SEEDS:
        twin = disk.copy()
        twin.cut_power(Random(seed))
        outcomes[look(twin)] = twin
    return outcomes


def content_of(disk: SimulatedDisk) -> bytes:
    return disk.read_file("data/file")


def names_in(disk: SimulatedDisk) -> tuple[str, ...]:
    return tuple(entry.name for entry in disk.list("data"))


def test_it_is_a_disk() -> None:
    disk: Disk = SimulatedDisk()

    disk.make_directory("a/b")
    handle = disk.open("a/b/c", create=True)
    handle.write(0, (b"12", memoryview(b"345")))
    handle.write(7, (b"8",))

    assert handle.size() == 8
    assert handle.read(1, 3) == b"234"
    assert handle.read(4, 100) == b"5\0\x008"
    assert [entry[:3] for entry in disk.list("a")] == [("b", True, 0)]
    assert [entry[:3] for entry in disk.list("a/b")] == [("c", False, 8)]


def test_reading_into_a_buffer_stops_at_the_end_of_the_file() -> None:
    handle = disk_with(b"abcdef").open("data/file")
    buffer = bytearray(4)

    assert handle.read_into(4, memoryview(buffer)) == 2
    assert bytes(buffer) == b"ef\0\0"


def test_missing_files_show_at_the_first_use() -> None:
    disk = disk_with()
    handle = disk.open("data/missing")

    with pytest.raises(DiskError) as caught:
        handle.read(0, 1)

    assert caught.value.reason is Reason.NOT_FOUND
    assert caught.value.path == "data/missing"


def test_a_handle_follows_its_path_not_its_file() -> None:
    disk = disk_with(b"old")
    handle = disk.open("data/file")
    disk.rename("data/file", "data/moved")

    with pytest.raises(DiskError):
        handle.size()
    handle.path = "data/moved"
    assert handle.read(0, 3) == b"old"


def test_a_directory_is_renamed_with_everything_in_it() -> None:
    disk = disk_with(b"x")
    disk.rename("data", "data-delete")

    assert disk.read_file("data-delete/file") == b"x"
    assert not disk.exists("data/file")
    disk.remove_tree("data-delete")
    assert disk.list("") == []


def test_synced_bytes_and_names_survive_every_power_cut() -> None:
    disk = disk_with(b"a" * 10_000)
    disk.open("data/file").write(10_000, (b"b" * 10_000,))

    for content in after_power_cuts(disk, content_of):
        assert isinstance(content, bytes)
        assert content[:10_000] == b"a" * 10_000


def test_unsynced_bytes_may_be_lost_kept_in_part_or_zero() -> None:
    disk = disk_with(b"a" * 100)
    disk.open("data/file").write(100, (b"b" * (3 * PAGE_BYTES),))

    outcomes = after_power_cuts(disk, content_of)

    tails = {content[100:] for content in outcomes if isinstance(content, bytes)}
    assert b"" in tails
    assert b"b" * (3 * PAGE_BYTES) in tails
    assert any(tail.endswith(b"b") and b"\0" in tail for tail in tails), "a page written back out of order"
    assert any(tail.endswith(b"\0") for tail in tails), "a size without its bytes"
    assert any(set(tail) - set(b"b\0") for tail in tails), "garbage in a torn page"


def test_a_page_may_be_written_back_between_two_writes() -> None:
    disk = disk_with()
    handle = disk.open("data/file")
    for index in range(4):
        handle.write(index * 2, (b"xy",))

    sizes = {len(content) for content in after_power_cuts(disk, content_of) if isinstance(content, bytes)}

    assert sizes == {0, 2, 4, 6, 8}


def test_a_torn_page_is_cut_at_sectors_and_leaves_durable_sectors_whole() -> None:
    old, new = b"o" * PAGE_BYTES, b"n" * PAGE_BYTES
    disk = disk_with(old)
    disk.open("data/file").write(0, (new,))

    contents = [content for content in after_power_cuts(disk, content_of) if isinstance(content, bytes)]

    assert len(contents) > 10
    for content in contents:
        sectors = {content[at : at + SECTOR_BYTES] for at in range(0, PAGE_BYTES, SECTOR_BYTES)}
        assert sectors <= {b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES}


def test_an_unsynced_truncation_may_come_back() -> None:
    disk = disk_with(b"a" * 5000)
    disk.open("data/file").truncate(10)

    outcomes = set(after_power_cuts(disk, content_of))

    # The kernel fills the page of the cut with zeros, and may write it before the new size.
    zeroed = b"a" * 10 + bytes(PAGE_BYTES - 10) + b"a" * (5000 - PAGE_BYTES)
    assert {b"a" * 5000, b"a" * 10, zeroed} <= outcomes


def test_bytes_behind_a_truncation_that_survived_never_come_back() -> None:
    disk = disk_with(b"a" * 5000)
    handle = disk.open("data/file")
    handle.truncate(10)
    handle.sync()
    handle.write(6000, (b"b",))

    for content in after_power_cuts(disk, content_of):
        assert isinstance(content, bytes)
        assert content[:10] == b"a" * 10
        assert b"aaaa" not in content[10:]


def test_what_is_written_after_a_lost_truncation_may_mix_with_what_was_there() -> None:
    disk = disk_with(b"a" * (2 * PAGE_BYTES))
    handle = disk.open("data/file")
    handle.truncate(100)
    handle.write(100, (b"b" * 100,))

    mixed = b"a" * 100 + b"b" * 100 + bytes(PAGE_BYTES - 200) + b"a" * PAGE_BYTES
    assert mixed in after_power_cuts(disk, content_of)


def test_a_sync_of_everything_leaves_nothing_to_lose() -> None:
    disk = disk_with(b"old")
    disk.open("data/file").write(0, (b"new",))
    disk.open("data/other", create=True).write(0, (b"more",))

    assert disk.sync_all("data")

    def look(twin: SimulatedDisk) -> object:
        return content_of(twin), twin.read_file("data/other")

    assert set(after_power_cuts(disk, look)) == {(b"new", b"more")}


def test_a_new_name_is_lost_until_its_directory_is_synced() -> None:
    disk = disk_with()
    handle = disk.open("data/new", create=True)
    handle.write(0, (b"precious",))
    handle.sync()

    assert set(after_power_cuts(disk, names_in)) == {("file",), ("file", "new")}

    disk.sync_directory("data")
    assert set(after_power_cuts(disk, lambda twin: twin.read_file("data/new"))) == {b"precious"}


def test_removed_and_renamed_names_may_come_back() -> None:
    disk = disk_with()
    disk.open("data/other", create=True)
    disk.sync_directory("data")
    disk.rename("data/file", "data/renamed")
    disk.remove("data/other")

    assert set(after_power_cuts(disk, names_in)) == {
        ("file", "other"),
        ("file",),
        ("other", "renamed"),
        ("renamed",),
    }


def test_a_replaced_file_is_the_old_or_the_new_one() -> None:
    disk = disk_with(b"old")
    disk.write_file_atomically("data/file", b"new")
    assert set(after_power_cuts(disk, content_of)) == {b"new"}

    handle = disk.open("data/file.tmp", create=True)
    handle.write(0, (b"newer",))
    handle.sync()
    disk.rename("data/file.tmp", "data/file")
    assert set(after_power_cuts(disk, content_of)) == {b"new", b"newer"}


def test_atomic_replacement_is_whole_wherever_power_goes() -> None:
    seen = set()
    for changes in range(1, 8):
        for seed in SEEDS:
            disk = disk_with(b"old")
            disk.cut_power_after(changes)
            try:
                disk.write_file_atomically("data/file", b"new")
                expected = {b"new"}
            except PowerCut:
                expected = {b"old", b"new"}
            disk.cut_power(Random(seed))
            assert content_of(disk) in expected
            seen.add((len(expected), content_of(disk)))
    assert seen == {(1, b"new"), (2, b"old"), (2, b"new")}


def test_after_the_power_cut_nothing_can_be_changed() -> None:
    disk = disk_with(b"old")
    handle = disk.open("data/file")
    disk.cut_power_after(1)

    with pytest.raises(PowerCut):
        handle.write(0, (b"n",))
    with pytest.raises(PowerCut):
        handle.write(1, (b"n",))
    with pytest.raises(PowerCut):
        disk.remove("data/file")

    disk.cut_power(Random(0))
    assert content_of(disk) in (b"old", b"nld")
    with pytest.raises(AssertionError, match="before the machine went down"):
        handle.size()


def test_a_halted_machine_changes_nothing() -> None:
    disk = disk_with(b"old")
    disk.halt()

    with pytest.raises(PowerCut):
        disk.open("data/file").write(0, (b"new",))
    with pytest.raises(PowerCut):
        disk.open("data/other", create=True)

    disk.kill()
    assert content_of(disk) == b"old"


def test_a_sync_that_power_interrupts_promises_nothing() -> None:
    disk = disk_with()
    handle = disk.open("data/file")
    handle.write(0, (b"x",))
    disk.cut_power_after(1)
    with pytest.raises(PowerCut):
        handle.sync()

    outcomes = set(after_power_cuts(disk, content_of))
    assert {b"", b"x"} <= outcomes


def test_a_killed_process_loses_its_lock_but_no_bytes() -> None:
    disk = disk_with()
    disk.lock("data/.lock")
    with pytest.raises(DiskError) as caught:
        disk.lock("data/.lock")
    assert caught.value.reason is Reason.LOCKED
    disk.open("data/file").write(0, (b"unsynced",))

    disk.kill()

    assert content_of(disk) == b"unsynced"
    disk.lock("data/.lock").release()
    disk.lock("data/.lock")


def test_a_failed_sync_forgets_and_a_second_one_succeeds_without_writing() -> None:
    disk = disk_with(b"old")
    handle = disk.open("data/file")
    handle.write(0, (b"new",))
    disk.fail("sync", Reason.IO_ERROR)

    with pytest.raises(DiskError) as caught:
        handle.sync()
    assert caught.value.reason is Reason.IO_ERROR
    handle.sync()

    assert content_of(disk) == b"new"
    assert set(after_power_cuts(disk, content_of)) == {b"old"}


def test_an_observer_meets_no_fault_and_uses_none_up() -> None:
    disk = disk_with(b"abc")
    disk.fail("read", Reason.IO_ERROR)
    handle = disk.open("data/file")
    with disk.observed():
        assert handle.read(0, 1) == b"a"
    with pytest.raises(DiskError):
        handle.read(0, 1)
    assert handle.read(0, 1) == b"a"


def test_a_fault_strikes_by_path_after_some_that_pass() -> None:
    disk = disk_with(b"abc")
    disk.open("data/other", create=True)
    disk.fail("read", Reason.IO_ERROR, path="file", skip=1, times=2)
    handle = disk.open("data/file")

    assert disk.open("data/other").read(0, 1) == b""
    assert handle.read(0, 1) == b"a"
    for _ in range(2):
        with pytest.raises(DiskError):
            handle.read(0, 1)
    assert handle.read(0, 1) == b"a"

    disk.fail("read", Reason.IO_ERROR, times=None)
    for _ in range(5):
        with pytest.raises(DiskError):
            handle.read(0, 1)
    disk.heal()
    assert handle.read(0, 1) == b"a"


def test_a_full_disk_takes_what_fits() -> None:
    disk = disk_with(b"12345")
    disk.capacity_bytes = 8
    handle = disk.open("data/file")

    with pytest.raises(DiskError) as caught:
        handle.write(5, (b"6789",))

    assert caught.value.reason is Reason.NO_SPACE
    assert content_of(disk) == b"12345678"
    assert disk.usage("data") == (8, 0)
    handle.truncate(2)
    handle.write(2, (b"345",))
    assert disk.usage("data") == (8, 3)


def test_a_read_only_disk_refuses_every_change() -> None:
    disk = disk_with(b"abc")
    disk.read_only = True
    handle = disk.open("data/file")

    for change in (
        lambda: handle.write(0, (b"x",)),
        lambda: handle.truncate(0),
        lambda: disk.remove("data/file"),
        lambda: disk.rename("data/file", "data/new"),
        lambda: disk.open("data/new", create=True),
    ):
        with pytest.raises(DiskError) as caught:
            change()
        assert caught.value.reason is Reason.READ_ONLY
    assert handle.read(0, 3) == b"abc"


def test_rot_flips_one_bit_that_stays_flipped() -> None:
    disk = disk_with(bytes(1000))
    position = disk.rot("data/file", Random(1))
    disk.cut_power(Random(1))

    content = content_of(disk)
    assert [at for at, byte in enumerate(content) if byte] == [position]
    assert content[position].bit_count() == 1


def test_a_disk_that_lies_about_syncs_loses_them() -> None:
    disk = disk_with(b"old")
    disk.sync_lies = True
    handle = disk.open("data/file")
    handle.write(0, (b"new",))
    handle.sync()

    assert b"old" in after_power_cuts(disk, content_of)


def test_it_counts_what_is_asked_of_it() -> None:
    disk = SimulatedDisk(speed=Speed(1, 10, 100, 1000).slower(2))
    disk.make_directory("data")
    handle = disk.open("data/file", create=True)
    handle.write(0, (b"12", b"3"))
    handle.sync()
    handle.read(0, 2)
    disk.sync_directory("data")

    counters = disk.counters
    assert (counters.writes, counters.written_bytes, counters.reads, counters.read_bytes) == (1, 3, 1, 2)
    assert (counters.syncs, counters.directory_syncs, counters.name_changes) == (1, 1, 2)
    assert counters.busy_us == 2 * (1 + 10 + 2 * 100 + 2 * 1000)


def test_a_copy_lives_on_its_own() -> None:
    disk = disk_with(b"a")
    disk.open("data/new", create=True)
    disk.open("data/file").write(1, (b"b",))
    twin = disk.copy()

    disk.open("data/file").sync()
    disk.sync_directory("data")

    assert ("file",) in after_power_cuts(twin, names_in)
    assert b"a" in after_power_cuts(twin, content_of)
    assert set(after_power_cuts(disk, lambda after: (names_in(after), content_of(after)))) == {
        (("file", "new"), b"ab")
    }


def test_equal_calls_give_equal_traces_and_other_calls_others() -> None:
    first, second = disk_with(b"a"), disk_with(b"a")
    assert first.trace == second.trace

    second.open("data/file").write(0, (b"b",))
    assert first.trace != second.trace


def test_modification_times_come_from_the_clock_of_the_test() -> None:
    disk = disk_with()
    disk.now_ms = 42
    disk.open("data/file").write(0, (b"x",))
    assert [entry.modified_ms for entry in disk.list("data")] == [42]

    disk.set_modified_ms("data/file", 7)
    assert [entry.modified_ms for entry in disk.list("data")] == [7]

"""Several log directories of one node."""

import contextlib

import pytest
from tests.unit.storage.logs import NOW_MS, append, batch

from ottla.model.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline, UnusableDirectory
from ottla.storage.loading.load import load_log
from ottla.storage.log import Log
from ottla.storage.log_dirs.directories import LogDirectories, open_directories
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.opening import format_directory
from ottla.storage.names import DirectoryState
from ottla.storage.syncing import flush
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk
from ottla.world.disk import DiskError, Reason

CONFIG = LogConfig()
TOPIC_ID = Uuid(b"orders' topic id")
OTHER_ID = Uuid(b"the id of others")
PATHS = ["/a", "/b", "/c"]


def formatted_disk(cluster_id: str = "cluster") -> SimulatedDisk:
    disk = SimulatedDisk(1)
    for path in PATHS:
        directory_id = Uuid(path.encode() * 8)
        format_directory(disk, path, MetaProperties(cluster_id, NodeId(1), directory_id))
    disk.sync_directory("/")
    return disk


def start(disk: SimulatedDisk) -> LogDirectories:
    directories = open_directories([Volume(disk, path) for path in PATHS], NodeId(1))
    for directory in directories.directories:
        for request in directory.plan_load(lambda _: CONFIG, NOW_MS).loads:
            directories.add(directory, load_log(directory.volume, request))
    return directories


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def start_with_move(disk: SimulatedDisk) -> tuple[LogDirectories, Log, Log]:
    """Start with a log in the first directory, and its copy on the way to the second; both are empty."""
    directories = start(disk)
    first, second, _ = directories.directories
    original = first.create_log(partition(0), TOPIC_ID, CONFIG, NOW_MS)
    return (
        directories,
        original,
        second.create_log(partition(0), TOPIC_ID, CONFIG, NOW_MS, future_id=OTHER_ID),
    )


def test_new_logs_go_where_the_fewest_are() -> None:
    directories = start(formatted_disk())
    for number in range(7):
        directories.choose().create_log(partition(number), TOPIC_ID, CONFIG, NOW_MS)
    assert [len(directory.logs) for directory in directories.directories] == [3, 2, 2]


def test_new_logs_go_to_no_cordoned_directory_unless_all_are() -> None:
    directories = start(formatted_disk())
    first, second, third = directories.directories
    directories.cordoned = frozenset((first.path, third.path))
    assert directories.open_to_new == [second]
    assert directories.choose() is second
    directories.cordoned |= {second.path}
    assert directories.open_to_new == [first]


def test_a_log_is_found_wherever_it_is() -> None:
    disk = formatted_disk()
    directories = start(disk)
    for number in range(3):
        append(
            directories.choose().create_log(partition(number), TOPIC_ID, CONFIG, NOW_MS), batch(number + 1)
        )
    directories.release()
    again = start(disk)
    ends = []
    for number in range(3):
        log = again.find(partition(number))
        assert log is not None
        assert again.directory_of(log).logs[partition(number)] is log
        ends.append(log.log_end_offset)
    assert ends == [1, 2, 3]
    assert again.find(partition(3)) is None


def test_a_directory_that_fails_takes_only_its_own_logs_with_it() -> None:
    directories = start(formatted_disk())
    for number in range(3):
        directories.choose().create_log(partition(number), TOPIC_ID, CONFIG, NOW_MS)
    failed = directories.directories[1]
    failed.volume.fail(DiskError("/b/orders-1", "write", Reason.IO_ERROR))
    assert directories.offline_paths == ["/b"]
    assert [directories.find(partition(number)) is None for number in range(3)] == [False, True, False]
    assert directories.choose() is not failed


def test_a_directory_that_fails_at_the_start_leaves_the_others() -> None:
    disk = formatted_disk()
    disk.fail("read", Reason.IO_ERROR, path="/b/meta.properties")
    directories = start(disk)
    assert directories.offline_paths == ["/b"]
    assert [directory.path for directory in directories.online] == ["/a", "/c"]
    assert not directories.was_clean


def test_without_any_directory_that_works_there_is_no_start() -> None:
    disk = formatted_disk()
    for path in PATHS:
        disk.fail("read", Reason.IO_ERROR, path=f"{path}/meta.properties")
    with pytest.raises(UnusableDirectory, match=r"/a.*/b.*/c"):
        start(disk)


def test_when_the_last_directory_fails_nothing_new_can_be_made() -> None:
    directories = start(formatted_disk())
    for directory in directories.directories:
        directory.volume.fail(DiskError(directory.path, "write", Reason.READ_ONLY))
    with pytest.raises(LogDirectoryOffline, match="no log directory is left"):
        directories.choose()


def test_directories_of_different_clusters_are_refused_and_unlocked() -> None:
    disk = formatted_disk()
    foreign = MetaProperties("elsewhere", NodeId(1), Uuid(b"another of these"))
    disk.remove("/c/meta.properties")
    format_directory(disk, "/c", foreign)
    with pytest.raises(UnusableDirectory, match=r"/c.*elsewhere"):
        start(disk)
    for path in PATHS:
        disk.lock(f"{path}/.lock").release()


def test_a_copy_of_a_directory_is_refused() -> None:
    disk = formatted_disk()
    disk.write_file_atomically("/c/meta.properties", disk.read_file("/a/meta.properties"))
    with pytest.raises(UnusableDirectory, match=r"/c.*copy"):
        start(disk)


@pytest.mark.parametrize("fuller", [0, 1])
def test_of_two_logs_of_a_partition_the_one_that_reaches_further_is_kept(fuller: int) -> None:
    disk = formatted_disk()
    directories = start(disk)
    logs = [one.create_log(partition(0), TOPIC_ID, CONFIG, NOW_MS) for one in directories.directories[:2]]
    append(logs[fuller])
    directories.release()
    again = start(disk)
    assert list(again.doubled) == [partition(0)]
    kept, (other,) = again.settle_doubled(partition(0), TOPIC_ID, OTHER_ID)
    assert kept.path == logs[fuller].path
    assert other.path.endswith("-stray")
    assert again.find(partition(0)) is kept


def test_of_two_logs_of_a_partition_the_one_of_the_present_topic_is_kept() -> None:
    disk = formatted_disk()
    directories = start(disk)
    older = directories.directories[0].create_log(partition(0), TOPIC_ID, CONFIG, NOW_MS)
    append(older)
    newer = directories.directories[1].create_log(partition(0), OTHER_ID, CONFIG, NOW_MS)
    directories.release()
    kept, _ = start(disk).settle_doubled(partition(0), OTHER_ID, TOPIC_ID)
    assert kept.path == newer.path


@pytest.mark.parametrize("changes", range(1, 12))
def test_power_that_goes_while_a_log_is_moved_takes_no_record(changes: int) -> None:
    disk = formatted_disk()
    directories, *copies = start_with_move(disk)
    for log in copies:
        append(log)
        log.flush()
    disk.cut_power_after(changes)
    with contextlib.suppress(PowerCut):
        directories.replace_by_future(partition(0), OTHER_ID)
    disk.cut_power()
    again = start(disk)
    for doubled in list(again.doubled):
        again.settle_doubled(doubled, TOPIC_ID, OTHER_ID)
    found = again.find(partition(0))
    assert found is not None
    assert found.log_end_offset == 1


def test_a_log_that_was_moved_serves_though_the_directory_of_the_original_has_failed() -> None:
    disk = formatted_disk()
    directories, original, future = start_with_move(disk)
    append(original)
    append(future)
    disk.fail("rename", Reason.IO_ERROR, "/a/orders-0")
    assert directories.replace_by_future(partition(0), OTHER_ID) is None
    assert directories.find(partition(0)) is future


def test_a_log_that_was_moved_serves_from_its_new_directory() -> None:
    disk = formatted_disk()
    directories, original, future = start_with_move(disk)
    first, second, _ = directories.directories
    append(original)
    append(future)
    append(future)
    first.cleaner_offsets[partition(0)] = Offset(1)
    deletion = directories.replace_by_future(partition(0), OTHER_ID)
    assert (first.cleaner_offsets, second.cleaner_offsets) == ({}, {partition(0): 1})
    assert deletion is not None
    assert deletion.path == f"/a/orders-0.{OTHER_ID.hex()}-delete"
    found = directories.find(partition(0))
    assert found is future
    assert found.path == "/b/orders-0"
    directories.release()
    again = start(disk)
    log = again.find(partition(0))
    assert log is not None
    assert (log.path, log.log_end_offset) == ("/b/orders-0", 2)


@pytest.mark.parametrize("together", [False, True])
def test_a_sync_of_a_log_that_was_deleted_leaves_one_of_the_same_name_alone(together: bool) -> None:
    disk = formatted_disk()
    directories = start(disk)
    first = directories.directories[0]
    old = first.create_log(partition(0), TOPIC_ID, CONFIG, NOW_MS)
    old.assign_leader_epoch(LeaderEpoch(5), Offset(0))
    append(old)
    ticket = old.start_flush()
    assert ticket is not None
    # During the sync the topic is deleted, and made again.
    first.set_aside(old, DirectoryState.DELETE, OTHER_ID)
    new = first.create_log(partition(0), OTHER_ID, CONFIG, NOW_MS)
    new.assign_leader_epoch(LeaderEpoch(0), Offset(0))
    append(new)
    new.flush()
    with contextlib.suppress(DiskError):
        if together:
            flush.run_together([ticket], disk, first.path)
        else:
            flush.run(ticket, disk)
    first.checkpoint_now(CheckpointKind.RECOVERY_POINT)
    directories.release()
    [log] = start(disk).directories[0].logs.values()
    assert log.leader_epochs.entries == [(0, 0)]

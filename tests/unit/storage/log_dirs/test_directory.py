"""A log directory: whose it is, what it holds, and what it remembers over a restart."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from tests.unit.storage.logs import NOW_MS, append, append_transactional, batch, offsets_of

from ottla.model.ids import NodeId, Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline, StorageError, UnusableDirectory
from ottla.storage.loading.load import load_log
from ottla.storage.log import Log
from ottla.storage.log_dirs.checkpoints import decode_offset_checkpoint
from ottla.storage.log_dirs.directory import NO_CLEAN_STOP, DirectoryDeletion, LogDirectory
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.opening import format_directory, open_directory
from ottla.storage.names import DirectoryState
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk
from ottla.world.disk import Reason

ROOT = "/data"
CONFIG = LogConfig(verifies_transactions=False)
TOPIC_ID = Uuid(b"orders' topic id")
OTHER_ID = Uuid(b"the id of others")
META = MetaProperties("cluster", NodeId(1), Uuid(b"this directory's"))
ORDERS = TopicPartition("orders", 0)


def formatted_disk() -> SimulatedDisk:
    disk = SimulatedDisk(1)
    disk.now_ms = NOW_MS
    format_directory(disk, ROOT, META)
    disk.sync_directory("/")
    return disk


def start(disk: SimulatedDisk, config: LogConfig = CONFIG) -> LogDirectory:
    """Open a directory and load all logs of it."""
    directory = open_directory(Volume(disk, ROOT), NodeId(1), "cluster")
    for request in directory.plan_load(lambda _: config, NOW_MS).loads:
        directory.add(load_log(directory.volume, request))
    return directory


def create(directory: LogDirectory, partition: int = 0, config: LogConfig = CONFIG) -> Log:
    return directory.create_log(TopicPartition("orders", partition), TOPIC_ID, config, NOW_MS)


def names_in(disk: SimulatedDisk, path: str = ROOT) -> list[str]:
    return [entry.name for entry in disk.list(path)]


def test_a_directory_that_is_not_formatted_is_refused() -> None:
    disk = SimulatedDisk(1)
    disk.make_directory(ROOT)
    with pytest.raises(UnusableDirectory, match=r"/data.*meta\.properties"):
        open_directory(Volume(disk, ROOT))
    # And is not left locked.
    disk.lock(f"{ROOT}/.lock").release()


def test_a_directory_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnusableDirectory, match="/data"):
        open_directory(Volume(SimulatedDisk(1), ROOT))


def test_a_directory_is_formatted_only_once() -> None:
    with pytest.raises(UnusableDirectory, match="already formatted"):
        format_directory(formatted_disk(), ROOT, META)


def test_a_directory_in_use_is_refused() -> None:
    disk = formatted_disk()
    directory = open_directory(Volume(disk, ROOT))
    with pytest.raises(UnusableDirectory, match=r"/data.*another process"):
        open_directory(Volume(disk, ROOT))
    directory.release()
    open_directory(Volume(disk, ROOT))


def test_a_directory_of_another_node_or_cluster_is_refused() -> None:
    disk = formatted_disk()
    with pytest.raises(UnusableDirectory, match=r"node 1.*node 2"):
        open_directory(Volume(disk, ROOT), NodeId(2))
    with pytest.raises(UnusableDirectory, match=r"cluster cluster.*this is cluster other"):
        open_directory(Volume(disk, ROOT), NodeId(1), "other")
    open_directory(Volume(disk, ROOT), NodeId(1), "cluster")


def test_damaged_meta_properties_stop_the_start() -> None:
    disk = formatted_disk()
    disk.write_file_atomically(f"{ROOT}/meta.properties", b"version=17\n")
    with pytest.raises(UnusableDirectory, match="version"):
        open_directory(Volume(disk, ROOT))


def test_a_disk_that_fails_at_the_start_is_an_offline_directory() -> None:
    disk = formatted_disk()
    disk.fail("read", Reason.IO_ERROR)
    volume = Volume(disk, ROOT)
    with pytest.raises(LogDirectoryOffline, match="/data"):
        open_directory(volume)
    assert volume.error is not None


def test_a_foreign_directory_stops_the_start_and_is_named() -> None:
    disk = formatted_disk()
    disk.make_directory(f"{ROOT}/backup")
    with pytest.raises(UnusableDirectory, match="/data/backup"):
        open_directory(Volume(disk, ROOT))
    assert "backup" in names_in(disk)


def test_foreign_files_and_the_metadata_log_are_passed_over() -> None:
    disk = formatted_disk()
    disk.open(f"{ROOT}/notes.txt", create=True)
    disk.make_directory(f"{ROOT}/__cluster_metadata-0")
    disk.make_directory(f"{ROOT}/remote-log-index-cache")
    assert open_directory(Volume(disk, ROOT)).plan_load(lambda _: CONFIG, NOW_MS).loads == []


def test_a_new_log_says_which_topic_it_is_of() -> None:
    disk = formatted_disk()
    log = create(start(disk))
    assert disk.read_file(f"{log.path}/partition.metadata") == f"version: 0\ntopic_id: {TOPIC_ID}".encode()
    assert log.topic_id == TOPIC_ID


def test_a_new_log_survives_a_power_cut_before_its_first_record() -> None:
    disk = formatted_disk()
    create(start(disk))
    disk.cut_power()
    directory = start(disk)
    assert directory.logs[ORDERS].topic_id == TOPIC_ID


def test_a_log_of_another_topic_of_the_same_name_is_not_taken_over() -> None:
    disk = formatted_disk()
    directory = start(disk)
    create(directory)
    directory.logs.clear()
    with pytest.raises(StorageError, match="set aside"):
        directory.create_log(ORDERS, OTHER_ID, CONFIG, NOW_MS)


def test_a_clean_stop_is_noticed_once() -> None:
    disk = formatted_disk()
    directory = start(disk)
    assert directory.clean_stop_epoch == NO_CLEAN_STOP
    append(create(directory))
    directory.close(broker_epoch=77)
    assert ".kafka_cleanshutdown" in names_in(disk)
    again = open_directory(Volume(disk, ROOT))
    assert (again.was_clean, again.clean_stop_epoch) == (True, 77)
    assert ".kafka_cleanshutdown" in names_in(disk), "nothing was begun, so a start may still be refused"
    again.begin()
    assert ".kafka_cleanshutdown" not in names_in(disk)
    disk.cut_power()
    assert not open_directory(Volume(disk, ROOT)).was_clean


def test_everything_is_there_after_a_clean_stop_and_a_power_cut() -> None:
    disk = formatted_disk()
    directory = start(disk)
    for partition in range(3):
        log = create(directory, partition)
        append(log, batch(3))
        append_transactional(log, 9, 0)
    directory.logs[ORDERS].increment_log_start_offset(Offset(2))
    directory.close()
    disk.cut_power()
    again = start(disk)
    assert again.was_clean
    assert len(again.logs) == 3
    for log in again.logs.values():
        assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (4, 4, 3)
        assert log.recovery_point == 4
    assert again.logs[ORDERS].log_start_offset == 2


def test_after_a_kill_the_high_watermark_is_the_checkpointed_one() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    append(log)
    directory.checkpoint_now(CheckpointKind.HIGH_WATERMARK)
    append(log)
    disk.kill()
    again = start(disk)
    assert (again.logs[ORDERS].high_watermark, again.logs[ORDERS].log_end_offset) == (1, 2)


def test_checkpoints_say_what_there_is_to_say() -> None:
    disk = formatted_disk()
    directory = start(disk)
    first, second = create(directory, 0), create(directory, 1)
    for log in (first, second):
        append(log, batch(5))
    first.flush()
    second.increment_log_start_offset(Offset(3))
    for kind in CheckpointKind:
        directory.checkpoint_now(kind)

    def checkpoint(kind: CheckpointKind) -> dict[tuple[str, int], int]:
        offsets = decode_offset_checkpoint(disk.read_file(f"{ROOT}/{kind.value}"))
        return {(partition.topic, partition.partition): offset for partition, offset in offsets.items()}

    assert checkpoint(CheckpointKind.RECOVERY_POINT) == {("orders", 0): 5, ("orders", 1): 0}
    assert checkpoint(CheckpointKind.LOG_START) == {("orders", 1): 3}
    assert checkpoint(CheckpointKind.HIGH_WATERMARK) == {("orders", 0): 5, ("orders", 1): 5}


def test_a_checkpoint_is_written_beside_and_then_put_in_place() -> None:
    disk = formatted_disk()
    directory = start(disk)
    append(create(directory))
    write = directory.start_checkpoint(CheckpointKind.HIGH_WATERMARK)
    assert write is not None
    write.run(disk)
    assert "replication-offset-checkpoint" not in names_in(disk)
    directory.finish_checkpoint(write)
    assert disk.read_file(f"{ROOT}/replication-offset-checkpoint") == b"0\n1\norders 0 1\n"
    assert directory.start_checkpoint(CheckpointKind.HIGH_WATERMARK) is None


def test_a_checkpoint_on_its_way_does_not_undo_a_newer_one() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    append(log, batch(9))
    log.flush()
    late = directory.start_checkpoint(CheckpointKind.RECOVERY_POINT)
    assert late is not None
    late.run(disk)
    directory.truncate([(log, Offset(0))], NOW_MS)
    directory.finish_checkpoint(late)
    assert disk.read_file(f"{ROOT}/recovery-point-offset-checkpoint") == b"0\n1\norders 0 0\n"


def test_what_a_crash_left_of_a_checkpoint_is_removed() -> None:
    disk = formatted_disk()
    directory = start(disk)
    create(directory)
    write = directory.start_checkpoint(CheckpointKind.HIGH_WATERMARK)
    assert write is not None
    write.run(disk)
    disk.kill()
    start(disk)
    assert not [name for name in names_in(disk) if name.endswith(".staged")]


@pytest.mark.parametrize("content", [b"", b"0\n5\norders 0 1\n", b"rubbish", b"9\n0\n"])
def test_a_damaged_checkpoint_is_taken_for_empty(content: bytes) -> None:
    disk = formatted_disk()
    directory = start(disk)
    append(create(directory), batch(4))
    directory.close()
    for kind in CheckpointKind:
        disk.write_file_atomically(f"{ROOT}/{kind.value}", content)
    again = start(disk)
    assert again.logs[ORDERS].log_end_offset == 4
    assert again.logs[ORDERS].high_watermark == 0


def test_a_truncated_log_that_crashes_does_not_trust_what_replaced_its_end() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    for _ in range(6):
        append(log)
    log.flush()
    directory.checkpoint_now(CheckpointKind.RECOVERY_POINT)
    directory.truncate([(log, Offset(2))], NOW_MS)
    disk.kill()
    (request,) = open_directory(Volume(disk, ROOT)).plan_load(lambda _: CONFIG, NOW_MS).loads
    assert request.recovery_point == 2


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("changes", range(21, 63))
def test_segments_that_are_deleted_together_do_not_come_back_in_part(changes: int, seed: int) -> None:
    config = replace(CONFIG, segment_bytes=len(batch()), retention_ms=1000)
    disk = formatted_disk()
    directory = start(disk, config)
    logs = [create(directory, number, config) for number in range(2)]
    for log in logs:
        append(log)
        log.flush()
    disk.sync_all(ROOT)
    for log in logs:
        for _ in range(3):
            append(log)
            # How far it was synced is written down. A power cut may take that.
            log.flush()
    disk.cut_power_after(changes)
    with suppress(PowerCut):
        for log in logs:
            directory.delete_old_segments(log, 2 * NOW_MS)
    disk.cut_power(Random(seed))
    again = start(disk, config)
    assert [(log.log_end_offset, log.damages) for log in again.logs.values()] == [(4, ())] * 2


def test_a_deleted_log_is_renamed_and_its_directory_removed_later() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    append(log)
    result = log.read(Offset(0), 100)
    before = result.read()
    deletion = directory.set_aside(log, DirectoryState.DELETE, OTHER_ID)
    path = f"{ROOT}/orders-0.{OTHER_ID.hex()}-delete"
    assert deletion == DirectoryDeletion(path, 60_000, tuple(segment.file for segment in log.segments))
    assert not directory.logs
    # Whoever was sending from it goes on.
    assert result.read() == before
    disk.kill()
    again = open_directory(Volume(disk, ROOT))
    plan = again.plan_load(lambda _: CONFIG, NOW_MS)
    assert (plan.loads, plan.deletions) == ([], [deletion._replace(handles=())])
    deletion.run(disk)
    deletion.run(disk)
    assert not [name for name in names_in(disk) if name.startswith("orders")]


def test_a_topic_of_the_same_name_may_be_made_anew() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    append(log)
    directory.set_aside(log, DirectoryState.DELETE, OTHER_ID)
    new = directory.create_log(ORDERS, OTHER_ID, CONFIG, NOW_MS)
    assert (new.log_end_offset, new.topic_id) == (0, OTHER_ID)


def test_a_topic_of_the_same_name_has_its_own_start_and_high_watermark_after_a_kill() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    for _ in range(3):
        append(log)
    log.update_high_watermark(Offset(3))
    log.log_start_offset = Offset(2)
    directory.checkpoint_now(CheckpointKind.HIGH_WATERMARK)
    directory.checkpoint_now(CheckpointKind.LOG_START)
    directory.set_aside(log, DirectoryState.DELETE, OTHER_ID)
    new = directory.create_log(ORDERS, OTHER_ID, CONFIG, NOW_MS)
    append(new)
    append(new)
    new.flush()
    disk.kill()
    again = start(disk).logs[ORDERS]
    assert (again.log_start_offset, again.high_watermark, again.log_end_offset) == (0, 0, 2)


def test_a_stray_log_is_kept_and_not_loaded() -> None:
    disk = formatted_disk()
    directory = start(disk)
    directory.set_aside(create(directory), DirectoryState.STRAY, OTHER_ID)
    disk.kill()
    plan = open_directory(Volume(disk, ROOT)).plan_load(lambda _: CONFIG, NOW_MS)
    assert (plan.loads, plan.deletions) == ([], [])
    assert [name for name in names_in(disk) if name.endswith("-stray")]


def test_a_future_log_is_kept_apart_until_it_takes_over() -> None:
    disk = formatted_disk()
    directory = start(disk)
    future = directory.create_log(ORDERS, TOPIC_ID, CONFIG, NOW_MS, future_id=OTHER_ID)
    append(future)
    assert not directory.logs
    disk.kill()
    again = start(disk)
    assert not again.logs
    assert again.future_logs[ORDERS].log_end_offset == 1
    again.promote_future(ORDERS)
    append(again.logs[ORDERS])
    again.close()
    assert start(disk).logs[ORDERS].log_end_offset == 2


def test_a_failed_directory_is_not_marked_as_stopped_cleanly() -> None:
    disk = formatted_disk()
    directory = start(disk)
    append(create(directory))
    disk.fail("sync", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline):
        directory.close()
    disk.heal()
    assert ".kafka_cleanshutdown" not in names_in(disk)
    again = start(disk)
    assert not again.was_clean
    assert offsets_of(again.logs[ORDERS]) == [(0, 0)]


def test_a_full_disk_at_creation_takes_the_directory_offline_by_name() -> None:
    disk = formatted_disk()
    directory = start(disk)
    disk.fail("write", Reason.NO_SPACE)
    with pytest.raises(LogDirectoryOffline, match=r"orders-0.*no space"):
        create(directory)
    assert directory.is_offline
    with pytest.raises(LogDirectoryOffline):
        directory.start_checkpoint(CheckpointKind.HIGH_WATERMARK)


def test_what_was_cleaned_is_remembered_only_of_what_is_still_there() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    for _ in range(6):
        append(log)
    directory.cleaner_offsets[ORDERS] = Offset(4)
    directory.truncate([(log, Offset(5))], NOW_MS)
    assert directory.cleaner_offsets == {ORDERS: 4}
    directory.truncate([(log, Offset(2))], NOW_MS)
    assert directory.cleaner_offsets == {ORDERS: 2}
    directory.truncate_fully_and_start_at(log, Offset(9), NOW_MS)
    assert directory.cleaner_offsets == {}


def test_after_a_crash_what_came_in_the_place_of_what_was_cut_is_dirty() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    for _ in range(6):
        append(log)
    directory.cleaner_offsets[ORDERS] = Offset(4)
    directory.checkpoint_now(CheckpointKind.CLEANER)
    directory.truncate([(log, Offset(2))], NOW_MS)
    for _ in range(4):
        append(log)
    assert start(disk.copy()).cleaner_offsets == {ORDERS: 2}


def test_a_topic_of_the_same_name_has_not_been_cleaned() -> None:
    disk = formatted_disk()
    directory = start(disk)
    log = create(directory)
    directory.cleaner_offsets[ORDERS] = Offset(4)
    directory.set_aside(log, DirectoryState.DELETE, OTHER_ID)
    directory.close()
    assert start(disk).cleaner_offsets == {}


def test_a_log_is_loaded_with_how_far_it_was_cleaned() -> None:
    disk = formatted_disk()
    directory = start(disk)
    append(create(directory))
    directory.cleaner_offsets[ORDERS] = Offset(1)
    directory.close()
    directory = open_directory(Volume(disk, ROOT), NodeId(1), "cluster")
    (request,) = directory.plan_load(lambda _: CONFIG, NOW_MS).loads
    assert request.cleaned_to == 1

"""Stopping a log directory with many logs."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from tests.unit.runtime.serving import run_serving, serving_loop
from tests.unit.storage.logs import NOW_MS, append

from ottla.model.ids import NodeId, TopicPartition
from ottla.model.uuid import Uuid
from ottla.runtime.closing import ClosingDirectory
from ottla.runtime.disk import RealDisk
from ottla.runtime.sync_workers import SyncWorkers
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline, StorageError
from ottla.storage.loading.load import load_log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.opening import format_directory, open_directory
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.world.disk import Disk, DiskError, Reason

TOPIC_ID = Uuid(b"orders' topic id")
LOGS = 20


def start(disk: Disk, path: str) -> LogDirectory:
    directory = open_directory(Volume(disk, path))
    for request in directory.plan_load(lambda _: LogConfig(), NOW_MS).loads:
        directory.add(load_log(directory.volume, request))
    return directory


def filled_directory(disk: Disk, path: str) -> LogDirectory:
    format_directory(disk, path, MetaProperties("cluster", NodeId(1), Uuid(b"this directory's")))
    directory = start(disk, path)
    for number in range(LOGS):
        append(directory.create_log(TopicPartition("orders", number), TOPIC_ID, LogConfig(), NOW_MS))
    return directory


def close_directory(directory: LogDirectory, broker_epoch: int = -1) -> None:
    """Close a directory on a loop of its own. Raises what it fails with."""

    async def close() -> None:
        loop = serving_loop()
        closed: asyncio.Future[StorageError | DiskError | None] = loop.create_future()
        ClosingDirectory(directory, partial(SyncWorkers, loop), closed.set_result, broker_epoch).begin()
        if (error := await closed) is not None:
            raise error

    run_serving(close())


def test_everything_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    disk = RealDisk(descriptors_max=5)
    close_directory(filled_directory(disk, str(tmp_path)), broker_epoch=4)
    assert len(disk.descriptors) == 0
    again = start(RealDisk(), str(tmp_path))
    assert again.clean_stop_epoch == 4
    assert [log.log_end_offset for log in again.logs.values()] == [1] * LOGS
    assert [log.recovery_point for log in again.logs.values()] == [1] * LOGS
    close_directory(again)


def test_a_sync_that_fails_leaves_no_mark_of_a_clean_stop() -> None:
    disk = SimulatedDisk(1)
    directory = filled_directory(disk, "/data")
    disk.fail("sync", Reason.IO_ERROR, path="orders-7")
    with pytest.raises(LogDirectoryOffline, match="orders-7"):
        close_directory(directory)
    assert directory.is_offline
    disk.heal()
    again = start(disk, "/data")
    assert not again.was_clean
    assert len(again.logs) == LOGS


def test_a_directory_that_is_offline_is_unlocked_and_not_marked() -> None:
    disk = SimulatedDisk(1)
    directory = filled_directory(disk, "/data")
    disk.fail("write", Reason.NO_SPACE)
    with pytest.raises(LogDirectoryOffline):
        append(directory.logs[TopicPartition("orders", 0)])
    with pytest.raises(LogDirectoryOffline):
        close_directory(directory)
    disk.heal()
    assert not start(disk, "/data").was_clean

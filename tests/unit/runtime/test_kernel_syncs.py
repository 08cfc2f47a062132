"""Syncs that the kernel does by itself, and what happens where it does not."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runtime.serving import drain, new_flusher, run_serving
from tests.unit.runtime.test_flusher import real_log
from tests.unit.storage.logs import append

from ottla.runtime import sync_workers
from ottla.runtime.disk import RealFile
from ottla.runtime.kernel_syncs import UNDER_WAY_MAX, KernelSyncs
from ottla.runtime.sync_workers import SyncWorkers
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log

Ended = list[tuple[Any, int]]


def test_all_that_was_begun_is_told_of_once(tmp_path: Path) -> None:
    files = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(UNDER_WAY_MAX)]
    ended: Ended = []

    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop(), ended.extend)
        for round_number in range(3):
            for number, file in enumerate(files):
                os.pwrite(file, b"x" * 100, round_number * 100)
                assert syncs.begin(file, (round_number, number))
            while len(ended) < (round_number + 1) * len(files):
                await asyncio.sleep(0.001)
        syncs.close()

    run_serving(run())
    expected = [((round_number, number), 0) for round_number in range(3) for number in range(len(files))]
    assert sorted(ended) == expected
    for file in files:
        os.close(file)


def test_more_than_there_are_places_for_are_not_taken(tmp_path: Path) -> None:
    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop(), lambda _ended: None)
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        taken = [syncs.begin(file, number) for number in range(UNDER_WAY_MAX + 1)]
        assert taken == [True] * UNDER_WAY_MAX + [False]
        syncs.close()
        os.close(file)

    run_serving(run())


def test_what_cannot_be_synced_is_not_taken() -> None:
    async def run() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop(), lambda _ended: None)
        reader, writer = os.pipe()
        assert not syncs.begin(reader, "a pipe has no disk")
        os.close(reader)
        assert not syncs.begin(reader, "no such descriptor")
        os.close(writer)
        syncs.close()

    run_serving(run())


def sync_and_listen(log: Log) -> tuple[list[LogDirectoryOffline | None], int]:
    """Append twice and have each synced. Return what was told, and how many threads there were at the end."""
    told: list[LogDirectoryOffline | None] = []
    threads = 0

    async def run() -> None:
        nonlocal threads
        flusher = new_flusher()
        for _ in range(2):
            append(log)
            flusher.request(log, log.log_end_offset, told.append)
            await drain(flusher)
        syncs = flusher._syncs
        assert isinstance(syncs, SyncWorkers)
        threads = len(syncs._threads)
        flusher.close()

    run_serving(run())
    return told, threads


def test_an_append_to_a_file_with_a_known_name_needs_no_thread(tmp_path: Path) -> None:
    log = real_log(tmp_path, 0)
    append(log)
    log.flush()
    told, threads = sync_and_listen(log)
    assert told == [None, None]
    assert threads == 0
    assert log.recovery_point == log.log_end_offset == 3
    file = log.active_segment.file
    assert isinstance(file, RealFile)
    assert not file._pins, "or its descriptor would stay open for ever"


def test_without_the_kernel_threads_do_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_loop: object, _done: object) -> KernelSyncs:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(sync_workers, "KernelSyncs", refuse)
    log = real_log(tmp_path, 0)
    append(log)
    log.flush()
    told, threads = sync_and_listen(log)
    assert told == [None, None]
    assert threads > 0
    assert log.recovery_point == log.log_end_offset == 3


def test_an_error_of_the_kernel_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def __init__(self, loop: asyncio.AbstractEventLoop, done: Callable[[Ended], None]) -> None:
            self._loop = loop
            self._done = done

        def begin(self, _descriptor: int, what: object) -> bool:
            self._loop.call_soon(self._done, [(what, errno.EIO)])
            return True

        def close(self) -> None:
            """Nothing is under way."""

    monkeypatch.setattr(sync_workers, "KernelSyncs", Failing)
    log = real_log(tmp_path, 0)
    append(log)
    log.flush()
    told: list[LogDirectoryOffline | None] = []

    async def run() -> None:
        flusher = new_flusher()
        append(log)
        flusher.request(log, log.log_end_offset, told.append)
        await drain(flusher)
        flusher.close()

    run_serving(run())
    (error,) = told
    assert isinstance(error, LogDirectoryOffline)
    assert log.volume.error is not None
    assert log.recovery_point == 1

"""The threads that sync for the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Thread

import pytest
from tests.unit.runtime.serving import drain, new_flusher, run_serving
from tests.unit.storage.logs import append, disk_of, new_log

from ottla.model.ids import TopicPartition
from ottla.runtime.disk import RealDisk
from ottla.runtime.flusher import Flusher
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.volume import Volume
from ottla.world.disk import Reason


def run_with_flusher(use: Callable[[Flusher], Awaitable[None]]) -> None:
    async def run() -> None:
        flusher = new_flusher(threads=2)
        try:
            await use(flusher)
        finally:
            flusher.close()

    run_serving(run())


def real_log(path: Path, number: int) -> Log:
    directory = f"{path}/orders-{number}"
    disk = RealDisk()
    disk.make_directory(directory)
    request = LoadRequest(directory, TopicPartition("orders", number), LogConfig(), now_ms=0)
    return load_log(Volume(disk, str(path)), request)


def test_many_appends_to_many_logs_are_all_told_when_they_are_safe(tmp_path: Path) -> None:
    logs = [real_log(tmp_path, number) for number in range(5)]
    told: list[tuple[int, int]] = []

    async def use(flusher: Flusher) -> None:
        for _ in range(20):
            for number, log in enumerate(logs):
                end = append(log).last_offset + 1

                def safe(error: LogDirectoryOffline | None, number: int = number, end: int = end) -> None:
                    assert error is None
                    assert logs[number].recovery_point >= end
                    told.append((number, end))

                flusher.request(log, log.log_end_offset, safe)
            await asyncio.sleep(0)
        await drain(flusher)

    run_with_flusher(use)
    assert sorted(told) == [(number, end) for number in range(5) for end in range(1, 21)]


def test_who_waits_for_a_failed_sync_hears_of_it() -> None:
    log = new_log()
    append(log)
    disk_of(log).fail("sync", Reason.IO_ERROR)
    told: list[LogDirectoryOffline | None] = []

    async def use(flusher: Flusher) -> None:
        flusher.request(log, log.log_end_offset, told.append)
        await drain(flusher)

    run_with_flusher(use)
    (error,) = told
    assert isinstance(error, LogDirectoryOffline)
    assert log.volume.error is not None
    assert log.recovery_point == 0


def test_a_flush_nobody_waits_for_is_done() -> None:
    log = new_log()
    append(log)

    async def use(flusher: Flusher) -> None:
        flusher.request(log)
        await drain(flusher)
        assert log.recovery_point == 1

    run_with_flusher(use)


def test_what_is_safe_already_is_told_at_once() -> None:
    log = new_log()
    append(log)
    log.flush()
    told: list[LogDirectoryOffline | None] = []

    async def use(flusher: Flusher) -> None:
        flusher.request(log, log.log_end_offset, told.append)
        assert told == [None]

    run_with_flusher(use)


def test_one_who_fails_when_told_keeps_nothing_from_the_others() -> None:
    log = new_log()
    append(log)
    told: list[LogDirectoryOffline | None] = []
    bugs: list[object] = []

    def fail(_: LogDirectoryOffline | None) -> None:
        raise ZeroDivisionError

    async def use(flusher: Flusher) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: bugs.append(context["exception"]))
        for waiter in (told.append, fail, told.append):
            flusher.request(log, log.log_end_offset, waiter)
        await drain(flusher)

    run_with_flusher(use)
    assert told == [None, None]
    assert [type(bug) for bug in bugs] == [ZeroDivisionError]


def test_a_bug_in_a_sync_is_told_and_not_hung_on() -> None:
    log = new_log()
    append(log)
    told: list[LogDirectoryOffline | None] = []

    class Broken:
        path = log.active_segment.file.path

        def sync(self) -> None:
            raise ZeroDivisionError

    log.active_segment.file = Broken()  # type: ignore[assignment]

    async def use(flusher: Flusher) -> None:
        flusher.request(log, log.log_end_offset, told.append)
        await drain(flusher)

    run_with_flusher(use)
    (error,) = told
    assert isinstance(error, LogDirectoryOffline)
    assert "ZeroDivisionError" in str(error)


def test_many_logs_share_one_sync_of_the_file_system(tmp_path: Path) -> None:
    logs = [real_log(tmp_path, number) for number in range(8)]
    disk = logs[0].volume.disk
    for log in logs[1:]:
        log.volume = logs[0].volume
    assert isinstance(disk, RealDisk)
    told: list[int] = []

    async def use() -> None:
        flusher = new_flusher(threads=1, together_min=3)
        try:
            for number, log in enumerate(logs):
                append(log)

                def safe(error: LogDirectoryOffline | None, number: int = number) -> None:
                    assert error is None
                    assert logs[number].recovery_point == 1
                    told.append(number)

                flusher.request(log, log.log_end_offset, safe)
            await drain(flusher)
        finally:
            flusher.close()

    run_serving(use())
    assert sorted(told) == list(range(8))


def test_without_a_thread_the_loop_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    log = new_log()
    append(log)
    told: list[LogDirectoryOffline | None] = []

    async def use(flusher: Flusher) -> None:
        flusher.request(log, log.log_end_offset, told.append)
        await drain(flusher)

    run_with_flusher(use)
    assert told == [None]
    assert log.recovery_point == 1

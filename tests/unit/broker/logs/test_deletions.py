"""What has left a log is removed later: in order, many at a time, and each for itself."""

from collections.abc import Callable
from typing import Any, cast

from ottla.broker.logs.deletions import TOGETHER_MAX, Deletions
from ottla.storage.log_dirs.directory import DirectoryDeletion
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.world.disk import Reason


class Timer:
    """One timer of a loop."""

    def __init__(self, loop: "Loop", timer: tuple[int, Callable[..., None], tuple[Any, ...]]) -> None:
        self._loop = loop
        self._timer = timer

    def cancel(self) -> None:
        if self._timer in self._loop.timers:
            self._loop.timers.remove(self._timer)


class Loop:
    """A loop whose time stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100_000
        self.timers: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []
        self.jobs: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def monotonic_ms(self) -> int:
        return self.now

    def call_later(self, delay: int, callback: Callable[..., None], *arguments: Any) -> "Timer":
        self.timers.append((self.now + delay, callback, arguments))
        return Timer(self, self.timers[-1])

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.jobs.append((work, done))

    def advance(self, ms: int) -> None:
        """Let time pass, and do all that is due then."""
        self.now += ms
        while due := [timer for timer in self.timers if timer[0] <= self.now]:
            for timer in due:
                self.timers.remove(timer)
                timer[1](*timer[2])
            while self.jobs:
                work, done = self.jobs.pop(0)
                work()
                done(None)


def deletions_of(count: int, loop: Loop, delay_ms: int = 1000) -> tuple[Deletions, SimulatedDisk]:
    disk = SimulatedDisk()
    deletions = Deletions(cast(Any, loop), cast(Any, loop), disk, loop.run)
    for number in range(count):
        disk.make_directory(f"/data/{number}")
        deletions.add(DirectoryDeletion(f"/data/{number}", delay_ms))
    return deletions, disk


def left(disk: SimulatedDisk) -> int:
    return len(disk.list("/data"))


def test_nothing_goes_before_its_time() -> None:
    loop = Loop()
    deletions, disk = deletions_of(2, loop)
    loop.advance(900)
    assert (left(disk), deletions.waiting) == (2, 2)
    loop.advance(100)
    assert (left(disk), deletions.waiting) == (0, 0)


def test_many_go_with_few_timers() -> None:
    loop = Loop()
    deletions, disk = deletions_of(3 * TOGETHER_MAX + 1, loop)
    assert len(loop.timers) == 1
    loop.advance(1_000)
    assert (left(disk), deletions.waiting) == (0, 0)


def test_what_comes_later_goes_later() -> None:
    loop = Loop()
    deletions, disk = deletions_of(1, loop)
    loop.advance(500)
    disk.make_directory("/data/later")
    deletions.add(DirectoryDeletion("/data/later", 1000))
    loop.advance(500)
    assert left(disk) == 1
    loop.advance(500)
    assert left(disk) == 0
    disk.make_directory("/data/last")
    deletions.add(DirectoryDeletion("/data/last", 1000))
    loop.advance(1_000)
    assert left(disk) == 0


def test_what_cannot_be_removed_keeps_nothing_else_from_it() -> None:
    loop = Loop()
    deletions, disk = deletions_of(3, loop)
    disk.fail("remove", Reason.IO_ERROR, "/data/1")
    loop.advance(1_000)
    assert [entry.name for entry in disk.list("/data")] == ["1"]
    assert deletions.waiting == 0


def test_nothing_is_begun_after_a_stop() -> None:
    loop = Loop()
    deletions, disk = deletions_of(2, loop)
    deletions.stop()
    disk.make_directory("/data/late")
    deletions.add(DirectoryDeletion("/data/late", 500))
    loop.advance(2_000)
    assert (left(disk), loop.timers) == (3, [])


def test_a_stop_while_a_thread_removes_begins_nothing_after_it() -> None:
    loop = Loop()
    deletions, disk = deletions_of(TOGETHER_MAX + 1, loop)
    loop.now += 1000
    _, start, arguments = loop.timers.pop()
    start(*arguments)
    deletions.stop()
    loop.advance(2_000)
    [(work, done)] = loop.jobs
    work()
    done(None)
    loop.advance(2_000)
    assert (left(disk), loop.timers, deletions.waiting) == (1, [], 1)


class ReopenedFile:
    """A file that a slow reader opens again while it is being removed."""

    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


def test_a_file_that_is_opened_again_while_it_goes_is_closed_in_the_end() -> None:
    loop = Loop()
    deletions, disk = deletions_of(0, loop)
    disk.make_directory("/data/0")
    file = ReopenedFile()
    deletions.add(DirectoryDeletion("/data/0", 1000, (cast(Any, file),)))
    loop.now += 1000
    _, start, arguments = loop.timers.pop()
    start(*arguments)
    assert not file.is_open, "a file that is open keeps its space"
    file.is_open = True
    [(work, done)] = loop.jobs
    work()
    done(None)
    assert not file.is_open

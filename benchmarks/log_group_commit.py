"""What it costs that acknowledged means on disk: group-committed appends beside the same without sync.

One event loop appends batches of 1 KB to 1, 10, 100 or 1,000 partitions in turn, as fast as it can, with at
most so many unacknowledged. An append counts when it is acknowledged. Ways to sync:

    none        acknowledged when written, as Apache Kafka does
    fdatasync   one call for each file, in 4 or 16 threads
    syncfs      one call for the whole file system, in one thread, for all partitions that wait
    flusher     what the broker uses (`ottla.runtime.flusher`)

Blocks alternate. The disk is shared with everybody else on the machine, so the throughput is given as a share
of the block without sync next to it, with latencies beside it.
"""

import asyncio
import ctypes
import os
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from statistics import median
from threading import Thread
from time import perf_counter
from typing import Final, NamedTuple, Protocol

from benchmarks.log_world import Scratch, append, make_batch
from benchmarks.measure import Noise, percentile, verdict

from ottla.model.ids import Offset
from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import Flusher
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop
from ottla.runtime.sync_workers import SyncWorkers
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.storage.syncing.group_commit import GroupCommit, Outcome

GOAL: Final = 0.7
PARTITIONS: Final = (1, 10, 100, 1_000)

_BATCH_BYTES: Final = 1 << 10
_WAITING_MAX: Final = 8_000
_BURST: Final = 50
_BLOCK_SECONDS: Final = 0.6
_BLOCKS: Final = 7

Waiter = Callable[[LogDirectoryOffline | None], None]


class Syncer(Protocol):
    """Whoever tells that an append is safe."""

    def request(self, log: Log, offset: Offset, waiter: Waiter) -> None:
        """Tell `waiter` once everything below `offset` is safe."""

    def close(self) -> None:
        """Stop."""


class NoSync:
    """Safe enough."""

    def request(self, log: Log, offset: Offset, waiter: Waiter) -> None:
        assert log.log_end_offset >= offset
        waiter(None)

    def close(self) -> None:
        """There is nothing to stop."""


class FileSync:
    """Tickets are run in threads, file by file, or all at once by one `syncfs`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int, syncfs_of: str = "") -> None:
        self._loop = loop
        self._commit: GroupCommit[Waiter] = GroupCommit(100_000 if syncfs_of else threads)
        self._queue: SimpleQueue[tuple[Log, FlushTicket] | None] = SimpleQueue()
        self._done: deque[Log] = deque()
        self._threads = [Thread(target=self._run, daemon=True) for _ in range(threads)]
        self._library = ctypes.CDLL(None)
        self._descriptor = os.open(syncfs_of, os.O_RDONLY) if syncfs_of else -1
        for thread in self._threads:
            thread.start()

    def request(self, log: Log, offset: Offset, waiter: Waiter) -> None:
        self._apply(self._commit.request(log, offset, waiter))
        self._apply(self._commit.start())

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _apply(self, outcome: Outcome[Waiter]) -> None:
        for start in outcome.starts:
            self._queue.put(start)
        for waiter in outcome.done:
            waiter(None)

    def _take_results(self) -> None:
        while self._done:
            self._apply(self._commit.finished(self._done.popleft()))
        self._apply(self._commit.start())

    def _run(self) -> None:
        while (start := self._queue.get()) is not None:
            starts = [start]
            if self._descriptor >= 0:
                more = [self._queue.get() for _ in range(self._queue.qsize())]
                starts += [start for start in more if start is not None]
                assert self._library.syncfs(self._descriptor) == 0
            else:
                flush.run(start[1], start[0].volume.disk)
            self._done.extend(log for log, _ in starts)
            self._loop.call_soon_threadsafe(self._take_results)


class Block(NamedTuple):
    """What one block came to."""

    per_second: float
    p50_ms: float
    p99_ms: float


async def _run_block(syncer: Syncer, logs: list[Log]) -> Block:
    batch = make_batch(_BATCH_BYTES)
    latencies: list[float] = []
    room = asyncio.Event()
    sent = 0

    def waiter_of(started: float) -> Waiter:
        def told(error: LogDirectoryOffline | None) -> None:
            assert error is None
            latencies.append(perf_counter() - started)
            room.set()

        return told

    start = perf_counter()
    while (now := perf_counter()) - start < _BLOCK_SECONDS:
        for _ in range(_BURST):
            log = logs[sent % len(logs)]
            append(log, bytearray(batch))
            syncer.request(log, log.log_end_offset, waiter_of(now))
            sent += 1
        await asyncio.sleep(0)
        while sent - len(latencies) > _WAITING_MAX:
            room.clear()
            await room.wait()
    elapsed = perf_counter() - start
    acknowledged = len(latencies)
    while len(latencies) < sent:
        await asyncio.sleep(0.001)
    latencies.sort()
    return Block(acknowledged / elapsed, percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3)


def _make_syncer(kind: str, loop: ServingLoop, path: str) -> Syncer:
    match kind.split():
        case ["none"]:
            return NoSync()
        case ["fdatasync", threads]:
            return FileSync(loop, int(threads))
        case ["syncfs"]:
            return FileSync(loop, 1, path)
        case _:
            return Flusher(LoopScheduler(loop), SystemClock(), partial(SyncWorkers, loop))


KINDS: Final = ("none", "fdatasync 4", "fdatasync 16", "syncfs", "flusher")


class Result(NamedTuple):
    """The blocks of one way to sync with so many partitions, each beside one without sync."""

    partitions: int
    kind: str
    share: float
    per_second: float
    p50_ms: float
    p99_ms: float
    noise: float


def measure(partitions: int, kinds: tuple[str, ...] = KINDS) -> list[Result]:
    """Run all ways to sync in turn, a few times, on the same logs."""
    blocks: dict[str, list[Block]] = {kind: [] for kind in kinds}
    with Scratch() as scratch:
        logs = [scratch.create_log("t", number) for number in range(partitions)]
        noise = Noise()
        for _ in range(_BLOCKS):
            for kind in kinds:
                with asyncio.Runner(loop_factory=ServingLoop) as runner:
                    blocks[kind].append(runner.run(_run_on(kind, logs, str(scratch.path))))
                # What a block without sync leaves in memory is not to weigh on the next one.
                scratch.disk.sync_all(str(scratch.path))
        share_of_others = noise.share()
    return [_result(partitions, kind, blocks, share_of_others) for kind in kinds]


async def _run_on(kind: str, logs: list[Log], path: str) -> Block:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ServingLoop)
    syncer = _make_syncer(kind, loop, path)
    try:
        return await _run_block(syncer, logs)
    finally:
        syncer.close()


def _result(partitions: int, kind: str, blocks: dict[str, list[Block]], noise: float) -> Result:
    ours = blocks[kind]
    shares = [a.per_second / b.per_second for a, b in zip(ours, blocks["none"], strict=True)]
    return Result(
        partitions,
        kind,
        median(shares),
        median([block.per_second for block in ours]),
        median([block.p50_ms for block in ours]),
        median([block.p99_ms for block in ours]),
        noise,
    )


def table(results: list[Result]) -> str:
    """Return results as the rows of a table."""
    rows = ["| partitions | sync | appends/s | of no sync | p50 ms | p99 ms |", "|---|---|---|---|---|---|"]
    rows += [
        f"| {partitions:,} | {kind} | {per_second:,.0f} | {share:.2f} | {p50_ms:.1f} | {p99_ms:.1f} |"
        for partitions, kind, share, per_second, p50_ms, p99_ms, _ in results
    ]
    return "\n".join(rows)


def describe(results: list[Result]) -> str:
    """Say how the way that the broker uses compares with no sync, and with all others."""
    used = next(result for result in results if result.kind == "flusher")
    return (
        f"group commit, {used.partitions:,} partitions: {used.share:.2f} of the throughput without sync, "
        f"p99 {used.p99_ms:.0f} ms; goal >= {GOAL}: {verdict(used.share >= GOAL)}; noise {used.noise:.0%}"
    )


def main() -> None:
    results: list[Result] = []
    for partitions in PARTITIONS:
        found = measure(partitions)
        print(describe(found), flush=True)
        results += found
    print(table(results))


if __name__ == "__main__":
    main()

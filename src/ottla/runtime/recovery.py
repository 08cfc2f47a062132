"""Loading the logs of a start: on the loop, or in several processes when there is much to recover.

Recovery computes: after a crash every batch above the recovery point is read and its checksum verified. One
process would use one core. Workers are processes of their own rather than threads, and load whole logs; what
comes back is a few hundred bytes for each.

After a clean stop a log takes well under a millisecond to load, and starting workers takes longer than
loading a thousand of them, so then they are loaded here. The loop is let go now and then, so that a node
answers its peers while it starts.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ottla.runtime.disk import RealDisk
from ottla.storage.damages.damage import Damage
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.frozen_log import FrozenLog, freeze, thaw
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.loading.recovery import Buffer
from ottla.storage.log import Log
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError
from ottla.world.world import World

_logger: Final = logging.getLogger("ottla.recovery")

# Below this, starting processes takes longer than it saves.
_WORTHWHILE_LOGS: Final = 5_000
_WORTHWHILE_BYTES: Final = 128 << 20
# A worker gets its next share when it is done with one, so that none is left with all the large logs.
_SHARES_PER_WORKER: Final = 8

SLICE_NS: Final = 20_000_000
"""How long the loop may be kept by loading."""


class LoadingLogs:
    """Loads the logs of one directory while the loop of a node runs."""

    def __init__(
        self,
        world: World,
        volume: Volume,
        requests: Sequence[LoadRequest],
        loaded: Callable[[list[Log]], None],
        failed: Callable[[Exception], None],
        processes: int | None = None,
    ) -> None:
        """One of `loaded` and `failed` is called, maybe before `begin` returns.

        `loaded` gets the logs in the order of `requests`. `processes` defaults to one for each core.
        """
        self._world = world
        self._volume = volume
        self._requests = requests
        self._loaded = loaded
        self._failed = failed
        self._processes = processes or os.cpu_count() or 1
        self._buffer = Buffer()
        self._logs: list[Log] = []

    def begin(self) -> None:
        """Begin, on the loop."""
        processes = self._processes
        if processes == 1 or not _is_worthwhile(self._volume, self._requests):
            self._load_some()
            return

        def work() -> None:
            self._logs = _load_in_workers(self._volume, self._requests, processes)

        self._world.workers.run(work, self._end)

    def _load_some(self) -> None:
        clock = self._world.clock
        deadline_ns = clock.monotonic_ns() + SLICE_NS
        try:
            while len(self._logs) < len(self._requests):
                self._logs.append(load_log(self._volume, self._requests[len(self._logs)], self._buffer))
                if clock.monotonic_ns() >= deadline_ns:
                    self._world.scheduler.call_later(0, self._load_some)
                    return
        except Exception as error:
            self._end(error)
        else:
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        if error is not None:
            self._failed(error)
            return
        _tell_damages(self._volume, self._logs)
        self._loaded(self._logs)


def _tell_damages(volume: Volume, logs: Sequence[Log]) -> None:
    volume.tell = partial(tell, volume)
    for log in logs:
        for damage in log.damages:
            tell(volume, damage)


def tell(volume: Volume, damage: Damage) -> None:
    """Say what was found to be damaged, and count it."""
    if not damage.was_synced and not damage.holds_batches:
        _logger.info("%s", damage.words)
        return
    volume.damaged_ranges += 1
    volume.damaged_bytes += damage.size_bytes
    _logger.log(logging.ERROR if damage.was_synced else logging.WARNING, "%s", damage.words)


def _load_in_workers(volume: Volume, requests: Sequence[LoadRequest], workers: int) -> list[Log]:
    # Imported only here: most starts need no processes, and these modules take 2 MB.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    shares = _share(requests, workers * _SHARES_PER_WORKER)
    context = multiprocessing.get_context("spawn")
    logs: dict[str, Log] = {}
    by_path = {request.path: request for request in requests}
    try:
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            for frozen_logs in pool.map(_load_share, [(volume.path, share) for share in shares]):
                for frozen in frozen_logs:
                    logs[frozen.path] = thaw(frozen, volume, by_path[frozen.path].config)
    except DiskError as error:
        raise volume.fail(error) from error
    return [logs[request.path] for request in requests]


def _is_worthwhile(volume: Volume, requests: Sequence[LoadRequest]) -> bool:
    if not isinstance(volume.disk, RealDisk):
        # Other processes do not see it.
        return False
    if len(requests) >= _WORTHWHILE_LOGS:
        return True
    if all(request.is_clean for request in requests):
        return False
    size_bytes = 0
    for request in requests:
        size_bytes += sum([entry.size for entry in volume.disk.list(request.path)])
        if size_bytes >= _WORTHWHILE_BYTES:
            return True
    return False


def _share(requests: Sequence[LoadRequest], count: int) -> list[list[LoadRequest]]:
    """Deal the requests out like cards, so that neighbours, often of one topic and size, are spread."""
    shares = [list(requests[number::count]) for number in range(count)]
    return [share for share in shares if share]


def _load_share(work: tuple[str, list[LoadRequest]]) -> list[FrozenLog]:
    """Load logs in a worker."""
    path, requests = work
    volume = Volume(RealDisk(), path)
    try:
        return list(_load_each(volume, requests))
    except LogDirectoryOffline:
        if volume.error is not None:
            # The directory goes offline in the process that serves it.
            raise volume.error from None
        raise


def _load_each(volume: Volume, requests: Sequence[LoadRequest]) -> Iterator[FrozenLog]:
    buffer = Buffer()
    for request in requests:
        log = load_log(volume, request, buffer)
        yield freeze(log)
        for segment in log.segments:
            segment.file.close()

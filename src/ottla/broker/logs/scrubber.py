"""Looking for damage in the logs while the node serves.

A disk that loses bits says nothing. So every `ottla.scrub.interval.ms` all logs are read once, not faster
than `ottla.scrub.bytes.per.second`, and every checksum is verified. Somebody who meets something strange in a
log has the segment checked at once (`check`), beside the round.

A worker reads. What it finds is reported once, and passed on to be healed.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.logs.logs_node import LogsNode
from ottla.broker.logs.partition import Partition
from ottla.model.ids import Offset
from ottla.storage.damages.damage import Damage
from ottla.storage.damages.gaps import note_checked
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.world.disk import DiskError
from ottla.world.scheduler import Scheduler, Timer
from ottla.world.workers import LongWork, Pause, Steps

if TYPE_CHECKING:
    # Imported where it is needed: the first round comes some time after the start.
    from ottla.storage.damages.checking import CheckedSegment, CheckTask

FIRST_MS_MAX: Final = 600_000
"""How long after a start the first round begins, at the latest."""

Found = Callable[[Partition, tuple[Unhealed, ...]], None]


class _Check(NamedTuple):
    partition: Partition
    # Only the segment that holds this is to be read.
    offset: Offset | None
    is_slow: bool


class _Result(NamedTuple):
    """What a check has found. It grows in the worker."""

    damaged: list[Unhealed]
    checked: "list[CheckedSegment]"


class Scrubber:
    """Reads logs, one after the other."""

    def __init__(self, broker: LogsNode, scheduler: Scheduler, found: Found) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._found = found
        self._urgent: deque[_Check] = deque()
        self._round: Iterator[Partition] = iter(())
        # By whether it is slow: a check of a round may take hours, and somebody waits for an urgent one.
        self._running: dict[bool, LongWork] = {}
        self._timer: Timer | None = None
        self._is_stopping = False
        self.checked_bytes = 0
        self.rounds = 0

    def start(self) -> None:
        """Begin a round after a while, and then now and then."""
        self._begin_round_after(min(FIRST_MS_MAX, self._interval_ms))

    def stop(self) -> None:
        """Begin nothing new, and end what is under way."""
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        for running in self._running.values():
            running.ask_to_end()

    def check(self, partition: Partition, offset: Offset | None) -> None:
        """Have the segment that holds `offset` read soon, or all of a log."""
        check = _Check(partition, offset, is_slow=False)
        if check not in self._urgent:
            self._urgent.append(check)
        self._go_on()

    @property
    def _interval_ms(self) -> int:
        return self._broker.config.ottla_scrub_interval_ms

    def _begin_round_after(self, delay_ms: int) -> None:
        if not self._is_stopping:
            self._timer = self._scheduler.call_later(delay_ms, self._begin_round)

    def _begin_round(self) -> None:
        self._timer = None
        if self._broker.config.ottla_scrub_bytes_per_second == 0:
            self._begin_round_after(self._interval_ms)
            return
        self._round = iter(self._broker.partitions)
        self._go_on()

    # One check after the other

    def _go_on(self) -> None:
        while not self._is_stopping:
            check = self._next()
            if check is None:
                return
            self._begin(check)

    def _next(self) -> _Check | None:
        if self._urgent and False not in self._running:
            return self._urgent.popleft()
        if self._timer is not None or True in self._running:
            return None
        partition = next(self._round, None)
        if partition is not None:
            return _Check(partition, None, is_slow=True)
        self.rounds += 1
        self._begin_round_after(self._interval_ms)
        return None

    def _begin(self, check: _Check) -> None:
        from ottla.storage.damages.checking import plan_check

        partition = check.partition
        log = partition.log
        try:
            log.volume.check()
            task = plan_check(log, check.offset)
        except (LogDirectoryOffline, DiskError):
            return
        if not task.segments:
            return
        result = _Result([], [])
        self._running[check.is_slow] = self._broker.workers.run_steps(
            self._read(log, task, check.is_slow, result), lambda: self._ended(check, log, task, result)
        )

    def _read(self, log: Log, task: "CheckTask", is_slow: bool, result: "_Result") -> Steps:
        from ottla.storage.damages.checking import check_segment

        disk = log.volume.disk
        for segment in task.segments:
            try:
                for step in check_segment(disk, segment, task.epochs):
                    if isinstance(step, int):
                        self.checked_bytes += step
                        yield Pause(self._delay_ms(step) if is_slow else 0)
                    else:
                        result.damaged.extend(step)
                        result.checked.append(segment)
            except DiskError:
                # It was deleted or cleaned meanwhile. A disk that fails shows by itself.
                continue

    def _delay_ms(self, size_bytes: int) -> int:
        return size_bytes * 1000 // max(1, self._broker.config.ottla_scrub_bytes_per_second)

    def _ended(self, check: _Check, log: Log, task: "CheckTask", result: "_Result") -> None:
        from ottla.storage.damages.checking import is_same_segment

        del self._running[check.is_slow]
        partition = check.partition
        is_the_same = partition.log is log and log.truncations == task.truncations
        # Nobody heals a replica that has gone meanwhile: its files may be gone, too.
        if is_the_same and partition in self._broker.partitions:
            found = [one for one in result.damaged if is_same_segment(log, one, task.segments)]
            for one in found:
                _tell(log, one)
            if found:
                self._found(partition, tuple(found))
            if check.offset is not None:
                note_checked(log, result.checked)
        self._scheduler.call_soon(self._go_on)


def _tell(log: Log, found: Unhealed) -> None:
    """Tell of damage, and count it. Once."""
    base_offset, position, end, first_offset, next_offset, *_ = found
    path = next(one.file.path for one in log.segments if one.base_offset == base_offset)
    damage = Damage(
        log.topic_partition, path, position, end - position, first_offset, next_offset, "", was_synced=True
    )
    if damage not in log.damages:
        log.damages = (*log.damages, damage)
        log.volume.tell(damage)

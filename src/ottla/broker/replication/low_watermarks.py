"""DeleteRecords requests that wait until all living replicas have given up the head of their logs."""

from typing import Final, NamedTuple

from ottla.broker.deferred import Deferred
from ottla.broker.logs.partition import Partition
from ottla.wire.error_code import ErrorCode
from ottla.world.scheduler import Scheduler, Timer


class LowWatermark(NamedTuple):
    """The smallest log start offset of all living replicas, or why it is not known to be enough."""

    offset: int
    error_code: ErrorCode = ErrorCode.NONE


class _Waiting(NamedTuple):
    partition: Partition
    offset: int
    answer: Deferred[LowWatermark]


_UNKNOWN: Final = -1


class LowWatermarks:
    """Those who wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: dict[_Waiting, Timer] = {}

    def when_reached(self, partition: Partition, offset: int, timeout_ms: int) -> Deferred[LowWatermark]:
        """Return the low watermark once it is at least `offset`."""
        waiting = _Waiting(partition, offset, Deferred())
        if not self._settle(waiting):
            timer = self._scheduler.call_later(timeout_ms, self._time_is_over, waiting)
            self._waiting[waiting] = timer
        return waiting.answer

    def moved(self, partition: Partition) -> None:
        """Look again: a follower has moved its log start, a broker is gone, or the leader is another one."""
        if not self._waiting:
            return
        for waiting, timer in list(self._waiting.items()):
            if waiting.partition is partition and self._settle(waiting):
                del self._waiting[waiting]
                timer.cancel()

    def _settle(self, waiting: _Waiting) -> bool:
        partition = waiting.partition
        low = _low_watermark(partition)
        if not partition.is_leader:
            waiting.answer.resolve(LowWatermark(_UNKNOWN, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif low >= waiting.offset:
            waiting.answer.resolve(LowWatermark(low))
        else:
            return False
        return True

    def _time_is_over(self, waiting: _Waiting) -> None:
        del self._waiting[waiting]
        low = _low_watermark(waiting.partition)
        waiting.answer.resolve(LowWatermark(low, ErrorCode.REQUEST_TIMED_OUT))


def _low_watermark(partition: Partition) -> int:
    leading = partition.leading
    return partition.log.log_start_offset if leading is None else leading.low_watermark()

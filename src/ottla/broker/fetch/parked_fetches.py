"""Fetches that wait: for enough bytes, for a change of what they read, or for their time to be over.

An append does not look at the fetches it might complete; it only subtracts its bytes from what each still
lacks, and remembers those that lack nothing more. They are tried at the end of the same turn of the event
loop. So many appends of one turn make one answer, and a producer does not wait for its consumers.

In a partition with several replicas an append is for the followers. Consumers wait for the high watermark.
"""

from collections.abc import Callable, Sequence

from ottla.broker.logs.parked_fetch import FetchAttempt, ParkedFetch
from ottla.broker.logs.partition import Partition
from ottla.world.scheduler import Scheduler


class ParkedFetches:
    """All fetches of a broker that wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._due: list[ParkedFetch] = []
        self._parked: dict[ParkedFetch, None] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(
        self,
        attempt: FetchAttempt,
        partitions: Sequence[Partition],
        missing_bytes: int,
        wait_ms: int,
        reads_to_end: bool = False,
    ) -> Callable[[], None]:
        """Let a fetch wait. Returns what ends the wait without an answer, for when its client is gone."""
        parked = ParkedFetch(attempt, partitions, missing_bytes)
        if reads_to_end:
            for partition in partitions:
                here = partition.parked if partition.leading is None else partition.parked_replicas
                here[parked] = None
        else:
            for partition in partitions:
                partition.parked[parked] = None
        self._parked[parked] = None
        parked.timer = self._scheduler.call_later(wait_ms, self._time_is_over, parked)
        return lambda: self._unpark(parked)

    def appended(self, partition: Partition, size_bytes: int) -> None:
        """Tell that a partition has more bytes to read. Called only where `partition.parked` is not empty."""
        for parked in partition.parked:
            parked.missing_bytes -= size_bytes
            if parked.missing_bytes <= 0 and not parked.is_due:
                self._make_due(parked)

    def appended_for_replicas(self, partition: Partition, size_bytes: int) -> None:
        """Tell that followers can read more. Called only where `partition.parked_replicas` is not empty."""
        for parked in partition.parked_replicas:
            parked.missing_bytes -= size_bytes
            if parked.missing_bytes <= 0 and not parked.is_due:
                self._make_due(parked)

    def high_watermark_moved(self, partition: Partition) -> None:
        """Tell that consumers can read more. Followers have no use for it before there are records."""
        for parked in partition.parked:
            if not parked.is_due:
                self._make_due(parked)

    def changed(self, partition: Partition) -> None:
        """Note that a partition has another leader, has moved or is gone: fetches that wait look again."""
        for parked in (*partition.parked, *partition.parked_replicas):
            if not parked.is_due:
                self._make_due(parked)

    def give_up_all(self) -> None:
        """Answer everyone with what there is: the broker stops."""
        for parked in list(self._parked):
            self._time_is_over(parked)

    def _make_due(self, parked: ParkedFetch) -> None:
        parked.is_due = True
        if not self._due:
            self._scheduler.call_soon(self._retry_due)
        self._due.append(parked)

    def _retry_due(self) -> None:
        due, self._due = self._due, []
        for parked in due:
            parked.is_due = False
            if parked not in self._parked:
                continue
            parked.missing_bytes = parked.attempt.retry()
            if parked.missing_bytes <= 0:
                self._unpark(parked)

    def _time_is_over(self, parked: ParkedFetch) -> None:
        self._unpark(parked)
        parked.attempt.give_up()

    def _unpark(self, parked: ParkedFetch) -> None:
        self._parked.pop(parked, None)
        for partition in parked.partitions:
            partition.parked.pop(parked, None)
            if partition.parked_replicas:
                partition.parked_replicas.pop(parked, None)
        if parked.timer is not None:
            parked.timer.cancel()
            parked.timer = None

"""Batches that have to be opened and are large: a thread opens them, and they are appended in their order.

A topic may want records under another codec, or look at each of them. For a large batch that takes seconds: a
minute for 35 MiB under zstd's highest level. So it is done in a thread. Meanwhile all that comes for the same
partition waits behind it, whoever sends it, and other partitions go on. Everything else about an append is
done on the loop when its turn comes: whether this node still leads, the producer's sequence, the offsets.
"""

from collections import deque
from typing import TYPE_CHECKING

from ottla.broker.deferred import Deferred
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.appending.validation import ValidBatch, takes_long_to_open, validate_client_batch
from ottla.storage.appending.verification import Verification
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.logs.partition import Partition
    from ottla.runtime.turns import Task, Turns
    from ottla.world.clock import Clock
    from ottla.world.workers import Run


class Opening:
    """A batch that waits for its turn, and whoever waits for it."""

    __slots__ = ("appended", "records", "task", "valid", "verification")

    def __init__(self, records: memoryview, verification: Verification | None, task: "Task") -> None:
        # A copy: the request lies where the next one is received.
        self.records = memoryview(bytearray(records))
        self.verification = verification
        self.task = task
        self.valid: ValidBatch | None = None
        self.appended: Deferred[AppendInfo] = Deferred()
        task.hold(len(records))


class Openings:
    """All batches of a broker that are opened or wait behind such a one."""

    def __init__(self, run: "Run", turns: "Turns", clock: "Clock") -> None:
        self._run = run
        self._turns = turns
        self._clock = clock
        self._queues: dict[Partition, deque[Opening]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def append(
        self, partition: "Partition", records: memoryview, verification: Verification | None
    ) -> Deferred[AppendInfo]:
        """Append a batch behind all that wait for the partition. Fails with what an append would raise."""
        opening = Opening(records, verification, self._turns.new_task(_never))
        queue = self._queues.setdefault(partition, deque())
        queue.append(opening)
        if len(queue) == 1:
            partition.set_opening(True)
            self._open_next(partition)
        return opening.appended

    def _open_next(self, partition: "Partition") -> None:
        opening, config, now_ms = self._queues[partition][0], partition.log.config, self._clock.now_ms()
        if not takes_long_to_open(opening.records):
            self._append_next(partition, None)
            return

        def work() -> None:
            opening.valid = validate_client_batch(opening.records, config, now_ms)

        self._run(work, lambda error: self._append_next(partition, error))

    def _append_next(self, partition: "Partition", error: Exception | None) -> None:
        queue = self._queues[partition]
        opening = queue.popleft()
        opening.task.release()
        info: AppendInfo | None = None
        if error is None:
            try:
                info = self._append(partition, opening)
            except (AppendError, LogDirectoryOffline) as raised:
                error = raised
        # The next one begins before anybody is told: a listener may bring another batch.
        if queue:
            self._open_next(partition)
        else:
            del self._queues[partition]
            partition.set_opening(False)
        if error is not None:
            opening.appended.fail(error)
        else:
            assert info is not None, "what was not refused was appended"
            opening.appended.resolve(info)

    def _append(self, partition: "Partition", opening: Opening) -> AppendInfo:
        if not partition.is_leader:
            raise AppendError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader changed while the batch waited")
        return partition.append(
            opening.records, self._clock.now_ms(), verification=opening.verification, valid=opening.valid
        )


def _never(error: Exception) -> None:
    raise AssertionError("what is only counted cannot fail") from error

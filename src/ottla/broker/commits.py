"""Answers that wait until what they acknowledge is on disk.

The syncs themselves are shared by all who wait (see `ottla.storage.group_commit`). Here a produce request
that touched several logs waits for all of them. A timeout is looked for once a second, so that no request
needs a timer of its own; a sync takes about a millisecond, and who waits for a second has other troubles.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ottla.broker.deferred import Deferred
from ottla.broker.handlers import EncodedResponse
from ottla.runtime.flusher import Flusher
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.world.clock import Clock

Answer: TypeAlias = ProduceResponse | EncodedResponse


class _Wait:
    """One produce request that waits for its logs. Called by the flusher once for each of them."""

    __slots__ = ("_encoded", "_failed", "_logs", "_owner", "_respond", "_waiting", "answer", "deadline_ms")

    def __init__(
        self,
        owner: "Commits",
        logs: Sequence[Log],
        waiting: int,
        respond: Callable[[], ProduceResponse],
        encoded: EncodedResponse | None,
        deadline_ms: int,
    ) -> None:
        self._owner = owner
        self._logs = logs
        self._respond = respond
        self._encoded = encoded
        self._waiting = waiting
        self._failed: set[Log] = set()
        self.answer: Deferred[Answer] = Deferred()
        self.deadline_ms = deadline_ms

    def __call__(self, error: LogDirectoryOffline | None) -> None:
        """Take note that one log is safe, or never will be."""
        self._waiting -= 1
        if error is not None:
            # The error tells of a directory that failed, or of a log that was deleted meanwhile; if of
            # neither, a log was moved meanwhile, and it is not known which of them is not safe.
            failed = [log for log in self._logs if error.path in (log.volume.path, log.path)]
            self._failed.update(failed or self._logs)
        if self._waiting == 0 and not self.answer.is_done:
            self._owner.pending.pop(self, None)
            if self._failed:
                self._resolve_with(self._failed, ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                self.answer.resolve(self._encoded or self._respond())

    def time_is_over(self) -> None:
        """Answer that the writes may or may not have happened."""
        unsafe = {log for log in self._logs if log.recovery_point < log.log_end_offset}
        self._resolve_with(unsafe, ErrorCode.REQUEST_TIMED_OUT)

    def _resolve_with(self, failed: set[Log], error_code: ErrorCode) -> None:
        self.answer.resolve(_with_errors(self._respond(), self._logs, failed, error_code))


class Commits:
    """The produce requests that wait for syncs."""

    def __init__(self, flusher: Flusher, clock: Clock) -> None:
        self._flusher = flusher
        self._clock = clock
        self.pending: dict[_Wait, None] = {}

    def wait(
        self,
        logs: Sequence[Log],
        unsynced: Sequence[Log],
        timeout_ms: int,
        respond: Callable[[], ProduceResponse],
        encoded: EncodedResponse | None = None,
    ) -> Deferred[Answer]:
        """Return the answer for when everything that was appended to the `unsynced` logs is on disk.

        `respond` makes it, and `logs` are those of all accepted partitions in its order. Who has the answer
        `encoded` already saves making it, unless something goes wrong.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        wait = _Wait(self, logs, len(unsynced), respond, encoded, deadline_ms)
        self.pending[wait] = None
        for log in unsynced:
            self._flusher.request(log, log.log_end_offset, wait)
        return wait.answer

    def sweep(self) -> None:
        """Answer those who have waited for too long."""
        now_ms = self._clock.monotonic_ms()
        for wait in [wait for wait in self.pending if wait.deadline_ms < now_ms]:
            del self.pending[wait]
            wait.time_is_over()


def _with_errors(
    response: ProduceResponse, logs: Sequence[Log], failed: set[Log], error_code: ErrorCode
) -> ProduceResponse:
    """Replace the answers of partitions whose log failed."""
    in_order = iter(logs)

    def mend(answer: PartitionProduceResponse) -> PartitionProduceResponse:
        if answer.error_code is not ErrorCode.NONE or next(in_order) not in failed:
            return answer
        return PartitionProduceResponse(
            partition_index=answer.partition_index, error_code=error_code, base_offset=-1
        )

    return replace(
        response,
        responses=tuple(
            replace(topic, partition_responses=tuple(mend(answer) for answer in topic.partition_responses))
            for topic in response.responses
        ),
    )

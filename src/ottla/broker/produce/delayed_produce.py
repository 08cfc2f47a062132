"""Produce requests that wait until what they acknowledge is committed.

What that means is decided by `ottla.storage.syncing.committed`. Here a request that wrote to several
partitions waits for all of them. A timeout is looked for once a second, so that no request needs a timer of
its own: a sync takes about a millisecond, and a request that waits for a second is in trouble anyway.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from ottla.broker.deferred import Deferred
from ottla.broker.logs.partition import Partition
from ottla.broker.serving.replies import EncodedResponse
from ottla.model.ids import Offset
from ottla.storage.errors import LeadershipLost, LogDirectoryOffline
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.world.clock import Clock

Answer: TypeAlias = ProduceResponse | EncodedResponse


class DelayedProduce:
    """One produce request that waits for its partitions."""

    __slots__ = (
        "_encoded",
        "_errors",
        "_owner",
        "_partitions",
        "_required",
        "_respond",
        "_waiting",
        "answer",
        "deadline_ms",
    )

    def __init__(
        self,
        owner: "DelayedProduces",
        partitions: Sequence[Partition],
        respond: Callable[[], ProduceResponse],
        encoded: EncodedResponse | None,
        deadline_ms: int,
    ) -> None:
        self._owner = owner
        self._partitions = partitions
        # For each partition, the offset below which all has to be committed.
        self._required: Sequence[Offset] = (
            (partitions[0].log.log_end_offset,)
            if len(partitions) == 1
            else [partition.log.log_end_offset for partition in partitions]
        )
        self._respond = respond
        self._encoded = encoded
        self._waiting = len(partitions)
        self._errors: dict[Partition, ErrorCode] | None = None
        self.answer: Deferred[Answer] = Deferred()
        self.deadline_ms = deadline_ms

    def start(self) -> None:
        """Wait for the partitions, each of which may be settled at once."""
        if self._waiting == 1:
            self._partitions[0].log.when_committed(self._required[0], self._only_one_settled)
            return
        for partition, required in zip(self._partitions, self._required, strict=True):
            partition.log.when_committed(required, partial(self._settled, partition))

    def _only_one_settled(self, error: LogDirectoryOffline | LeadershipLost | None) -> None:
        self._settled(self._partitions[0], error)

    def _settled(self, partition: Partition, error: LogDirectoryOffline | LeadershipLost | None) -> None:
        """Take note that what was written to a partition is committed, or that this node will never know."""
        self._waiting -= 1
        if error is not None:
            self._refuse(partition, error.error_code)
        elif not partition.had_enough_replicas:
            self._refuse(partition, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        if self._waiting == 0 and not self.answer.is_done:
            self._owner.pending.pop(self, None)
            if self._errors:
                self._resolve_with_errors()
            else:
                self.answer.resolve(self._encoded or self._respond())

    def time_is_over(self) -> None:
        """Answer that the writes may or may not have happened."""
        for partition, required in zip(self._partitions, self._required, strict=True):
            if partition not in (self._errors or ()) and not partition.log.is_committed(required):
                self._refuse(partition, ErrorCode.REQUEST_TIMED_OUT)
        self._resolve_with_errors()

    def _refuse(self, partition: Partition, error_code: ErrorCode) -> None:
        if self._errors is None:
            self._errors = {}
        self._errors[partition] = error_code

    def _resolve_with_errors(self) -> None:
        self.answer.resolve(_with_errors(self._respond(), self._partitions, self._errors or {}))


class DelayedProduces:
    """The produce requests that wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.pending: dict[DelayedProduce, None] = {}

    def wait(
        self,
        partitions: Sequence[Partition],
        timeout_ms: int,
        respond: Callable[[], ProduceResponse],
        encoded: EncodedResponse | None = None,
    ) -> Deferred[Answer]:
        """Return the answer for when everything that was appended to `partitions` is committed.

        `respond` makes it, and `partitions` are those that were written to, in its order. A caller that has
        the answer `encoded` already saves making it, unless something goes wrong.
        """
        delayed = DelayedProduce(self, partitions, respond, encoded, self._clock.monotonic_ms() + timeout_ms)
        self.pending[delayed] = None
        delayed.start()
        return delayed.answer

    def sweep(self) -> None:
        """Answer those that have waited for too long."""
        now_ms = self._clock.monotonic_ms()
        for delayed in [delayed for delayed in self.pending if delayed.deadline_ms < now_ms]:
            del self.pending[delayed]
            delayed.time_is_over()


def _with_errors(
    response: ProduceResponse, partitions: Sequence[Partition], errors: dict[Partition, ErrorCode]
) -> ProduceResponse:
    """Replace the answers of partitions with errors. `partitions` are those that accepted their batch."""
    accepted = iter(partitions)

    def mend(answer: PartitionProduceResponse) -> PartitionProduceResponse:
        if answer.error_code is not ErrorCode.NONE:
            return answer
        error_code = errors.get(next(accepted))
        if error_code is None:
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

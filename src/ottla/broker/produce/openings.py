"""Batches that have to be opened before they are appended, in their order.

A topic may want records under another codec, or look at each of them. For a large batch that takes seconds: a
minute for 35 MiB under zstd's highest level. So it is done in a thread. A topic may also check the schemas
that records name. If one is not known here, the topic of the registry is read before the batch is refused.

Meanwhile all that comes for the same partition waits behind it, and other partitions go on. Everything else
about an append is done on the loop when its turn comes: whether this node still leads, the producer's
sequence, the offsets.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.deferred import Deferred
from ottla.broker.logs.partition import Partition
from ottla.runtime.turns import Task, Turns
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.appending.validation import ValidBatch, takes_long_to_open, validate_client_batch
from ottla.storage.appending.verification import Verification
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock
from ottla.world.workers import Run

if TYPE_CHECKING:
    from ottla.broker.produce.registered_schemas import RegisteredSchemas
    from ottla.broker.produce.schema_checks import Named


class Opening:
    """A batch that waits for its turn."""

    __slots__ = ("appended", "error", "is_read_on", "named", "records", "task", "valid", "verification")

    def __init__(self, records: memoryview, verification: Verification | None, task: Task) -> None:
        # A copy: the request lies where the next one is received.
        self.records = memoryview(bytearray(records))
        self.verification = verification
        self.task = task
        self.valid: ValidBatch | None = None
        # The schemas that it names, where they are checked.
        self.named: dict[Named, int] | None = None
        # Whether the topic of the registry was read since it came.
        self.is_read_on = False
        self.error: Exception | None = None
        self.appended: Deferred[AppendInfo] = Deferred()
        task.hold(len(records))

    def open(self, config: LogConfig, now_ms: int) -> None:
        """Check the records, and see which schemas they name. Raises `AppendError`."""
        self.valid = validate_client_batch(self.records, config, now_ms)
        if config.checks_schemas:
            from ottla.broker.produce.schema_checks import named_schemas

            self.named = named_schemas(self.valid.records, config)


class Openings:
    """All batches of a broker that are opened or wait behind such a one."""

    def __init__(
        self, run: Run, turns: Turns, clock: Clock, schemas: "Callable[[], RegisteredSchemas]"
    ) -> None:
        """`schemas` returns what the registry knows. It is called when a topic checks schemas."""
        self._run = run
        self._turns = turns
        self._clock = clock
        self._find_schemas = schemas
        self._schemas: RegisteredSchemas | None = None
        self._queues: dict[Partition, deque[Opening]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def append(
        self, partition: Partition, records: memoryview, verification: Verification | None
    ) -> Deferred[AppendInfo]:
        """Append a batch behind all that wait for the partition. Fails with what an append would raise."""
        opening = Opening(records, verification, self._turns.new_task(_never))
        queue = self._queues.setdefault(partition, deque())
        queue.append(opening)
        if len(queue) == 1:
            partition.set_opening(True)
            self._go_on(partition)
        return opening.appended

    def close(self) -> None:
        """Close the connection to where the registry's topic is."""
        if self._schemas is not None:
            self._schemas.close()

    def _go_on(self, partition: Partition) -> None:
        """Append what waits, until something takes longer."""
        queue = self._queues[partition]
        settled: list[tuple[Opening, AppendInfo | None]] = []
        while queue and self._is_ready(partition, queue[0]):
            opening = queue.popleft()
            opening.task.release()
            info: AppendInfo | None = None
            if opening.error is None:
                try:
                    info = self._append(partition, opening)
                except (AppendError, LogDirectoryOffline) as raised:
                    opening.error = raised
            settled.append((opening, info))
        # All this before anybody learns of it: a listener may bring another batch.
        if not queue:
            del self._queues[partition]
            partition.set_opening(False)
        for opening, info in settled:
            if opening.error is not None:
                opening.appended.fail(opening.error)
            else:
                assert info is not None, "what was not refused was appended"
                opening.appended.resolve(info)

    def _is_ready(self, partition: Partition, opening: Opening) -> bool:
        """Say whether a batch can be appended or refused. If not, what it waits for goes on with it."""
        config = partition.log.config
        if opening.error is None and opening.valid is None:
            now_ms = self._clock.now_ms()
            if takes_long_to_open(opening.records):
                self._run(
                    lambda: opening.open(config, now_ms),
                    lambda error: self._resume(partition, opening, error),
                )
                return False
            if config.checks_schemas:
                try:
                    opening.open(config, now_ms)
                except AppendError as error:
                    opening.error = error
        if opening.error is None and opening.named is not None:
            return self._has_known_schemas(partition, opening, opening.named)
        return True

    def _has_known_schemas(self, partition: Partition, opening: Opening, named: "dict[Named, int]") -> bool:
        from ottla.broker.produce.schema_checks import find_refusal

        schemas = self._schemas = self._schemas or self._find_schemas()
        refusal = find_refusal(partition.topic, named, schemas.state)
        if refusal is None:
            schemas.keep_fresh()
        elif opening.is_read_on:
            opening.error = refusal
        else:
            opening.is_read_on = True
            schemas.catch_up(lambda error: self._resume(partition, opening, error and _unread(error)))
            return False
        return True

    def _resume(self, partition: Partition, opening: Opening, error: Exception | None) -> None:
        opening.error = error
        self._go_on(partition)

    def _append(self, partition: Partition, opening: Opening) -> AppendInfo:
        if not partition.is_leader:
            raise AppendError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader changed while the batch waited")
        return partition.append(
            opening.records, self._clock.now_ms(), verification=opening.verification, valid=opening.valid
        )


def _unread(error: Exception) -> AppendError:
    """Return an error after which a producer tries again."""
    return AppendError(ErrorCode.REQUEST_TIMED_OUT, f"schemas cannot be checked now: {error}")


def _never(error: Exception) -> None:
    raise AssertionError("what is only counted cannot fail") from error

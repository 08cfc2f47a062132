"""Takes batches out of the accumulator to the leaders of their partitions, and answers back to the futures.

One task drains; each request has one more that waits for its answer. Up to
max.in.flight.requests.per.connection requests are on the way to a broker at a time. When a batch must be sent
again, its partition is held back until everything of it that is on the way has come home: then the batches go
out again in their order, and the broker drops what it has already.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.client.backoff import backoff_s
from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError, RequestTimedOut
from ottla.client.journey import Listener, Stage, tell
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.produce_requests import ProduceRequests, TransactionGate
from ottla.client.producer.settings import ProducerSettings
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_SEQUENCE_ERRORS = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
_PATIENCE_S = 1.0
_logger = logging.getLogger(__name__)


class Acknowledged(NamedTuple):
    """What a broker said of a batch that it took."""

    base_offset: int
    log_append_time_ms: int


class Sender:
    """Moves batches. Start it with `start`, stop it with `stop`."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        accumulator: Callable[[Callable[[], None]], Accumulator],
        identity: ProducerIdentity,
        gate: TransactionGate,
        acquire_identity: Callable[[], Any],
        listener: Listener | None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        self._gate = gate
        self._acquire_identity = acquire_identity
        self._listener = listener
        self._produce_requests = ProduceRequests(cluster, settings, identity, gate)
        self._work = asyncio.Event()
        self.accumulator = accumulator(self._work.set)
        self._in_flight: dict[TopicPartition, list[Batch]] = defaultdict(list)
        self._held_back: set[TopicPartition] = set()
        self._is_asking = False
        self._requests: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining: asyncio.Task[None] | None = None
        self._backoff = backoff_s(settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000)
        self._must_bump_epoch = False

    def start(self) -> None:
        """Begin to drain."""
        self._draining = asyncio.create_task(self._drain_for_ever())
        self._draining.add_done_callback(self._drained)

    async def stop(self) -> None:
        """Stop draining, and wait for the answers that are due."""
        if self._draining is not None:
            self._draining.cancel()
            # If a bug of ours ended it, that was logged. It must not keep us from closing the rest.
            await asyncio.gather(self._draining, return_exceptions=True)
        for task in list(self._requests):
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        closed = ClientError("the producer was closed before the record was acknowledged")
        for batch in [batch for batches in self._in_flight.values() for batch in batches]:
            self._home(batch)
            self._fail(batch, closed)
        self.fail_all(closed)

    async def flush(self) -> None:
        """Return when everything handed over so far is acknowledged or has failed.

        A loop that is shut down ends the draining before the caller that closes the producer, which must not
        wait.
        """
        self.accumulator.flushing += 1
        try:
            self._idle.clear()
            self._work.set()
            while not self._has_nothing_to_do():
                if self._draining is None or self._draining.done():
                    raise ClientError("records were not sent, because the producer was stopped")
                self._idle.clear()
                await self._idle.wait()
        finally:
            self.accumulator.flushing -= 1

    def fail_all(self, error: ClientError, *, is_wanted: bool = False) -> None:
        """Fail whatever has not been sent: the transaction is over, or the producer is.

        What the user wanted to fail, by an abort, is no news for the log.
        """
        for batch in self.accumulator.drop_all():
            self._fail(batch, error, logging.DEBUG if is_wanted else logging.WARNING)
        self._note_if_idle()

    async def _drain_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due_s = self._look_again_s(loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due_s):
                    await self._work.wait()
            self._work.clear()
            self._expire(loop.time())
            try:
                await self._drain(loop.time())
            except ClientError as error:
                if not error.retriable:
                    self.fail_all(error)
                await asyncio.sleep(next(self._backoff))
                self._work.set()

    def _drained(self, draining: asyncio.Task[None]) -> None:
        """Note that nothing is sent any more. If that is a bug of ours, every waiting call fails with it."""
        error = None if draining.cancelled() else draining.exception()
        if error is not None:
            _logger.error("the producer cannot continue", exc_info=error)
            self.fail_all(ClientError(f"the producer cannot continue: {error!r}"))
        self._idle.set()

    def _look_again_s(self, now_s: float) -> float | None:
        """Return when to look, if nobody wakes the sender before.

        What is due and could not go is looked at again after a second. Whatever it waits for, its time to be
        delivered must not pass unseen.
        """
        due_s = self.accumulator.next_due_s(now_s)
        if not len(self.accumulator):
            return due_s
        return now_s + _PATIENCE_S if due_s is None else min(due_s, now_s + _PATIENCE_S)

    async def _drain(self, now_s: float) -> None:
        if self._must_bump_epoch and not any(self._in_flight.values()):
            await self._start_new_epoch()
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        unknown: set[str] = set()
        for where, _ in self.accumulator.ready(now_s):
            if where in self._held_back or self._must_bump_epoch or self._awaits_first(where):
                continue
            view = self._cluster.topology.leader_of(where)
            if view is None:
                unknown.add(where.topic)
            else:
                by_leader[view.leader].append(where)
        if by_leader and self._settings.is_idempotent and not self._identity.is_known:
            await self._acquire_identity()
        for leader, partitions in by_leader.items():
            await self._send_to(leader, partitions)
        if unknown:
            await self._cluster.refresh(unknown)
            await asyncio.sleep(next(self._backoff))
            self._work.set()

    def _awaits_first(self, where: TopicPartition) -> bool:
        """Say whether the first batch of a partition is on its way.

        Until it is acknowledged, no other follows. If the first was refused, or went to an old leader, a
        broker would take the second one, and the first could only come after it.
        """
        is_first = self._settings.is_idempotent and not self._identity.is_known_in(where)
        return is_first and bool(self._in_flight.get(where))

    async def _send_to(self, leader: int, partitions: list[TopicPartition]) -> None:
        connection = await self._cluster.connection(leader)
        if connection.in_flight >= self._settings.max_in_flight_requests_per_connection:
            return  # The next answer wakes us, or we look again in a second.
        # Asked first: nothing may wait, or fail, between taking a batch and sending it.
        allowed = [where for where in partitions if await self._may_send(where)]
        batches: list[Batch] = []
        size_bytes = 0
        for where in allowed:
            if not self.accumulator.queue_length(where) or where in self._held_back:
                continue  # The transaction was aborted, or another batch refused, meanwhile.
            batch = self.accumulator.take(where)
            self._produce_requests.encode(batch)
            assert batch.encoded is not None
            if batches and size_bytes + len(batch.encoded) > self._settings.max_request_size:
                self.accumulator.put_back(batch)
                self._work.set()
                break
            size_bytes += len(batch.encoded)
            batches.append(batch)
        if batches:
            self._send(connection, batches)
            self._work.set()  # More batches of the same partitions may be ready.

    async def _may_send(self, where: TopicPartition) -> bool:
        """Ask for a partition. If its transaction has failed, and waits to be aborted, its batches fail.

        An abort takes everything out of the queues, perhaps while the partition is being sent to the
        coordinator. The abort has to come after that, or it would leave a transaction open: `flush` waits.
        """
        if not self.accumulator.queue_length(where):
            return False
        self._is_asking = True
        try:
            may_send = await self._gate.may_send(where)
        finally:
            self._is_asking = False
            self._note_if_idle()
        if may_send:
            return True
        error = BrokerError(ErrorCode.TRANSACTION_ABORTABLE, "another record of the transaction failed")
        while self.accumulator.queue_length(where):
            self._fail(self.accumulator.take(where), error)
        self._note_if_idle()
        return False

    def _send(self, connection: BrokerConnection, batches: list[Batch]) -> None:
        for batch in batches:
            batch.attempts += 1
            self._in_flight[batch.where].append(batch)
            if self._listener is not None:
                self._tell(Stage.SENT, batch, broker=str(connection.address), attempt=batch.attempts)
        task = asyncio.create_task(self._exchange(connection, batches))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _exchange(self, connection: BrokerConnection, batches: list[Batch]) -> None:
        try:
            version = self._produce_requests.version_for(connection)
            request = self._produce_requests.make(batches, version)
            if self._settings.required_acks == 0:
                connection.send_unanswered(request, version)
                for batch in batches:
                    self._landed(batch, Acknowledged(-1, -1))
                return
            answer = await connection.ask(request, version)
            self._take_answer(batches, answer, version)
        except ClientError as error:
            if not error.retriable:
                for batch in batches:
                    self._home(batch)
                    self._fail(batch, error)
            else:
                self._cluster_changed({batch.where.topic for batch in batches})
                for batch in batches:
                    self._try_again(batch, error)
        except Exception as error:  # a bug of ours: callers that wait must learn of it, not hang
            _logger.exception("an exchange with %s failed", connection.address)
            for batch in batches:
                if batch in self._in_flight.get(batch.where, ()):
                    self._home(batch)
                    self._fail(batch, ClientError(f"the record was not acknowledged: {error!r}"))
        finally:
            self._work.set()
            self._note_if_idle()

    def _take_answer(self, batches: list[Batch], answer: Any, version: int) -> None:
        names = self._cluster.topology.topic_names
        by_partition = {batch.where: batch for batch in batches}
        for topic in answer.responses:
            name = names.get(topic.topic_id) if version >= 13 else topic.name
            for part in topic.partition_responses:
                batch = by_partition.pop(TopicPartition(name or "", part.partition_index), None)
                if batch is not None:
                    self._take_partition_answer(batch, part)
        for batch in by_partition.values():
            self._try_again(batch, RequestTimedOut(f"the broker's response has no entry for {batch.where}"))

    def _take_partition_answer(self, batch: Batch, part: Any) -> None:
        code: ErrorCode = part.error_code
        if code is ErrorCode.NONE:
            self._landed(batch, Acknowledged(part.base_offset, part.log_append_time_ms))
            return
        error = BrokerError(code, f"{batch.where} did not take a batch", part.error_message)
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._landed(batch, Acknowledged(-1, -1))
        elif code is ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._split(batch)
        elif code in _SEQUENCE_ERRORS and self._settings.is_idempotent:
            self._lost_sequence(batch, error)
        elif code in _FENCED and self._gate.transactional_id is not None:
            self._home(batch)
            self._fail(batch, error)
            self._gate.failed(error, fatal=True)
        elif code.retriable:
            if code.refreshes_metadata:
                self._cluster_changed({batch.where.topic})
            self._try_again(batch, error)
        else:
            self._home(batch)
            self._fail(batch, error)
            self._gate.failed(error, fatal=False)

    def _lost_sequence(self, batch: Batch, error: BrokerError) -> None:
        """Act on a sequence the broker did not expect.

        Behind another batch that failed this is no news: both go again, in order. For the first of its
        partition the broker has forgotten us, or lost records: only a new epoch leads on (KIP-360).
        """
        first = self._in_flight[batch.where][0] is batch and batch.where not in self._held_back
        if first and self._gate.transactional_id is not None:
            self._home(batch)
            self._fail(batch, error)
            self._gate.failed(error, fatal=False)
            return
        self._must_bump_epoch = self._must_bump_epoch or first
        self._try_again(batch, error)

    async def _start_new_epoch(self) -> None:
        await self._acquire_identity()
        for where in {batch.where for _, batch in self.accumulator.ready(float("inf"))}:
            for batch in self.accumulator.queued(where):
                batch.renumber()
        self._must_bump_epoch = False

    def _try_again(self, batch: Batch, error: ClientError) -> None:
        self._held_back.add(batch.where)
        loop_now_s = asyncio.get_running_loop().time()
        give_up_s = batch.created_s + self._settings.delivery_timeout_ms / 1000
        if loop_now_s >= give_up_s:
            self._home(batch)
            self._give_up(batch, error)
            return
        batch.retry_at_s = loop_now_s + next(self._backoff)
        self.accumulator.put_back(batch)
        self._home(batch)

    def _give_up(self, batch: Batch, error: ClientError) -> None:
        # Whether the broker has it is not known, so the numbers after it may not be trusted any more.
        self._must_bump_epoch = self._settings.is_idempotent and self._gate.transactional_id is None
        self._fail(batch, error)
        self._gate.failed(error, fatal=False)

    def _expire(self, now_s: float) -> None:
        for batch in self.accumulator.expired(now_s - self._settings.delivery_timeout_ms / 1000):
            error = RequestTimedOut(
                f"a batch for {batch.where} was not acknowledged within delivery.timeout.ms"
            )
            if batch.attempts:
                self._give_up(batch, error)
            else:
                self._fail(batch, error)
                self._gate.failed(error, fatal=False)
        self._note_if_idle()

    def _split(self, batch: Batch) -> None:
        """Send the halves of a batch that is too large for the broker. Their numbers follow each other."""
        halves = batch.split()
        self._held_back.add(batch.where)
        for half in reversed(halves):
            self.accumulator.put_back(half)
        self._home(batch)

    def _landed(self, batch: Batch, how: Acknowledged) -> None:
        self._identity.acknowledged(batch.where)
        self._home(batch)
        self.accumulator.release(batch)
        if self._listener is not None:
            self._tell(Stage.ACKNOWLEDGED, batch, base_offset=how.base_offset, count=len(batch.records))
        batch.landed(*how)

    def _fail(self, batch: Batch, error: ClientError, level: int = logging.WARNING) -> None:
        self.accumulator.release(batch)
        self._tell(Stage.FAILED, batch, error=str(error))
        _logger.log(level, "%d records for %s were not sent: %s", len(batch.records), batch.where, error)
        batch.fail(error)

    def _home(self, batch: Batch) -> None:
        """A batch is not on the way any more; its partition is free again once all of it is home."""
        on_the_way = self._in_flight[batch.where]
        if batch in on_the_way:
            on_the_way.remove(batch)
        if not on_the_way:
            del self._in_flight[batch.where]
            self._held_back.discard(batch.where)

    def _cluster_changed(self, topics: set[str]) -> None:
        async def learn() -> None:
            with contextlib.suppress(ClientError):
                await self._cluster.refresh(topics)
            self._work.set()

        task = asyncio.create_task(learn())
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    def _note_if_idle(self) -> None:
        if self._has_nothing_to_do():
            self._idle.set()

    def _has_nothing_to_do(self) -> bool:
        return not len(self.accumulator) and not any(self._in_flight.values()) and not self._is_asking

    def _tell(self, stage: Stage, batch: Batch, **detail: Any) -> None:
        if self._listener is not None:
            tell(self._listener, stage, batch.where.topic, batch.where.partition, None, **detail)

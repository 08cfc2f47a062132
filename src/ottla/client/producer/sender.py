"""Takes batches out of the accumulator to the leaders of their partitions, and answers back to the futures.

One task drains, and waits for nothing but work: what takes time, such as a connection or metadata, is an
errand beside it. A request counts as in flight when it is sent; each has a task that waits for its answer.
Up to max.in.flight.requests.per.connection requests are on the way to a broker at a time.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError, RequestTimedOut
from ottla.client.journey import Listener, Stage, tell
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import Batch
from ottla.client.producer.errands import Errands, pause_s
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.on_the_way import OnTheWay
from ottla.client.producer.produce_requests import ProduceRequests, TransactionGate
from ottla.client.producer.settings import ProducerSettings
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import TOPIC_IDS_FROM

_SEQUENCE_ERRORS = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
_PATIENCE_S = 1.0
_REFRESH_S_MIN: Final = 0.1
# Errands. That of a connection is the number of its broker.
_METADATA: Final = "metadata"
_ROOM: Final = "room in a connection"
_IDENTITY: Final = "producer id"
_ADMISSION: Final = "partitions of a transaction"
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
        acquire_identity: Callable[[], Awaitable[None]],
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
        self._on_the_way = OnTheWay(
            identity,
            self.accumulator.queued,
            self._drop,
            settings.max_in_flight_requests_per_connection,
            numbers=settings.is_idempotent,
            renews=settings.is_idempotent and gate.transactional_id is None,
        )
        self._rests = settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000
        self._errands = Errands(*self._rests, self._work.set, self._break)
        self._requests: set[asyncio.Task[None]] = set()
        self._draining: asyncio.Task[None] | None = None
        self._to_learn: set[str] = set()
        self._in_use: set[str] = set()
        self._learn_all_at_s = float("inf")
        self.failure: ClientError | None = None
        """Why nothing is sent any more."""

    def start(self) -> None:
        """Begin to drain."""
        self._note_refresh()
        self._draining = asyncio.create_task(self._drain_for_ever())
        self._draining.add_done_callback(self._drained)

    async def stop(self) -> None:
        """Stop at once. What has not been acknowledged fails."""
        self._end(ClientError("the producer was closed before the record was acknowledged"))
        tasks = [*self._errands.cancel(), *self._requests]
        if self._draining is not None:
            tasks.append(self._draining)
        for task in tasks:
            task.cancel()
        # If a bug of ours ended one, that was logged. It must not keep us from closing the rest.
        await asyncio.gather(*tasks, return_exceptions=True)

    async def flush(self) -> None:
        """Return when everything handed over so far is acknowledged or has failed."""
        self._require_running()
        self.accumulator.flushing += 1
        try:
            self._work.set()
            for batch in [*self.accumulator.everything(), *self._on_the_way]:
                await batch.settled()
            # An abort must come after this, or it would leave a transaction open.
            await self._errands.until_done(_ADMISSION)
        finally:
            self.accumulator.flushing -= 1
        self._require_running()

    def fail_all(self, error: ClientError, *, is_wanted: bool = False) -> None:
        """Fail whatever has not been sent: the transaction is over, or the producer is.

        What the user wanted to fail, by an abort, is no news for the log.
        """
        for batch in self.accumulator.drop_all():
            self._fail(batch, error, is_wanted=is_wanted)

    async def _drain_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._look_again_s(loop.time())):
                    await self._work.wait()
            self._work.clear()
            self._expire(loop.time())
            self._maybe_learn(loop.time())
            self._drain(loop.time())
            # A producer with much to send must let others run.
            await asyncio.sleep(0)

    def _drained(self, draining: asyncio.Task[None]) -> None:
        """Note that nothing is sent any more, by a bug of ours, or because the loop is being shut down."""
        if self.failure is not None:
            return
        error = None if draining.cancelled() else draining.exception()
        if isinstance(error, Exception):
            self._break(error)
        else:
            self._end(ClientError("the task that sends records was cancelled"))

    def _require_running(self) -> None:
        if self.failure is not None:
            raise ClientError(
                f"records were not sent, because the producer was stopped: {self.failure}"
            ) from self.failure

    def _break(self, error: Exception) -> None:
        """End because of a bug of ours. Every call that waits fails with it, and every later one."""
        _logger.error("the producer cannot continue", exc_info=error)
        self._end(ClientError(f"the producer cannot continue: {error!r}"))

    def _end(self, failure: ClientError) -> None:
        if self.failure is not None:
            return
        self.failure = failure
        self.accumulator.close(failure)
        for batch in [*self._on_the_way]:
            self._fail(batch, failure)
            self._on_the_way.came_home(batch)
        self.fail_all(failure)

    def _look_again_s(self, now_s: float) -> float:
        """Return when to look, if nobody wakes the sender before.

        What is due and could not go is looked at again after a second. Whatever it waits for, its time to be
        delivered must not pass unseen.
        """
        times = [
            self._learn_all_at_s,
            self.accumulator.next_due_s(now_s),
            self._errands.next_due_s(now_s),
            now_s + _PATIENCE_S if len(self.accumulator) else None,
        ]
        return min(due_s for due_s in times if due_s is not None)

    def _drain(self, now_s: float) -> None:
        if (refusal := self._gate.refusal()) is not None:
            self.fail_all(refusal, is_wanted=self._gate.is_aborting)
            return
        # One batch of a partition goes with each request, and several requests may be in flight.
        while self._drain_once(now_s):
            pass

    def _drain_once(self, now_s: float) -> bool:
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        is_on = self.failure is None
        for where, batch in self.accumulator.ready(now_s) if is_on else ():
            topic = self._cluster.topology.topics.get(where.topic)
            if not self._on_the_way.may_leave(batch, ZERO_UUID if topic is None else topic.topic_id):
                continue
            view = self._cluster.topology.leader_of(where)
            if view is None:
                self._to_learn.add(where.topic)
            else:
                by_leader[view.leader].append(where)
        if self._to_learn:
            self._errands.run(_METADATA, self._learn)
        if not by_leader or not self._has_identity():
            return False
        # Each of the leaders gets its turn, whatever became of those before.
        have_sent = [self._send_to(leader, partitions) for leader, partitions in by_leader.items()]
        return any(have_sent)

    def _has_identity(self) -> bool:
        if not self._settings.is_idempotent or self._identity.is_known:
            return True
        self._errands.run(_IDENTITY, self._acquire_identity, self._fail_if_final)
        return False

    def _fail_if_final(self, error: ClientError) -> None:
        if not error.retriable:
            self.fail_all(error)

    def _send_to(self, leader: int, partitions: list[TopicPartition]) -> bool:
        connection = self._cluster.open_connection(leader)
        if connection is None:
            self._connect(leader, partitions)
            return False
        partitions = self._admitted(partitions)
        if connection.in_flight >= self._settings.max_in_flight_requests_per_connection:
            return False  # The next answer wakes us, or we look again in a second.
        if self._settings.required_acks == 0 and not connection.takes_more:
            # Nothing else holds back what needs no answer: it would leave buffer.memory for the memory here.
            self._errands.run((_ROOM, leader), connection.until_it_takes_more)
            return False
        batches: list[Batch] = []
        size_bytes = 0
        for where in partitions:
            batch = self.accumulator.take(where)
            self._produce_requests.encode(batch)
            assert batch.encoded is not None
            if batches and size_bytes + len(batch.encoded) > self._settings.max_request_size:
                self.accumulator.put_back(batch)
                break
            size_bytes += len(batch.encoded)
            batches.append(batch)
        if batches:
            self._send(connection, batches)
        return bool(batches)

    def _connect(self, leader: int, partitions: list[TopicPartition]) -> None:
        def failed(error: ClientError) -> None:
            if error.retriable:
                # Whether it leads them still, others may know.
                self._learn_soon({where.topic for where in partitions})
                return
            for where in partitions:
                while self.accumulator.queue_length(where):
                    self._fail(self.accumulator.take(where), error)

        self._errands.run(leader, lambda: self._cluster.connection(leader), failed)

    def _admitted(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return those that are part of the transaction. For the others the coordinator is asked."""
        missing = [where for where in partitions if not self._gate.is_admitted(where)]
        if missing:
            self._errands.run(_ADMISSION, lambda: self._gate.admit(missing), self.fail_all)
        return [where for where in partitions if where not in missing]

    def _send(self, connection: BrokerConnection, batches: list[Batch]) -> None:
        topics = self._cluster.topology.topics
        for batch in batches:
            batch.attempts += 1
            topic = topics.get(batch.where.topic)
            batch.topic_id = ZERO_UUID if topic is None else topic.topic_id
            self._in_use.add(batch.where.topic)
            self._on_the_way.left(batch)
            if self._listener is not None:
                self._tell(Stage.SENT, batch, broker=str(connection.address), attempt=batch.attempts)
        try:
            version = self._produce_requests.version_for(connection)
            request = self._produce_requests.make(batches, version)
            if self._settings.required_acks == 0:
                connection.send_unanswered(request, version)
                for batch in batches:
                    self._landed(batch, Acknowledged(-1, -1))
                return
            # Sent here and not in the task: from now on it counts as in flight.
            answer = connection.send(request, version)
        except Exception as error:
            self._was_not_answered(connection, batches, error)
            return
        names = self._cluster.topology.topic_names if version >= TOPIC_IDS_FROM else None
        task = asyncio.create_task(self._exchange(connection, batches, answer, names))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _exchange(
        self,
        connection: BrokerConnection,
        batches: list[Batch],
        answer: asyncio.Future[Any],
        names: Mapping[Uuid, str] | None,
    ) -> None:
        try:
            self._take_answer(batches, await connection.answer_to(answer, "ProduceRequest"), names)
        except Exception as error:
            self._was_not_answered(connection, batches, error)
        finally:
            self._work.set()

    def _was_not_answered(self, connection: BrokerConnection, batches: list[Batch], error: Exception) -> None:
        if not isinstance(error, ClientError):  # a bug of ours: callers that wait must learn of it, not hang
            _logger.error("an exchange with %s failed", connection.address, exc_info=error)
            error = ClientError(f"the record was not acknowledged: {error!r}")
        if error.retriable:
            self._learn_soon({batch.where.topic for batch in batches})
        for batch in batches:
            if batch not in self._on_the_way:
                continue
            batch.may_still_come = True
            if error.retriable:
                self._try_again(batch, error)
            else:
                self._refused(batch, error)

    def _take_answer(self, batches: list[Batch], answer: Any, names: Mapping[Uuid, str] | None) -> None:
        """Take the answer to a request. `names` has those of topics as they were when it was sent."""
        by_partition = {batch.where: batch for batch in batches}
        for topic in answer.responses:
            name = topic.name if names is None else names.get(topic.topic_id)
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
        # What is wrong with one record says more than what is said of all of them.
        of_records = (record.batch_index_error_message for record in part.record_errors)
        detail = next(filter(None, of_records), part.error_message)
        error = BrokerError(code, f"{batch.where} did not take a batch", detail)
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._landed(batch, Acknowledged(-1, -1))
        elif code is ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._split(batch)
        elif code in _SEQUENCE_ERRORS and self._settings.is_idempotent:
            self._lost_sequence(batch, error)
        elif code in _FENCED and self._gate.transactional_id is not None:
            self._gate.failed(error, fatal=True)
            self._refused(batch, error)
        elif code.retriable:
            if code.refreshes_metadata:
                self._learn_soon({batch.where.topic})
            self._try_again(batch, error)
        else:
            self._refused(batch, error)

    def _lost_sequence(self, batch: Batch, error: BrokerError) -> None:
        """Act on a sequence the broker did not expect.

        Behind another batch that failed this is no news: both go again, in order. For the first of its
        partition the broker has forgotten us, or never got what was given up: only a new epoch leads on
        (KIP-360).
        """
        if self._on_the_way.is_first(batch):
            if self._gate.transactional_id is not None:
                self._refused(batch, error)
                return
            self._on_the_way.was_out_of_order(batch.where)
        self._try_again(batch, error)

    def _try_again(self, batch: Batch, error: ClientError) -> None:
        self._on_the_way.hold_back(batch.where)
        now_s = asyncio.get_running_loop().time()
        if now_s >= batch.created_s + self._settings.delivery_timeout_ms / 1000:
            self._refused(batch, error)
            return
        batch.retry_at_s = now_s + pause_s(batch.attempts, *self._rests)
        self.accumulator.put_back(batch)
        self._on_the_way.came_home(batch)

    def _refused(self, batch: Batch, error: ClientError) -> None:
        self._fail(batch, error)
        self._on_the_way.came_home(batch)

    def _drop(self, batch: Batch) -> None:
        """Fail a batch that waits, and that may be in the log by now."""
        self.accumulator.take_out(batch)
        why = "it may have been written, and the producer has used up its epochs"
        self._fail(batch, ClientError(f"a batch for {batch.where} was not acknowledged: {why}"))

    def _expire(self, now_s: float) -> None:
        for batch in self.accumulator.expired(now_s - self._settings.delivery_timeout_ms / 1000):
            error = RequestTimedOut(
                f"a batch for {batch.where} was not acknowledged within delivery.timeout.ms"
            )
            self._fail(batch, error)

    def _split(self, batch: Batch) -> None:
        """Send the halves of a batch that is too large for the broker. Their numbers follow each other."""
        self._on_the_way.hold_back(batch.where)
        for half in batch.split():
            self.accumulator.put_back(half)
        self._on_the_way.came_home(batch)

    def _landed(self, batch: Batch, how: Acknowledged) -> None:
        if batch.base_sequence >= 0:
            self._identity.acknowledged(batch.where, batch.base_sequence, len(batch.records), batch.topic_id)
        self._on_the_way.came_home(batch)
        self.accumulator.release(batch)
        if self._listener is not None:
            self._tell(Stage.ACKNOWLEDGED, batch, base_offset=how.base_offset, count=len(batch.records))
        batch.landed(*how)

    def _fail(self, batch: Batch, error: ClientError, *, is_wanted: bool = False) -> None:
        """Fail a batch. Its transaction must hear of it, whatever the reason, or it would commit the rest."""
        self.accumulator.release(batch)
        self._tell(Stage.FAILED, batch, error=str(error))
        level = logging.DEBUG if is_wanted else logging.WARNING
        _logger.log(level, "%d records for %s were not sent: %s", len(batch.records), batch.where, error)
        if batch.base_sequence >= 0:
            self._gate.left_gap()
        if not is_wanted:
            self._gate.failed(error, fatal=False)
        batch.fail(error)
        self._on_the_way.was_given_up(batch)

    def _maybe_learn(self, now_s: float) -> None:
        """Look for new partitions now and then, though all is well (metadata.max.age.ms).

        Topics to which nothing was sent since the last time are forgotten: `send` learns them again.
        """
        if now_s < self._learn_all_at_s:
            return
        self._note_refresh()
        left = [*self.accumulator.everything(), *self._on_the_way]
        used = {*self._in_use, *(batch.where.topic for batch in left)}
        topology = self._cluster.topology
        self._cluster.topology = topology.without(topology.topics.keys() - used)
        self._in_use.clear()
        self._learn_soon(used)

    def _note_refresh(self) -> None:
        age_s = max(self._settings.metadata_max_age_ms / 1000, self._rests[0], _REFRESH_S_MIN)
        self._learn_all_at_s = asyncio.get_running_loop().time() + age_s

    def _learn_soon(self, topics: Collection[str]) -> None:
        self._to_learn.update(topics)
        if self._to_learn:
            self._errands.run(_METADATA, self._learn)

    async def _learn(self) -> None:
        topics, self._to_learn = self._to_learn, set()
        try:
            await self._cluster.refresh(topics)
        except ClientError:
            self._to_learn |= topics
            raise
        for batch in self.accumulator.everything():
            where = batch.where
            if where.topic in topics and self._cluster.topology.leader_of(where) is None:
                raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{where} has no leader yet")

    def _tell(self, stage: Stage, batch: Batch, **detail: Any) -> None:
        if self._listener is not None:
            tell(self._listener, stage, batch.where.topic, batch.where.partition, None, **detail)

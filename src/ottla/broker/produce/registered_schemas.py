"""What the schema registry knows, as far as this broker has read its topic.

The topic is read when a batch names a schema that is not known here, before it is refused, and now and then
so that schemas that were deleted for good are noticed. It is read from its leader: what a registry has
acknowledged is there, and may not be on a follower yet. A broker without topics that check schemas reads
nothing.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.broker.basic_node import BasicNode
from ottla.broker.logs.partitions import Partitions
from ottla.broker.replication.replication import Replication
from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.errors import RecordsError
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Unanswered
from ottla.schemas.stored.records import UnreadableRecord, decode
from ottla.schemas.stored.state import State
from ottla.storage.errors import StorageError
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

_logger: Final = logging.getLogger("ottla.broker")

SLICE_BYTES: Final = 256 * 1024
"""How much is read at once. Others are served before the next."""
FRESH_MS: Final = 1_000
"""How old what was read may be. After that it is read on, while batches are accepted by what is known."""
_TRIES_MAX: Final = 3
_RETRY_MS: Final = 200
_NO_SESSION: Final = -1

Done = Callable[[Exception | None], None]


class RegistryUnread(Exception):
    """The topic of the registry cannot be read now."""


class SchemasNode(BasicNode, Protocol):
    """A broker, as far as its checks of schemas know it."""

    @property
    def partitions(self) -> Partitions: ...
    @property
    def replication(self) -> Replication: ...


class RegisteredSchemas:
    """Follows the topic of the registry."""

    def __init__(self, broker: SchemasNode) -> None:
        self.state = State()
        self._broker = broker
        self._topic_id = ZERO_UUID
        self._position = Offset(0)
        self._peer: tuple[int, Link] | None = None
        # Those who wait for the read that is under way, and for the next one.
        self._reading: list[Done] | None = None
        self._waiting: list[Done] = []
        self._read_ms = -FRESH_MS
        self._tries = 0
        self._is_closed = False

    def keep_fresh(self) -> None:
        """Read on, if the last time was a while ago. Nobody waits for it."""
        is_idle = self._reading is None and not self._waiting
        if is_idle and self._broker.clock.monotonic_ms() - self._read_ms >= FRESH_MS:
            self.catch_up(lambda _: None)

    def catch_up(self, done: Done) -> None:
        """Read all that is in the topic now, then tell, later: with None, or with `RegistryUnread`."""
        # A read that has begun may have missed what this one needs.
        self._waiting.append(done)
        if self._reading is None:
            self._begin()

    def close(self) -> None:
        """Read no more. Batches that wait for it are refused."""
        self._is_closed = True
        self._forget_peer()

    def _forget_peer(self) -> None:
        if self._peer is not None:
            self._peer[1].close()
            self._peer = None

    def _begin(self) -> None:
        self._reading, self._waiting = self._waiting, []
        self._tries = 0
        self._broker.world.scheduler.call_soon(self._read_on)

    def _end(self, error: Exception | None) -> None:
        assert self._reading is not None, "it is read"
        told, self._reading = self._reading, None
        self._read_ms = self._broker.clock.monotonic_ms()
        if self._waiting:
            self._begin()
        for done in told:
            done(error)

    def _read_on(self) -> None:
        broker = self._broker
        name = broker.config.ottla_schemas_topic
        topic = broker.image.topics.find(name)
        if topic is None:
            # Nothing is registered then.
            self._start_over(ZERO_UUID)
            self._end(None)
            return
        if topic.id != self._topic_id:
            self._start_over(topic.id)
        record = topic.partitions[0]
        if record.leader == broker.node_id:
            self._read_here(name)
        elif record.leader < 0:
            self._try_again(f"partition 0 of {name!r} has no leader")
        else:
            self._ask(record.leader, name)

    def _start_over(self, topic_id: Uuid) -> None:
        self.state, self._topic_id, self._position = State(), topic_id, Offset(0)

    def _try_again(self, why: str) -> None:
        self._tries += 1
        if self._tries < _TRIES_MAX and not self._is_closed:
            self._broker.world.scheduler.call_later(_RETRY_MS, self._read_on)
        else:
            self._end(RegistryUnread(why))

    def _read_here(self, name: str) -> None:
        partition = self._broker.partitions.find(name, 0)
        if partition is None or not partition.is_leader:
            self._try_again(f"partition 0 of {name!r} is not here yet")
            return
        log = partition.log
        try:
            start = max(self._position, log.log_start_offset)
            data = log.read(start, SLICE_BYTES).read()
        except StorageError as error:
            self._end(RegistryUnread(str(error)))
            return
        self._take(memoryview(data), log.high_watermark)

    def _ask(self, leader: int, name: str) -> None:
        if self._peer is None or self._peer[0] != leader:
            self._forget_peer()
            client_id = f"broker-{self._broker.node_id}-schemas"
            self._peer = leader, self._broker.replication.peer(leader, client_id)
        asked = FetchPartition(partition=0, fetch_offset=self._position, partition_max_bytes=SLICE_BYTES)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=SLICE_BYTES,
            session_epoch=_NO_SESSION,
            topics=(FetchTopic(topic=name, topic_id=self._topic_id, partitions=(asked,)),),
        )
        self._peer[1].ask(request, self._answered)

    def _answered(self, response: Any) -> None:
        if isinstance(response, Unanswered):
            self._try_again(str(response))
            return
        parts = [part for topic in response.responses for part in topic.partitions]
        code = parts[0].error_code if parts else response.error_code
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and parts[0].log_start_offset > self._position:
            self._position = Offset(parts[0].log_start_offset)
            self._broker.world.scheduler.call_soon(self._read_on)
        elif code is not ErrorCode.NONE or not parts:
            self._try_again(f"its leader answered {code.name}")
        else:
            self._take(memoryview(bytes(parts[0].records or b"")), parts[0].high_watermark)

    def _take(self, data: memoryview, high_watermark: int) -> None:
        before = self._position
        try:
            for batch in iter_batches(data):
                if not batch.is_control:
                    for record in iter_batch_records(batch):
                        if record.offset >= self._position:
                            self._replay(record.key, record.value, record.timestamp)
                self._position = max(self._position, Offset(batch.next_offset))
        except RecordsError as error:
            self._end(RegistryUnread(str(error)))
            return
        if self._position > before and self._position < high_watermark:
            self._broker.world.scheduler.call_soon(self._read_on)
        else:
            self._end(None)

    def _replay(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        try:
            self.state.replay(decode(key, value, timestamp_ms))
        except UnreadableRecord as error:
            _logger.warning("a record of the schema registry is ignored: %s", error)

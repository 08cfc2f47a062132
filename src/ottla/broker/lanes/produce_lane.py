"""A short way for producers that repeat themselves.

A producer sends the same request again and again: only the correlation id and the batch differ. So do the
answers: correlation id and three numbers. Once a connection has sent such a request twice, a lane remembers
the bytes around the batch, the partition, and the bytes around the numbers. The next request that has the
same bytes is appended without being decoded, and answered without being encoded.

Measured on a tiny batch: 20 us by way of codec and handler, 8 us by way of the lane. 5 of them are the
append.

Whatever is not plain (several partitions, a refused batch, a transaction, a quota) goes the long way. What
all lanes have in common is in `serving/lanes.py`.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final

from ottla.broker.deferred import Deferred
from ottla.broker.handling.producing import find_refusal
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.serving.lanes import NOT_MINE
from ottla.broker.serving.replies import EncodedResponse
from ottla.broker.serving.routes import Pieces, Route
from ottla.records.attributes import TRANSACTIONAL_BIT
from ottla.records.batch import ATTRIBUTES_LOW_BYTE, HEADER_BYTES
from ottla.security.rights import Operation, on_topic
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.wire.codec import encode
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import Unencodable
from ottla.wire.messages.produce import (
    TOPIC_IDS_FROM,
    ZSTD_FROM,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.primitives import uvarint

LANES_MAX: Final = 64
"""For how many partitions a connection may have lanes."""

_WRITE: Final = on_topic(Operation.WRITE)
_START: Final = Struct(">ii")
_NUMBERS: Final = Struct(">qqq")
_ALL: Final = -1
_NO_TAGS: Final = b"\0\0\0"
"""No tagged fields, thrice: of the partition, the topic and the request."""
_MARKS: Final = (0x0102030405060708, 0x1112131415161718, 0x2122232425262728)
"""Numbers that occur nowhere else in an answer, to find out where the codec puts such numbers."""


class ProduceLanes:
    """The lanes of one connection, by the bytes of a request between its correlation id and its batch.

    The requests for all partitions of a topic have as many bytes there, so that one look-up finds the lane.
    """

    __slots__ = ("_answer_later", "_context", "_fail", "_lanes", "_route", "_seen", "_stop")

    def __init__(
        self,
        context: BrokerContext,
        answer_later: Callable[[Pieces], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._context = context
        self._answer_later = answer_later
        self._fail = fail
        self._route: Route | None = None
        self._stop = 0
        self._lanes: dict[bytes, ProduceLane] = {}
        self._seen: set[bytes] = set()

    def serve(self, frame: memoryview, started_ns: int) -> Any:
        """Return the pieces of the answer, None if they come later, or `NOT_MINE`."""
        lane = self._lanes.get(frame[8 : self._stop].tobytes())
        if lane is None:
            return NOT_MINE
        answer = lane.serve(frame, self._stop)
        if type(answer) is list:
            lane.route.count(started_ns)
        elif answer is not NOT_MINE:
            self._send_when_done(answer, lane.route, int.from_bytes(frame[4:8], signed=True), started_ns)
            return None
        return answer

    def _send_when_done(
        self, answer: Deferred[Any], route: Route, correlation_id: int, started_ns: int
    ) -> None:
        def send(response: Any) -> None:
            route.count(started_ns)
            try:
                pieces = route.encode_answer(correlation_id, response)
            except Unencodable as error:
                self._fail(error)
            else:
                self._answer_later(pieces)

        answer.when_done(send, self._fail)

    def learn(self, ask: ProduceRequest, frame: memoryview, _body_at: int, route: Route) -> None:
        """Take note of a request that went the long way."""
        partition = _plain_partition(ask, route, self._context)
        if partition is None:
            return
        if len(self._context.wrote) < LANES_MAX:
            self._context.wrote[partition] = ask.acks
        stop = _start_of_length(ask, frame, route)
        middle = frame[8:stop].tobytes()
        if stop != self._stop or route is not self._route or len(self._seen) >= LANES_MAX:
            self._route, self._stop = route, stop
            self._lanes.clear()
            self._seen.clear()
        if middle in self._seen and middle not in self._lanes:
            lane = ProduceLane(ask, partition, route, self._context)
            if lane.find_batch(frame, stop) == ask.topic_data[0].partition_data[0].records:
                self._lanes[middle] = lane
        self._seen.add(middle)


class ProduceLane:
    """One request that is expected again."""

    __slots__ = (
        "_acks",
        "_after",
        "_answer_size",
        "_before",
        "_broker",
        "_is_compact",
        "_key_and_version",
        "_pack_answer",
        "_pack_body",
        "_partition",
        "_timeout_ms",
        "_topic",
        "route",
    )

    def __init__(
        self, ask: ProduceRequest, partition: Partition, route: Route, context: BrokerContext
    ) -> None:
        self._broker = context.broker
        self.route = route
        self._partition = partition
        self._acks = ask.acks
        self._timeout_ms = ask.timeout_ms
        self._topic = ask.topic_data[0]
        self._is_compact = route.is_flexible
        self._key_and_version = route.api.key << 16 | route.version
        self._learn_answer()

    def _learn_answer(self) -> None:
        """Find out where in an encoded answer the numbers are."""
        body = encode(self._respond(*_MARKS), self.route.version)
        numbers = _NUMBERS.pack(*_MARKS)
        at = body.index(numbers)
        self._before = body[:at]
        self._after = body[at + len(numbers) :]
        self._answer_size = self.route.head_size + len(body)
        layout = f"{at}sqqq{len(self._after)}s"
        self._pack_body = Struct(f">{layout}").pack
        self._pack_answer = Struct(f">ii{len(self.route.response_tail)}x{layout}").pack

    def serve(self, frame: memoryview, stop: int) -> Any:
        """Append a request that is like the last one, if everything about it is plain."""
        key_and_version, correlation_id = _START.unpack_from(frame)
        partition = self._partition
        if (
            key_and_version != self._key_and_version
            or not partition.takes_writes
            or self._broker.quotas.has_limits
        ):
            return NOT_MINE
        records = self.find_batch(frame, stop)
        if records is None:
            return NOT_MINE
        try:
            info = partition.append_batch(records, self._broker.clock.now_ms())
        except (AppendError, LogDirectoryOffline):
            # Nothing was appended. The long way finds the same reason, and tells it.
            return NOT_MINE
        return self._answer(info, correlation_id, len(frame) + 4)

    def find_batch(self, frame: memoryview, position: int) -> memoryview | None:
        """Return the batch, if there is exactly one and nothing unusual after it."""
        size = len(frame)
        if self._is_compact:
            length, shift = -1, 0
            while position < size and shift <= 28:
                byte = frame[position]
                position += 1
                length += (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            if position + length + len(_NO_TAGS) != size or frame[position + length :].tobytes() != _NO_TAGS:
                return None
        else:
            length = int.from_bytes(frame[position : position + 4])
            position += 4
            if position + length != size:
                return None
        if length < HEADER_BYTES:
            return None
        records = frame[position : position + length]
        return None if records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT else records

    def _answer(self, info: AppendInfo, correlation_id: int, size_bytes: int) -> Any:
        route, log = self.route, self._partition.log
        route.requests += 1
        route.received_bytes += size_bytes
        if self._acks == 0:
            return []
        numbers = (info.first_offset, info.log_append_time_ms, info.log_start_offset)
        if self._acks == _ALL and not log.is_committed(log.log_end_offset):
            body = self._pack_body(self._before, *numbers, self._after)
            return self._broker.delayed_produces.wait(
                (self._partition,),
                self._timeout_ms,
                partial(self._respond, *numbers),
                EncodedResponse(body),
            )
        route.sent_bytes += self._answer_size + 4
        return [self._pack_answer(self._answer_size, correlation_id, self._before, *numbers, self._after)]

    def _respond(self, base_offset: int, log_append_time_ms: int, log_start_offset: int) -> ProduceResponse:
        topic = self._topic
        answer = PartitionProduceResponse(
            partition_index=self._partition.index,
            base_offset=base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=log_start_offset,
        )
        return ProduceResponse(
            responses=(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=(answer,)),
            )
        )


def _plain_partition(ask: ProduceRequest, route: Route, context: BrokerContext) -> Partition | None:
    """Return the partition that a plain request writes to; None if the request is not a plain one."""
    topics = ask.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1 or route.version < ZSTD_FROM:
        return None
    if ask.transactional_id is not None or not -1 <= ask.acks <= 1:
        return None
    name = topics[0].topic_id if route.version >= TOPIC_IDS_FROM else topics[0].name
    data = topics[0].partition_data[0]
    partition = context.broker.partitions.by_key.get((name, data.partition_index))
    if partition is None or not context.may(_WRITE, partition.topic):
        return None
    refusal = find_refusal(ask, memoryview(data.records or b""), partition, context)
    return partition if refusal is ErrorCode.NONE else None


def _start_of_length(ask: ProduceRequest, frame: memoryview, route: Route) -> int:
    """Return where in a plain request the length of the batch begins."""
    length = len(ask.topic_data[0].partition_data[0].records or b"")
    if route.is_flexible:
        return len(frame) - len(_NO_TAGS) - length - len(uvarint(length + 1))
    return len(frame) - length - 4

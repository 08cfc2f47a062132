"""A short way for consumers that commit again and again.

A consumer commits for the same partitions until the next rebalance: only the correlation id and the offsets
differ. Once a connection has sent such a commit twice, a lane remembers the bytes between the offsets, and
those of the records and the answer. The next commit that has the same bytes is taken apart by one `unpack`,
its records are made by one `pack` each, and the answer is there already.

It saves a third of the CPU of a commit of one partition, and half of that of ten
(`docs/decisions/commit-lane.md`).

Whether the sender may commit is looked at each time, by the group coordinator. Everything that is not plain
goes the long way: topics that have changed, a refusal, a quota. What the lane decides is a `Decision` like
any other. What all lanes have in common is in `serving/lanes.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, Final

from ottla.broker.node import BrokerContext
from ottla.broker.serving.lanes import NOT_MINE
from ottla.broker.serving.routes import Pieces, Route
from ottla.coordination.group.offsets.commit import refused_commit
from ottla.coordination.group.offsets.repeated import RepeatedCommit
from ottla.records.codec import encode_fields
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.codec import encode
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import TOPIC_IDS_FROM, OffsetCommitRequest

LANES_MAX: Final = 4
"""How many different commits a connection may have lanes for."""
FRAME_BYTES_MAX: Final = 16 * 1024
"""How large a commit may be that is remembered: in memory it takes ten times as much."""
_FIRST_VERSION: Final = 5
"""Older commits may set when they expire."""
_START: Final = Struct(">ii")
_OFFSET: Final = Struct(">q")
_MARK: Final = 0x0102030405060700
_TIME_MARK: Final = 0x1112131415161718
"""Numbers that hardly occur elsewhere, to find out where the codec puts such numbers."""

AnswerLater = Callable[[Pieces], None]


class CommitLanes:
    """The lanes of one connection, by the size of the request."""

    __slots__ = ("_answer_later", "_context", "_hopeless", "_lanes", "_seen")

    def __init__(self, context: BrokerContext, answer_later: AnswerLater) -> None:
        self._context = context
        self._answer_later = answer_later
        self._lanes: dict[int, CommitLane] = {}
        # The last commit of each size: one that comes again is worth a lane.
        self._seen: dict[int, OffsetCommitRequest] = {}
        # Sizes of commits that are not plain: nobody tries again.
        self._hopeless: set[int] = set()

    def serve(self, frame: memoryview, started_ns: int) -> Any:
        """Return the pieces of the answer, None if they come later, or `NOT_MINE`."""
        lane = self._lanes.get(len(frame))
        return NOT_MINE if lane is None else lane.serve(frame, started_ns)

    def learn(self, ask: OffsetCommitRequest, frame: memoryview, body_at: int, route: Route) -> None:
        """Take note of a commit that goes the long way."""
        size = len(frame)
        before = self._seen.pop(size, None)
        self._lanes.pop(size, None)
        if route.version < _FIRST_VERSION or size > FRAME_BYTES_MAX or size in self._hopeless:
            return
        if self._context.broker.authorizer.is_active and not _may_commit(ask, route, self._context):
            return
        if len(self._seen) + len(self._hopeless) >= LANES_MAX:
            self._seen.clear()
            self._lanes.clear()
            self._hopeless.clear()
        self._seen[size] = ask
        if before is None or not _differ_in_offsets_only(before, ask):
            return
        lane = _find_lane(ask, frame, body_at, route, self._context, self._answer_later)
        if lane is None:
            del self._seen[size]
            self._hopeless.add(size)
        else:
            self._lanes[size] = lane


class CommitLane:
    """One commit that is expected again."""

    __slots__ = (
        "_answer_later",
        "_ask",
        "_body",
        "_broker",
        "_correlation_id",
        "_is_serving",
        "_packs",
        "_pieces",
        "_repeated",
        "_route",
        "_same",
        "_size_bytes",
        "_started_ns",
        "_topics",
        "_unpack",
    )

    def __init__(
        self,
        ask: OffsetCommitRequest,
        template: Sequence[bytes],
        route: Route,
        context: BrokerContext,
        answer_later: AnswerLater,
    ) -> None:
        """`ask` has names and ids of all topics, `template` the bytes around correlation id and offsets."""
        self._broker = context.broker
        self._topics = context.broker.image.topics
        self._route = route
        self._answer_later = answer_later
        self._ask = ask
        self._repeated = RepeatedCommit(ask, route.version)
        self._same = tuple(template)
        first, *others = map(len, template)
        layout = Struct(f">{first}si" + "q".join(f"{size}s" for size in others))
        self._size_bytes = layout.size
        self._unpack = layout.unpack
        self._packs = [_pack_of(record) for record in self._repeated.records(_marks(ask), _TIME_MARK)]
        answer = encode(refused_commit(ask, ErrorCode.NONE), route.version)
        self._body = route.response_tail + answer
        self._correlation_id = 0
        self._started_ns = 0
        self._is_serving = False
        self._pieces: Pieces | None = None

    def serve(self, frame: memoryview, started_ns: int) -> Any:
        """Commit if everything is as it was: return the answer, None if it comes later, or `NOT_MINE`."""
        fields = self._unpack(frame)
        broker = self._broker
        if fields[::2] != self._same or not self._is_current():
            return NOT_MINE
        self._started_ns = started_ns
        self._correlation_id = fields[1]
        offsets = fields[3::2]
        now_ms = broker.clock.now_ms()
        encoded = self._encode(offsets, now_ms)
        self._is_serving, self._pieces = True, None
        is_done = broker.groups.coordinator.commit_offsets_again(
            self._repeated, offsets, encoded, now_ms, self._answer, self._refuse
        )
        self._is_serving = False
        if not is_done:
            return NOT_MINE
        self._route.requests += 1
        self._route.received_bytes += self._size_bytes + 4
        return self._pieces

    def _is_current(self) -> bool:
        """Say whether everything besides the bytes is as it was when the lane was made.

        Everything belongs here that the long way asks before it asks the coordinator.
        """
        broker = self._broker
        return broker.metadata.image.topics is self._topics and not broker.quotas.limits_requests

    def _encode(self, offsets: tuple[int, ...], now_ms: int) -> list[bytes]:
        return [
            pack(before, offset, between, now_ms, after)
            for (pack, before, between, after), offset in zip(self._packs, offsets, strict=True)
        ]

    def is_right(self, frame: memoryview, offsets: tuple[int, ...]) -> bool:
        """Say whether the lane finds these offsets in the frame, and writes them as the codec would."""
        if len(frame) != self._size_bytes:
            return False
        fields = self._unpack(frame)
        records = self._repeated.records(offsets, len(frame))
        return (
            fields[::2] == self._same
            and fields[3::2] == offsets
            and self._encode(offsets, len(frame)) == [_encode_record(record) for record in records]
        )

    # A connection has one request under way at a time, so that there is one correlation id to remember.

    def _answer(self, _is_committed: bool) -> None:
        body = self._body
        size = 4 + len(body)
        self._route.sent_bytes += size + 4
        self._send([_START.pack(size, self._correlation_id) + body])

    def _refuse(self, error_code: ErrorCode) -> None:
        self._send(self._route.encode_answer(self._correlation_id, refused_commit(self._ask, error_code)))

    def _send(self, pieces: Pieces) -> None:
        self._route.count(self._started_ns)
        if self._is_serving:
            self._pieces = pieces
        else:
            self._answer_later(pieces)


def _may_commit(ask: OffsetCommitRequest, route: Route, context: BrokerContext) -> bool:
    """Say whether the access rules allow all of a commit."""
    topics = context.broker.image.topics
    names = [topic.name for topic in ask.topics]
    if route.version >= TOPIC_IDS_FROM:
        found = [topics.find_by_id(topic.topic_id) for topic in ask.topics]
        names = [topic.name for topic in found if topic is not None]
    return context.may(on_group(Operation.READ), ask.group_id) and all(
        context.may(on_topic(Operation.READ), name) for name in names
    )


def _differ_in_offsets_only(one: OffsetCommitRequest, other: OffsetCommitRequest) -> bool:
    if one.group_id != other.group_id or one.member_id != other.member_id:
        return False
    return _with_offsets(one, _marks(one)) == _with_offsets(other, _marks(other))


def _marks(ask: OffsetCommitRequest) -> tuple[int, ...]:
    """Return a number for each partition."""
    return tuple(range(_MARK, _MARK + sum(len(topic.partitions) for topic in ask.topics)))


def _with_offsets(ask: OffsetCommitRequest, offsets: Iterable[int]) -> OffsetCommitRequest:
    """Return the same commit with other offsets."""
    remaining = iter(offsets)
    topics = [
        replace(
            topic,
            partitions=tuple([replace(part, committed_offset=next(remaining)) for part in topic.partitions]),
        )
        for topic in ask.topics
    ]
    return replace(ask, topics=tuple(topics))


def _find_lane(
    ask: OffsetCommitRequest,
    frame: memoryview,
    body_at: int,
    route: Route,
    context: BrokerContext,
    answer_later: AnswerLater,
) -> CommitLane | None:
    """Return a lane for such commits, or None if they are not plain."""
    known = _with_names_and_ids(ask, route, context)
    marks = _marks(ask)
    if known is None or not marks:
        return None
    template = [bytes(frame[:4]), bytes(frame[8:body_at])]
    rest = encode(_with_offsets(ask, marks), route.version)
    for mark in marks:
        before, _, rest = rest.partition(_OFFSET.pack(mark))
        template[-1] += before
        template.append(b"")
    template[-1] += rest
    lane = CommitLane(known, template, route, context, answer_later)
    # The bytes of a mark may occur in a name as well, and a client may encode in its own way. So the lane is
    # tried, with the offsets at hand and with others.
    offsets = tuple([part.committed_offset for topic in ask.topics for part in topic.partitions])
    others = tuple([~offset for offset in offsets])
    head, body = bytes(frame[:body_at]), encode(_with_offsets(ask, others), route.version)
    is_right = lane.is_right(frame, offsets) and lane.is_right(memoryview(head + body), others)
    return lane if is_right else None


def _with_names_and_ids(
    ask: OffsetCommitRequest, route: Route, context: BrokerContext
) -> OffsetCommitRequest | None:
    """Return the commit as the coordinator takes it, or None if a partition of it may be refused."""
    topics = context.broker.image.topics
    # A character counts as one or two: one that may be too long is left to the long way.
    metadata_max = context.broker.groups.coordinator.settings.offset_metadata_bytes_max // 2
    known = []
    for topic in ask.topics:
        by_id = route.version >= TOPIC_IDS_FROM
        found = topics.find_by_id(topic.topic_id) if by_id else topics.find(topic.name)
        if found is None or not all(
            part.partition_index in found.partitions and len(part.committed_metadata or "") <= metadata_max
            for part in topic.partitions
        ):
            return None
        known.append(replace(topic, name=found.name, topic_id=found.id))
    return replace(ask, topics=tuple(known))


Pack = tuple[Callable[..., bytes], bytes, bytes, bytes]
"""Packs a record: what comes before the offset, between offset and timestamp, and after that."""


def _pack_of(record: CoordinatorRecord) -> Pack:
    """Find out where in an encoded record offset and timestamp are, which are all that changes."""
    before, _, rest = _encode_record(record).partition(_OFFSET.pack(record.value.offset))
    between, _, after = rest.partition(_OFFSET.pack(_TIME_MARK))
    return Struct(f">{len(before)}sq{len(between)}sq{len(after)}s").pack, before, between, after


def _encode_record(record: CoordinatorRecord) -> bytes:
    key, value, version = record
    return encode_fields(GROUP_RECORDS.encode_key(key), GROUP_RECORDS.encode_value(value, version))

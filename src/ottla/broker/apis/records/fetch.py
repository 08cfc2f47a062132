"""Fetch: records of many partitions, at once or as soon as there are enough.

A fetch is answered at once if nothing is to be waited for, if there are enough bytes, or if there is
something to report (an error, a diverging log). Otherwise it is parked, until appends bring what is missing
or its time is over. Records are not read here: the answer holds ranges of files, which the connection sends.

All fetches are served by `_Fetch`. One of very many partitions takes the same steps in turns with everybody
else, also when an append has woken it.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias, TypeVar

from ottla.broker.deferred import Deferred
from ottla.broker.fetch.fetch_reading import (
    DEBUGGING_REPLICA,
    NOTHING_TOLD,
    FetchResult,
    Limits,
    read_partitions,
    refused,
)
from ottla.broker.fetch.fetch_session import FetchPlan, FetchSession, PartitionKey, asked_partitions
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.limits.quotas import QuotaKind
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import weigh
from ottla.broker.serving.exempt import is_of_node
from ottla.broker.serving.handlers import BOTH, CheckedBy, serves, serves_on_controller
from ottla.broker.serving.in_turns import InTurns
from ottla.metadata.topics import Topics
from ottla.model.uuid import Uuid
from ottla.security.rights import CLUSTER, Operation, on_cluster, on_topic
from ottla.storage.read import ReadLimit
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    LEADER_HINTS_FROM,
    RACKS_FROM,
    REPLICA_STATE_FROM,
    TOPIC_IDS_FROM,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)

_READ_COMMITTED: Final = 1
_READ: Final = on_topic(Operation.READ)
_AT_ONCE: Final = 1_000
"""Up to how many partitions are read at once: that takes 5 ms."""
_IN_A_TURN: Final = 200
LARGE_SESSION_PARTITIONS: Final = 10_000
ELEMENTS_MAX: Final = 500_000
"""How many topics and partitions a request may have."""

E = TypeVar("E")
Asked: TypeAlias = Sequence[tuple[PartitionKey, FetchPartition]]
Answered: TypeAlias = Sequence[tuple[PartitionKey, PartitionData]]
Answers: TypeAlias = list[tuple[PartitionKey, PartitionData]]


def _replica(ask: FetchRequest, version: int) -> tuple[int, int]:
    """Return the id and the epoch of the broker that reads."""
    if version >= REPLICA_STATE_FROM:
        return ask.replica_state.replica_id, ask.replica_state.replica_epoch
    return ask.replica_id, -1


def _is_of_follower(ask: FetchRequest, context: BrokerContext) -> bool:
    return _replica(ask, context.version)[0] >= 0 and is_of_node(ask, context)


@serves(
    FetchRequest,
    "4-18",
    on_topic(Operation.READ),
    checked_by=CheckedBy.HANDLER,
    listeners=BOTH,
    sends_files=True,
    has_short_answers=True,
    elements_max=ELEMENTS_MAX,
    is_exempt=_is_of_follower,
)
def fetch(
    ask: FetchRequest, context: BrokerContext
) -> FetchResponse | Deferred[FetchResponse] | InTurns[FetchResponse]:
    """Read, and answer or wait."""
    broker = context.broker
    if context.request_bytes > _AT_ONCE and weigh(ask, ("topics", "partitions"), _AT_ONCE) > _AT_ONCE:
        return _plan_in_turns(ask, context)
    now_ms = broker.clock.monotonic_ms()
    plan = broker.fetch_sessions.plan(ask, context.version, now_ms)
    context.fetched = (ask, plan.partitions, now_ms)
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error, responses=())
    attempt = _Fetch(ask, plan, context)
    if len(plan.partitions) > _AT_ONCE:
        return _serve_in_turns(attempt, ask.max_wait_ms, context)
    if broker.authorizer.is_active:
        attempt.asked, attempt.denied = attempt.sort_out(plan.partitions)
    answer = attempt.serve()
    if answer is not None:
        return answer
    context.abandon = broker.parked_fetches.park(
        attempt, attempt.awaited, attempt.missing_bytes, ask.max_wait_ms, attempt.reads_to_end
    )
    attempt.response = Deferred()
    return attempt.response


def _plan_in_turns(ask: FetchRequest, context: BrokerContext) -> InTurns[FetchResponse]:
    broker = context.broker
    listed: list[tuple[PartitionKey, FetchPartition]] = []
    for one in asked_partitions(ask, context.version >= TOPIC_IDS_FROM):
        listed.append(one)
        if len(listed) % _AT_ONCE == 0:
            yield None
    plan = broker.fetch_sessions.plan(ask, context.version, broker.clock.monotonic_ms(), listed)
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error, responses=())
    return (yield from _serve_in_turns(_Fetch(ask, plan, context), ask.max_wait_ms, context))


def _serve_in_turns(attempt: "_Fetch", wait_ms: int, context: BrokerContext) -> InTurns[FetchResponse]:
    """Serve a large fetch: what `_Fetch.serve` does, part by part. It is woken by appends like any other."""
    broker = context.broker
    until_ms = broker.clock.monotonic_ms() + wait_ms
    if broker.authorizer.is_active:
        asked, attempt.asked = attempt.asked, []
        for part in _parts(asked):
            allowed, denied = attempt.sort_out(part)
            attempt.asked += allowed
            attempt.denied += denied
            yield None
    while True:
        appends = broker.replication.appends
        result = FetchResult([], [], 0, False)
        for part in _parts(attempt.asked):
            result = attempt.read(part, result)
            yield None
        if attempt.is_enough(result, appends):
            return (yield from attempt.respond_in_turns(result))
        if attempt.reads_again:
            continue
        left_ms = until_ms - broker.clock.monotonic_ms()
        if left_ms <= 0:
            return (yield from attempt.respond_in_turns(result))
        call = _WakingCall()
        context.abandon = broker.parked_fetches.park(
            call, attempt.awaited, attempt.missing_bytes, left_ms, attempt.reads_to_end
        )
        yield call.woken
        context.abandon = None


class _WakingCall:
    """What wakes a fetch that is read in turns: there may be enough bytes now, or the time is over."""

    def __init__(self) -> None:
        self.woken: Deferred[None] = Deferred()

    def retry(self) -> int:
        """Wake it. It is parked again if there is not enough."""
        self.woken.resolve(None)
        return 0

    def give_up(self) -> None:
        """Wake it: it knows by itself that the time is over."""
        self.woken.resolve(None)


class _Fetch:
    """One fetch, from its first attempt to its answer."""

    __slots__ = (
        "_context",
        "_is_first",
        "_limits",
        "_min_bytes",
        "_partitions",
        "_plan",
        "_told",
        "_version",
        "asked",
        "awaited",
        "denied",
        "is_last",
        "missing_bytes",
        "reads_again",
        "reads_to_end",
        "response",
    )

    awaited: list[Partition]
    """The partitions that it waits for."""
    response: Deferred[FetchResponse]
    """Only for one that has to wait."""

    def __init__(self, ask: FetchRequest, plan: FetchPlan, context: BrokerContext) -> None:
        self._context = context
        self._plan = plan
        self._version = context.version
        self._limits = limits = _limits(ask, context)
        self._partitions = context.broker.partitions
        self._told = NOTHING_TOLD if plan.session is None else plan.session.partitions
        self._min_bytes = min(ask.min_bytes, limits.bytes_max)
        self._is_first = True
        self.asked = plan.partitions
        self.denied: Answers = []
        self.missing_bytes = 0
        # The answer goes after the next attempt, with whatever there is.
        self.is_last = ask.max_wait_ms <= 0
        # It need not wait until records are committed.
        self.reads_to_end = limits.limit is ReadLimit.LOG_END
        self.reads_again = False

    def sort_out(self, asked: Asked) -> tuple[Asked, Answers]:
        """Return what the reader may read, and the refusals of the rest."""
        return _sort_out(asked, self._limits.is_follower, self._context)

    def serve(self) -> FetchResponse | None:
        """Read what there is now. Return the answer, or None if it has to wait."""
        replication = self._context.broker.replication
        while True:
            appends = replication.appends
            result = self.read(self.asked, None)
            if self.is_enough(result, appends):
                return self.respond(result)
            if not self.reads_again:
                return None

    def read(self, asked: Asked, before: FetchResult | None) -> FetchResult:
        """Read some partitions. The first time tells the leader what a follower has."""
        limits = self._limits
        notes_fetch = limits.is_follower and self._is_first
        return read_partitions(self._partitions, asked, limits, before, notes_fetch, self._told)

    def is_enough(self, result: FetchResult, appends: int) -> bool:
        """Say whether the answer can go: there is enough, something to report, or no time to wait.

        `appends` is how many there were before. Otherwise, `reads_again` says that it must not wait yet.
        """
        self.missing_bytes = self._min_bytes - result.size_bytes
        if self.missing_bytes <= 0 or result.is_urgent or self.denied:
            return True
        # What a follower has may complete a transaction, whose markers are appended at once: maybe to a
        # partition that was read before.
        self.reads_again = (
            self._is_first and self.reads_to_end and self._context.broker.replication.appends != appends
        )
        self._is_first = False
        self.awaited = result.partitions
        return not self.reads_again and (self.is_last or not result.partitions)

    def retry(self) -> int:
        """Read again, and answer if there is enough."""
        answer = self.serve()
        if answer is None:
            return self.missing_bytes
        self.response.resolve(answer)
        return 0

    def give_up(self) -> None:
        """Answer with what there is."""
        self.is_last = True
        self.retry()

    def respond(self, result: FetchResult) -> FetchResponse:
        """Make the answer, and let the session take note of it."""
        throttled = self._account(result)
        if throttled is not None:
            return throttled
        session = self._session()
        answers = self.denied + result.answers if self.denied else result.answers
        if session is not None:
            news = _news(session, answers)
            answers = news if self._plan.is_incremental else answers
        return self._response(session, self._by_topic(answers), answers, result)

    def respond_in_turns(self, result: FetchResult) -> InTurns[FetchResponse]:
        """Do the same, and let others be served meanwhile."""
        throttled = self._account(result)
        if throttled is not None:
            return throttled
        session = self._session()
        yield None
        answers = self.denied + result.answers
        if session is not None:
            news: Answers = []
            for part in _parts(answers):
                news += _news(session, part)
                yield None
            answers = news if self._plan.is_incremental else answers
        topics: list[FetchableTopicResponse] = []
        for part in _parts(answers):
            topics += self._by_topic(part)
            yield None
        return self._response(session, _joined(topics), answers, result)

    def _account(self, result: FetchResult) -> FetchResponse | None:
        """Count what was read. Return the answer to a reader that is over its quota."""
        broker, session = self._context.broker, self._plan.session
        if self._limits.is_follower:
            self._count_limited(result)
            return None
        if broker.quotas.limits_fetch and (throttle_ms := self._throttle(result)) > 0:
            session_id = 0 if session is None else session.id
            return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id, responses=())
        if result.size_bytes:
            self._count(result)
        return None

    def _count_limited(self, result: FetchResult) -> None:
        """Count what followers get of throttled replicas."""
        broker = self._context.broker
        for key, data in result.answers:
            if data.records:
                partition = broker.partitions.by_key.get(key)
                if partition is not None and partition.is_sending_limited:
                    broker.replication.sending.record(len(data.records), self._limits.now_ms)

    def _session(self) -> FetchSession | None:
        """Return the session to answer in, which may begin now."""
        broker, context, plan = self._context.broker, self._context, self._plan
        if not plan.begins_session:
            return plan.session
        is_follower = self._limits.is_follower
        session = broker.fetch_sessions.begin(
            plan.partitions, self._version, is_follower, broker.clock.monotonic_ms()
        )
        if session is not None and len(session.partitions) > LARGE_SESSION_PARTITIONS:
            # It takes much memory, so it does not outlive the connection.
            context.large_session_id = session.id
        return session

    def _response(
        self,
        session: FetchSession | None,
        topics: tuple[FetchableTopicResponse, ...],
        answers: Answers,
        result: FetchResult,
    ) -> FetchResponse:
        # Followers hear from the metadata who leads, and where.
        tells_leaders = result.is_urgent and not self._limits.is_follower
        return FetchResponse(
            session_id=0 if session is None else session.id,
            responses=topics,
            node_endpoints=_endpoints(answers, self._context) if tells_leaders else (),
        )

    def _count(self, result: FetchResult) -> None:
        if len(result.answers) == len(result.partitions) == 1:
            result.partitions[0].bytes_out += result.size_bytes
            return
        by_key = self._context.broker.partitions.by_key
        for key, data in result.answers:
            if data.records:
                partition = by_key.get(key)
                if partition is not None:
                    partition.bytes_out += len(data.records)

    def _by_topic(self, answers: Answered) -> tuple[FetchableTopicResponse, ...]:
        by_id = self._version >= TOPIC_IDS_FROM
        if len(answers) == 1:
            # Most fetches are of one partition, and grouping takes a microsecond.
            (topic, _), data = answers[0]
            return (_topic_response(topic, (data,), by_id),)
        return tuple(
            [
                _topic_response(topic, tuple([data for _, data in group]), by_id)
                for topic, group in groupby(answers, key=lambda answer: answer[0][0])
            ]
        )

    def _throttle(self, result: FetchResult) -> int:
        """Count the answer against the reader's quota. Over it, the reader gets nothing and has to wait."""
        context, quotas = self._context, self._context.broker.quotas
        now_ms = context.broker.clock.monotonic_ms()
        user, client_id = context.user, context.client_id or ""
        throttle_ms = quotas.record(QuotaKind.FETCH, user, client_id, result.size_bytes, now_ms)
        if throttle_ms > 0:
            quotas.take_back(QuotaKind.FETCH, user, client_id, result.size_bytes, now_ms)
            context.mute(throttle_ms, QuotaKind.FETCH.value)
        return throttle_ms


def _topic_response(topic: Any, partitions: tuple[PartitionData, ...], by_id: bool) -> FetchableTopicResponse:
    if by_id:
        return FetchableTopicResponse(topic_id=topic, partitions=partitions)
    return FetchableTopicResponse(topic=topic, partitions=partitions)


def _sort_out(asked: Asked, is_follower: bool, context: BrokerContext) -> tuple[Asked, Answers]:
    """Take out the partitions that the reader may not read. Another broker may read all, or none."""
    if is_follower and context.allows(on_cluster(Operation.CLUSTER_ACTION), CLUSTER):
        return asked, []
    topics = context.broker.image.topics
    # Nearly all fetches are allowed everything that they ask for, and sessions have many partitions.
    allows, principal, host = context.broker.authorizer.allows, context.principal, context.host
    denied: dict[int, tuple[PartitionKey, PartitionData]] = {}
    for place, (key, ask) in enumerate(asked):
        name = _name_of(key[0], topics)
        # A topic that is unknown is not denied: the reader learns that it is unknown.
        if name is None or (not is_follower and allows(principal, host, _READ, name)):
            continue
        if not is_follower:
            context.node.audit.denied(context, _READ, name)
        denied[place] = (key, refused(ask, ErrorCode.TOPIC_AUTHORIZATION_FAILED, aborted=()))
    if not denied:
        return asked, []
    allowed = [one for place, one in enumerate(asked) if place not in denied]
    return allowed, list(denied.values())


def _name_of(topic: str | Uuid, topics: Topics) -> str | None:
    if isinstance(topic, str):
        return topic
    found = topics.find_by_id(topic)
    return None if found is None else found.name


def _parts(entries: Sequence[E]) -> Iterator[Sequence[E]]:
    """Give what is looked at before others are served."""
    return (entries[start : start + _IN_A_TURN] for start in range(0, len(entries), _IN_A_TURN))


def _news(session: FetchSession, answers: Answered) -> Answers:
    """Let a session take note of answers, and return those that have news for it."""
    noted = session.partitions
    news = [(key, data) for key, data in answers if key in noted and noted[key].note(data)]
    session.move_to_end([key for key, data in news if data.records])
    return news


def _joined(topics: Sequence[FetchableTopicResponse]) -> tuple[FetchableTopicResponse, ...]:
    """Give each topic one entry again, where its partitions were in two."""
    joined: list[FetchableTopicResponse] = []
    for (_, _), group in groupby(topics, key=lambda topic: (topic.topic, topic.topic_id)):
        parts = list(group)
        partitions = tuple(data for part in parts for data in part.partitions)
        joined.append(parts[0] if len(parts) == 1 else replace(parts[0], partitions=partitions))
    return tuple(joined)


def _limits(ask: FetchRequest, context: BrokerContext) -> Limits:
    broker, version = context.broker, context.version
    replica_id, replica_epoch = _replica(ask, version)
    tells_leader = version >= LEADER_HINTS_FROM
    if replica_id >= 0:
        # What it may read is limited by what it asks for: it has no quota.
        now_ms = broker.clock.monotonic_ms()
        return Limits(
            ReadLimit.LOG_END,
            ask.max_bytes,
            replica_id,
            True,
            tells_leader,
            replica_epoch,
            now_ms=now_ms,
            is_sending_exceeded=broker.replication.sending.is_exceeded(now_ms),
        )
    if replica_id == DEBUGGING_REPLICA:
        limit = ReadLimit.LOG_END
    elif ask.isolation_level == _READ_COMMITTED:
        limit = ReadLimit.LAST_STABLE
    else:
        limit = ReadLimit.HIGH_WATERMARK
    bytes_max = min(ask.max_bytes, broker.config.fetch_max_bytes)
    if broker.quotas.limits_fetch:
        allowed = broker.quotas.bytes_max(QuotaKind.FETCH, context.user, context.client_id or "")
        bytes_max = bytes_max if allowed is None else min(bytes_max, allowed)
    select_replica = None
    if ask.rack_id and broker.config.replica_selector_class is not None:
        select_replica = broker.replication.selector_for(ask.rack_id)
    reads_followers = version >= RACKS_FROM
    return Limits(limit, bytes_max, replica_id, False, tells_leader, -1, reads_followers, select_replica)


def _endpoints(answers: Answers, context: BrokerContext) -> tuple[NodeEndpoint, ...]:
    """Tell where the leaders are that the answer points to."""
    if context.version < LEADER_HINTS_FROM:
        return ()
    leaders = {data.current_leader.leader_id for _, data in answers}
    return tuple(
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in context.broker.endpoints.living(context)
        if node.node_id in leaders
    )


@serves_on_controller(FetchRequest)
def fetch_metadata(ask: FetchRequest, context: RequestContext) -> FetchResponse | Deferred[FetchResponse]:
    """Let a replica of the quorum follow the metadata log."""
    if not context.allows(on_cluster(Operation.CLUSTER_ACTION), CLUSTER):
        return FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, responses=())
    return serve_by_quorum(ask, context)

"""Fetch: records of many partitions, at once or as soon as there are enough.

A fetch is answered at once if nothing is to be waited for, if there are enough bytes, or if something has to
be told (an error, a diverging log). Otherwise it is parked, until appends bring what is missing or its time
is over. Records are not read here: the answer holds ranges of files, which the connection sends.
"""

from itertools import groupby
from typing import Final

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.fetch_reading import DEBUGGING_REPLICA, FetchResult, Limits, read_partitions
from ottla.broker.fetch_session import FetchPlan, PartitionKey
from ottla.broker.handlers import handles
from ottla.broker.quotas import QuotaKind
from ottla.storage.read import ReadLimit
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)

_TOPIC_IDS_FROM: Final = 13
_REPLICA_STATE_FROM: Final = 15
_LEADER_HINTS_FROM: Final = 16
_READ_COMMITTED: Final = 1


@handles(FetchRequest)
def fetch(ask: FetchRequest, context: RequestContext) -> FetchResponse | Deferred[FetchResponse]:
    """Read, and answer or wait."""
    broker = context.broker
    plan = broker.fetch_sessions.plan(ask, context.version, broker.clock.monotonic_ms())
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error, responses=())
    attempt = _Fetch(ask, plan, context)
    result = attempt.read()
    missing_bytes = attempt.missing_bytes(result)
    if missing_bytes <= 0 or ask.max_wait_ms <= 0 or not result.partitions:
        return attempt.respond(result)
    context.abandon = broker.parked_fetches.park(attempt, result.partitions, missing_bytes, ask.max_wait_ms)
    attempt.response = Deferred()
    return attempt.response


class _Fetch:
    """One fetch, from its first attempt to its answer."""

    __slots__ = ("_context", "_limits", "_min_bytes", "_plan", "_version", "response")

    response: Deferred[FetchResponse]
    """Only for one that has to wait."""

    def __init__(self, ask: FetchRequest, plan: FetchPlan, context: RequestContext) -> None:
        self._context = context
        self._plan = plan
        self._version = context.version
        self._limits = _limits(ask, context)
        self._min_bytes = min(ask.min_bytes, self._limits.bytes_max)

    def read(self) -> FetchResult:
        """Read what there is now."""
        return read_partitions(self._context.broker.partitions, self._plan.partitions, self._limits)

    def missing_bytes(self, result: FetchResult) -> int:
        """Return how many bytes are missing; 0 or less: the answer can go."""
        return 0 if result.is_urgent else self._min_bytes - result.size_bytes

    def retry(self) -> int:
        """Read again, and answer if there is enough."""
        result = self.read()
        missing_bytes = self.missing_bytes(result)
        if missing_bytes <= 0:
            self.response.resolve(self.respond(result))
        return missing_bytes

    def give_up(self) -> None:
        """Answer with what there is."""
        self.response.resolve(self.respond(self.read()))

    def respond(self, result: FetchResult) -> FetchResponse:
        """Make the answer, and let the session take note of it."""
        broker, context, plan = self._context.broker, self._context, self._plan
        if broker.quotas.limits_fetch and (throttle_ms := self._throttle(result)) > 0:
            session_id = 0 if plan.session is None else plan.session.id
            return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id, responses=())
        if result.size_bytes:
            self._count(result)
        session = plan.session
        if plan.begins_session:
            is_follower = self._limits.replica_id >= 0
            session = broker.fetch_sessions.begin(
                plan.partitions, self._version, is_follower, broker.clock.monotonic_ms()
            )
        answers = result.answers
        if session is not None:
            noted = session.partitions
            news = [(key, data) for key, data in answers if key in noted and noted[key].note(data)]
            session.move_to_end([key for key, data in news if data.records])
            answers = news if plan.is_incremental else answers
        return FetchResponse(
            session_id=0 if session is None else session.id,
            responses=self._by_topic(answers),
            node_endpoints=_endpoints(answers, context) if result.is_urgent else (),
        )

    def _count(self, result: FetchResult) -> None:
        by_key = self._context.broker.partitions.by_key
        for key, data in result.answers:
            if data.records:
                partition = by_key.get(key)
                if partition is not None:
                    partition.bytes_out += len(data.records)

    def _by_topic(
        self, answers: list[tuple[PartitionKey, PartitionData]]
    ) -> tuple[FetchableTopicResponse, ...]:
        by_id = self._version >= _TOPIC_IDS_FROM
        topics = []
        for topic, group in groupby(answers, key=lambda answer: answer[0][0]):
            partitions = tuple([data for _, data in group])
            if by_id:
                topics.append(FetchableTopicResponse(topic_id=topic, partitions=partitions))
            else:
                topics.append(FetchableTopicResponse(topic=topic, partitions=partitions))
        return tuple(topics)

    def _throttle(self, result: FetchResult) -> int:
        """Count the answer against the reader's quota. Over it, the reader gets nothing and has to wait."""
        context, quotas = self._context, self._context.broker.quotas
        now_ms = context.broker.clock.monotonic_ms()
        user, client_id = context.user, context.client_id or ""
        throttle_ms = quotas.record(QuotaKind.FETCH, user, client_id, result.size_bytes, now_ms)
        if throttle_ms > 0:
            quotas.take_back(QuotaKind.FETCH, user, client_id, result.size_bytes, now_ms)
            context.mute(throttle_ms)
        return throttle_ms


def _limits(ask: FetchRequest, context: RequestContext) -> Limits:
    broker, version = context.broker, context.version
    replica_id = ask.replica_state.replica_id if version >= _REPLICA_STATE_FROM else ask.replica_id
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
    return Limits(limit, bytes_max, replica_id, version >= _LEADER_HINTS_FROM)


def _endpoints(
    answers: list[tuple[PartitionKey, PartitionData]], context: RequestContext
) -> tuple[NodeEndpoint, ...]:
    """Tell where the leaders are that the answer points to."""
    if context.version < _LEADER_HINTS_FROM:
        return ()
    leaders = {data.current_leader.leader_id for _, data in answers}
    return tuple(
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in context.broker.endpoints.living(context)
        if node.node_id in leaders
    )

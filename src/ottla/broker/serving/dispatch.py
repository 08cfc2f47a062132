"""From the bytes of a request to the bytes of its answer.

A `Session` serves one connection. The connection gives it a frame and gets back the pieces of the answer, or
`PENDING` when the handler deferred: then the session calls the connection back. The connection keeps the
order, so nothing here has to.

This is the hottest code of the node, so the header is read by one `unpack_from`, and what is known of an API
and version is looked up once in a `Route` (`routes`). Bytes that are not a request raise `MalformedBytes`,
and the connection is closed: only ApiVersions is answered in a version that does not exist (in version 0,
with error 35).

Requests that are large, and answers that are, are not worked on here: `large_requests` does that, in turns.
"""

import struct
from collections.abc import Callable, Generator
from struct import Struct
from types import GeneratorType
from typing import Any, Final

from ottla.broker.deferred import Deferred
from ottla.broker.limits.quotas import QuotaKind
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import NewLanes
from ottla.broker.serving.lanes import NOT_MINE, Lanes
from ottla.broker.serving.large_requests import LargeRequest, held
from ottla.broker.serving.replies import NO_REPLY, Reply, settle
from ottla.broker.serving.routes import Pieces, Route, Routes
from ottla.broker.serving.served_apis import SERVED
from ottla.runtime.connections.receive_buffer import SHARED_BYTES
from ottla.runtime.turns import Task, Work
from ottla.wire.apis import ApiKey
from ottla.wire.codec import encoder_of, patient_decoder_of
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes, Unencodable
from ottla.wire.framing import UnsupportedRequest, decode_request_head
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

_REQUEST_START = Struct(">hhih")
_SIZE_AND_ID = Struct(">ii")
_CLIENT_ID_AT: Final = 10
_BAD_BYTES = (struct.error, IndexError, UnicodeDecodeError)

PENDING: Final = None
"""The answer comes later: the connection sends it when the handler has resolved its `Deferred`."""


LARGE_FRAME_BYTES: Final = 16 * 1024
"""From this size on a request is decoded patiently. Below it, decoding takes a fraction of a millisecond."""


def _count_nothing(_took_ns: int, response: Any) -> Any:
    return response


class Session:
    """One connection's conversation: requests in, answers out, in order."""

    __slots__ = (
        "_answer_later",
        "_by_key",
        "_client_id_bytes",
        "_fail",
        "_fresh_errors",
        "_lanes",
        "_lanes_by_key",
        "_now_ns",
        "_principal",
        "_rights_version",
        "_routes",
        "_task",
        "context",
    )

    def __init__(
        self,
        context: RequestContext,
        routes: Routes,
        answer_later: Callable[[Pieces], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """`answer_later` takes an answer that was pending ([] for none); `fail` closes the connection."""
        self.context = context
        self._routes = routes
        self._by_key = routes.by_key
        self._fresh_errors = routes.fresh_errors
        self._now_ns = routes.now_ns
        self._lanes_by_key: dict[ApiKey, Lanes] = {}
        self._lanes: tuple[Lanes, ...] = ()
        # For whom the lanes hold, and under which access rules.
        self._principal = context.principal
        self._rights_version = context.node.authorizer.version
        self._answer_later = answer_later
        self._fail = fail
        self._client_id_bytes: bytes | None = None
        # The request that is served in turns, if one is.
        self._task: Task | None = None

    def receive(self, frame: memoryview) -> Pieces | None:
        """Serve one request. Return its answer, [] if none is due, or `PENDING`."""
        started_ns = self._now_ns()
        context = self.context
        if (
            context.principal is not self._principal
            or context.node.authorizer.version != self._rights_version
        ):
            self._forget_lanes()
        for lanes in self._lanes:
            answer = lanes.serve(frame, started_ns)
            if answer is not NOT_MINE:
                return answer  # type: ignore[return-value]  # all that is left
        try:
            api_key, version, correlation_id, client_id_size = _REQUEST_START.unpack_from(frame)
            route = self._by_key.get(api_key << 16 | version) or self._routes.find(api_key, version)
            if route is None:
                return _answer_unknown_version(api_key, version, correlation_id)
            if len(frame) > route.frame_bytes_max:
                raise MalformedBytes(
                    f"{route.api.key.name} has {len(frame)} bytes, at most {route.frame_bytes_max} are "
                    "allowed"
                )
            position = self._read_rest_of_head(frame, client_id_size, route.is_flexible)
            size = len(frame)
            if size <= LARGE_FRAME_BYTES:
                ask, _ = route.decode(frame, position, size)
            else:
                ask = _decode_beginning(route, frame, position)
        except _BAD_BYTES as error:
            raise MalformedBytes(f"request: {error}") from error
        context.version = version
        context.correlation_id = correlation_id
        route.requests += 1
        context.request_bytes = size + 4
        route.received_bytes += size + 4
        if ask is None or route.is_to_be_cut(ask, size):
            self._serve_in_turns(route, correlation_id, started_ns, frame, position)
            return PENDING
        if route.new_lanes is not None:
            self._learn(ask, frame, position, route, route.new_lanes)
        reply = route.handler(ask, context)
        if context.node.quotas.limits_requests and not route.is_exempt(ask, context):
            reply = self._count_time(self._now_ns() - started_ns, reply)
        return self._finish(route, correlation_id, started_ns, reply)

    def _read_rest_of_head(self, frame: memoryview, client_id_size: int, is_flexible: bool) -> int:
        """Take note of the client id, nearly always the one known already. Return where the body begins."""
        stop = _CLIENT_ID_AT
        if client_id_size < 0:
            self.context.client_id = self._client_id_bytes = None
        else:
            stop += client_id_size
            if stop > len(frame):
                raise MalformedBytes(f"the client id of {client_id_size} bytes is cut off")
            client_id = frame[_CLIENT_ID_AT:stop].tobytes()
            if client_id != self._client_id_bytes:
                self.context.client_id = str(client_id, "utf-8")
                self._client_id_bytes = client_id
        if not is_flexible:
            return stop
        return stop + 1 if frame[stop] == 0 else decode_request_head(frame).body_position

    def _finish(self, route: Route, correlation_id: int, started_ns: int, reply: Reply) -> Pieces | None:
        if isinstance(reply, Deferred):
            if not reply.is_done:
                self._park(route, correlation_id, started_ns, reply)
                return PENDING
            reply = reply.value()
        elif isinstance(reply, GeneratorType):
            # As `is_in_turns` says, without a call: each answer passes here.
            self._begin(self._answer_in_turns(route, correlation_id, started_ns, reply))
            return PENDING
        route.count(started_ns)
        if reply is NO_REPLY:
            return []
        if route.encodes_at_once:
            pieces = route.encode_answer(correlation_id, reply)
            if self._fresh_errors:
                self.context.node.journal.refused(self.context, self._fresh_errors)
            return pieces
        encoding = route.encode_patiently(correlation_id, reply)
        try:
            next(encoding)
        except StopIteration as done:
            if self._fresh_errors:
                self.context.node.journal.refused(self.context, self._fresh_errors)
            return done.value  # type: ignore[no-any-return]
        self._begin(self._send_encoded(encoding))
        return PENDING

    # Large requests and answers

    def _begin(self, work: Work) -> Task:
        task = self._task = self.context.node.turns.new_task(self._fail)
        task.begin(work)
        return task

    def _serve_in_turns(
        self, route: Route, correlation_id: int, started_ns: int, frame: memoryview, position: int
    ) -> None:
        if len(frame) <= SHARED_BYTES:
            # It may lie where the next bytes of anybody are received.
            frame = memoryview(bytearray(frame))
        task = self.context.node.turns.new_task(self._fail)
        large = LargeRequest(route, self.context, task, len(frame))

        def work() -> Work:
            ask = yield from large.decode(frame, position)
            is_counted = not route.is_exempt(ask, self.context)
            count_time = self._count_time_if_limited if is_counted else _count_nothing
            response = yield from large.respond(ask, count_time)
            yield from self._answer_in_turns(route, correlation_id, started_ns, response)

        self._task = task
        task.begin(work())

    def _answer_in_turns(self, route: Route, correlation_id: int, started_ns: int, reply: Reply) -> Work:
        response = yield from settle(reply)
        self.context.abandon = None
        route.count(started_ns)
        if response is NO_REPLY:
            self._deliver([])
        else:
            yield from self._send_encoded(route.encode_patiently(correlation_id, response))

    def _send_encoded(self, encoding: Generator[None, None, Pieces]) -> Work:
        pieces = yield from encoding
        # Others were served meanwhile, so nobody knows whose these are.
        self._fresh_errors.clear()
        self._deliver(pieces)

    def _deliver(self, pieces: Pieces) -> None:
        task, self._task = self._task, None
        assert task is not None, "what is worked on in turns has a task"
        self._answer_later(held(pieces, task))

    def _count_time_if_limited(self, took_ns: int, response: Any) -> Any:
        if self.context.node.quotas.limits_requests:
            return self._count_time(took_ns, response)
        return response

    def _count_time(self, took_ns: int, response: Any) -> Any:
        """Count the time of a request against its client's quota, in percent of a second."""
        context, node = self.context, self.context.node
        throttle_ms = node.quotas.record(
            QuotaKind.REQUEST,
            context.user,
            context.client_id or "",
            took_ns / 1e7,
            node.clock.monotonic_ms(),
        )
        if throttle_ms <= 0:
            return response
        context.mute(throttle_ms, QuotaKind.REQUEST.value)
        # An answer that comes later, or is encoded already, can no longer say so. The client has to
        # wait all the same.
        known_ms = getattr(response, "throttle_time_ms", None)
        if known_ms is None or known_ms >= throttle_ms:
            return response
        return replace(response, throttle_time_ms=throttle_ms)

    def _learn(self, ask: Any, frame: memoryview, body_at: int, route: Route, new_lanes: NewLanes) -> None:
        lanes = self._lanes_by_key.get(route.api.key)
        if lanes is None:
            lanes = new_lanes(self.context, self._answer_later, self._fail)
            self._lanes_by_key[route.api.key] = lanes
            self._lanes = tuple(self._lanes_by_key.values())
        lanes.learn(ask, frame, body_at, route)

    def _forget_lanes(self) -> None:
        self._lanes_by_key.clear()
        self._lanes = ()
        self._principal = self.context.principal
        self._rights_version = self.context.node.authorizer.version

    def close(self) -> None:
        """The connection is closed: nobody waits any more."""
        self.context.node.journal.closed(self.context)
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self.context.abandon is not None:
            self.context.abandon()
            self.context.abandon = None
        self.context.closed()

    def _park(self, route: Route, correlation_id: int, started_ns: int, reply: Deferred[Any]) -> None:
        def answer(value: Any) -> None:
            self.context.abandon = None
            try:
                pieces = self._finish(route, correlation_id, started_ns, value)
            except Unencodable as error:
                self._fail(error)
            else:
                if pieces is not None:
                    self._answer_later(pieces)

        reply.when_done(answer, self._fail)


def _decode_beginning(route: Route, frame: memoryview, position: int) -> Any:
    """Decode a request of many bytes, if it has few elements as most such requests do. Otherwise None."""
    try:
        next(patient_decoder_of(route.api.request, route.version)(frame, position, len(frame)))
    except StopIteration as done:
        return done.value[0]
    return None


def _answer_unknown_version(api_key: int, version: int, correlation_id: int) -> Pieces:
    """A client that asks for versions in a version we do not know learns which we do. All else is closed."""
    if api_key != ApiKey.API_VERSIONS:
        raise UnsupportedRequest(api_key, version, correlation_id)
    versions = SERVED[ApiKey.API_VERSIONS].versions
    known = ApiVersion(api_key=api_key, min_version=versions.first, max_version=versions.last)
    answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(known,))
    pieces: Pieces = [b""]
    encoder_of(ApiVersionsResponse, 0)(answer, pieces.append)
    pieces[0] = _SIZE_AND_ID.pack(4 + sum(map(len, pieces)), correlation_id)
    return pieces

"""What can be made to go wrong between a client and a node, for the requests one chooses.

    node.faults.refuse("produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=2)
    node.faults.delay("fetch", 0.5)
    node.faults.drop("find_coordinator", times=1)      # no answer, ever
    node.faults.disconnect("metadata")                 # the connection ends instead of an answer
    node.faults.lose_answer("produce", times=1)        # served, but the connection ends before the answer
    node.faults.pretend("2.8")                         # speak no newer protocol than Apache Kafka 2.8 does
    node.faults.slow_disk(0.2)                         # each sync of a log takes so much longer

A fault holds for requests that come from now on, on any connection, until it has hit `times` times, was
removed, or everything was cleared. If several match, the oldest does. `pretend` holds for connections made
after it.

Faults are set from the test's thread and met in the node's. Each change replaces the whole tuple of them, so
neither waits for the other.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum, auto
from threading import Lock
from typing import Any, Final

from ottla.runtime.connections.connection import Connection, Session
from ottla.runtime.connections.outbox import Piece
from ottla.testing.refusals import refusal_of
from ottla.testing.releases import newest_versions
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import replace as replace_fields
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import (
    UnsupportedRequest,
    decode_request,
    decode_response,
    encode_response,
    peek_api_key,
)
from ottla.world.workers import MakeSyncs, SyncJob, SyncResult


class Deed(Enum):
    """What a fault does to a request."""

    REFUSE = auto()
    DELAY = auto()
    DROP = auto()
    DISCONNECT = auto()
    LOSE_ANSWER = auto()


class OnPurpose(ConnectionError):
    """Why a connection was closed: a fault asked for it."""


@dataclass(eq=False)
class Fault:
    """One fault. `hits` says how many requests it has met."""

    api: ApiKey
    deed: Deed
    times: int | None = None
    error: ErrorCode = ErrorCode.NONE
    delay_s: float = 0.0
    hits: int = 0
    _faults: "Faults | None" = field(default=None, repr=False)

    def remove(self) -> None:
        """Let requests pass again."""
        if self._faults is not None:
            self._faults.remove(self)

    def __enter__(self) -> "Fault":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


class Faults:
    """The faults of one node. They outlive its restarts."""

    def __init__(self) -> None:
        self._active: tuple[Fault, ...] = ()
        self._lock: Final = Lock()
        self.release: str | None = None
        self.sync_delay_s = 0.0
        # Connections whose request was swallowed or waits. Only the node's thread touches them.
        self.held: set[Connection] = set()
        self.slowed: set[SlowSyncs] = set()

    def refuse(self, api: str | ApiKey, error: ErrorCode | str, *, times: int | None = None) -> Fault:
        """Answer with an error, without serving the request."""
        return self._add(Fault(_api(api), Deed.REFUSE, times, error=_error(error)))

    def delay(self, api: str | ApiKey, seconds: float, *, times: int | None = None) -> Fault:
        """Serve a request only after a while."""
        return self._add(Fault(_api(api), Deed.DELAY, times, delay_s=seconds))

    def drop(self, api: str | ApiKey, *, times: int | None = None) -> Fault:
        """Neither serve a request nor answer it. Its connection stays open, and silent."""
        return self._add(Fault(_api(api), Deed.DROP, times))

    def disconnect(self, api: str | ApiKey, *, times: int | None = None) -> Fault:
        """Close the connection instead of serving a request."""
        return self._add(Fault(_api(api), Deed.DISCONNECT, times))

    def lose_answer(self, api: str | ApiKey, *, times: int | None = None) -> Fault:
        """Serve a request, and close the connection before the answer is sent."""
        return self._add(Fault(_api(api), Deed.LOSE_ANSWER, times))

    def pretend(self, release: str | None) -> None:
        """Speak no newer protocol than a release of Apache Kafka does; None ends it."""
        if release is not None:
            newest_versions(release)
        self.release = release

    @contextmanager
    def slow_disk(self, seconds: float) -> Iterator[None]:
        """Let each sync of a log take so much longer, for as long as the block takes."""
        self.sync_delay_s = seconds
        try:
            yield
        finally:
            self.sync_delay_s = 0.0

    def remove(self, fault: Fault) -> None:
        """Let the requests of one fault pass again."""
        with self._lock:
            self._active = tuple(other for other in self._active if other is not fault)

    def clear(self) -> None:
        """Let all requests pass again."""
        with self._lock:
            self._active = ()
        self.release = None
        self.sync_delay_s = 0.0

    def meet(self, api_key: int) -> Fault | None:
        """Return the fault that a request meets, and count it."""
        for fault in self._active:
            if fault.api == api_key:
                with self._lock:
                    fault.hits += 1
                    if fault.times is not None and fault.hits >= fault.times:
                        self._active = tuple(other for other in self._active if other is not fault)
                return replace(fault, _faults=None)
        return None

    def let_go(self) -> None:
        """Close the connections that wait for nothing, so that a node need not wait for them when it stops.

        Syncs that are over and held back are reported at once.
        """
        self.sync_delay_s = 0.0
        for syncs in list(self.slowed):
            syncs.let_go()
        for connection in list(self.held):
            connection.close(OnPurpose("the node stops"))
        self.held.clear()

    def _add(self, fault: Fault) -> Fault:
        fault._faults = self
        with self._lock:
            self._active = (*self._active, fault)
        return fault


class SlowSyncs:
    """Syncs that take longer when the faults say so. The data is synced, and known to be only later."""

    def __init__(
        self,
        make_syncs: MakeSyncs,
        faults: Faults,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Sequence[SyncResult]], None],
    ) -> None:
        self._faults = faults
        self._loop = loop
        self._deliver = deliver
        self._held: deque[Sequence[SyncResult]] = deque()
        self._syncs = make_syncs(self._hold)
        faults.slowed.add(self)

    def begin(self, job: SyncJob) -> None:
        """Begin a sync."""
        self._syncs.begin(job)

    def close(self) -> None:
        """Stop, after what has begun. What is held back is not delivered any more."""
        self._held.clear()
        self._faults.slowed.discard(self)
        self._syncs.close()

    def let_go(self) -> None:
        """Deliver all that is held back."""
        while self._held:
            self._deliver_late()

    def _hold(self, results: Sequence[SyncResult]) -> None:
        delay_s = self._faults.sync_delay_s
        if not delay_s:
            self._deliver(results)
            return
        self._held.append([item._replace(took_ns=item.took_ns + int(delay_s * 1e9)) for item in results])
        self._loop.call_later(delay_s, self._deliver_late)

    def _deliver_late(self) -> None:
        # Nothing is held any more if all was let go.
        if self._held:
            self._deliver(self._held.popleft())


class FaultySession:
    """A session with faults before it. A connection talks to this one instead."""

    def __init__(
        self, session: Session, connection: Connection, faults: Faults, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._session = session
        self._connection = connection
        self._faults = faults
        self._loop = loop
        self._newest = None if faults.release is None else newest_versions(faults.release)

    def receive(self, frame: memoryview) -> Sequence[Piece] | None:
        """Serve a request, unless it meets a fault."""
        api_key, version = peek_api_key(frame)
        fault = self._faults.meet(api_key)
        if fault is not None:
            return self._suffer(fault, frame)
        if self._newest is not None:
            return self._serve_as_older(frame, api_key, version, self._newest)
        return self._session.receive(frame)

    def close(self) -> None:
        """The connection is closed."""
        self._faults.held.discard(self._connection)
        self._session.close()

    def _suffer(self, fault: Fault, frame: memoryview) -> Sequence[Piece] | None:
        if fault.deed is Deed.REFUSE:
            return _refuse(frame, fault.error)
        if fault.deed is Deed.DISCONNECT:
            raise OnPurpose("a fault closes it")
        if fault.deed is Deed.LOSE_ANSWER:
            self._session.receive(frame)
            raise OnPurpose("a fault loses the answer")
        self._faults.held.add(self._connection)
        if fault.deed is Deed.DELAY:
            # The connection's buffer is used again as soon as this returns.
            self._loop.call_later(fault.delay_s, self._serve_late, memoryview(bytearray(frame)))
        return None

    def _serve_late(self, frame: memoryview) -> None:
        connection = self._connection
        self._faults.held.discard(connection)
        if connection.is_closed:
            return
        try:
            answer = self._session.receive(frame)
        except Exception as error:
            # It is what the connection does with any error of its session.
            connection.fail(error)
            return
        if answer is not None:
            connection.answer_later(answer)

    def _serve_as_older(
        self, frame: memoryview, api_key: int, version: int, newest: dict[ApiKey, int]
    ) -> Sequence[Piece] | None:
        known = {int(key): last for key, last in newest.items()}
        if version > known.get(api_key, -1):
            if api_key == ApiKey.API_VERSIONS:
                return [_older_versions_for_newer_client(frame, newest)]
            correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
            raise UnsupportedRequest(api_key, version, correlation_id)
        answer = self._session.receive(frame)
        if api_key != ApiKey.API_VERSIONS or answer is None:
            return answer
        return [_capped(b"".join(bytes(piece) for piece in answer), version, newest)]  # type: ignore[arg-type]


def _refuse(frame: memoryview, error: ErrorCode) -> Sequence[Piece]:
    head, request = decode_request(frame)
    if head.api.key is ApiKey.PRODUCE and request.acks == 0:
        return []
    answer = refusal_of(head.api.response, request, head.version, error)
    return [encode_response(answer, head.api, head.version, head.correlation_id)]


def _capped(frame: bytes, version: int, newest: dict[ApiKey, int]) -> bytes:
    """Take what is newer than a release out of an answer to ApiVersions, and the features it did not have."""
    api = api_of(ApiKey.API_VERSIONS)
    correlation_id, answer = decode_response(api, version, frame[4:])
    older = replace_fields(
        answer,
        api_keys=_capped_keys(answer.api_keys, newest),
        supported_features=(),
        finalized_features=(),
        finalized_features_epoch=-1,
    )
    return encode_response(older, api, version, correlation_id)


def _capped_keys(keys: Sequence[Any], newest: dict[ApiKey, int]) -> tuple[Any, ...]:
    capped = (
        replace_fields(key, max_version=min(key.max_version, newest.get(ApiKey(key.api_key), -1)))
        for key in keys
    )
    return tuple(key for key in capped if key.min_version <= key.max_version)


def _older_versions_for_newer_client(frame: memoryview, newest: dict[ApiKey, int]) -> bytes:
    """Answer a client that is newer than the release: error 35 in version 0, with all that is spoken."""
    from ottla.broker.apis.cluster.api_versions import advertised_versions
    from ottla.wire.messages.api_versions import ApiVersionsResponse

    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_capped_keys(advertised_versions(), newest)
    )
    correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
    return encode_response(answer, api_of(ApiKey.API_VERSIONS), 0, correlation_id)


def _api(api: str | ApiKey) -> ApiKey:
    if isinstance(api, ApiKey):
        return api
    try:
        return ApiKey[api.upper()]
    except KeyError:
        hint = _similar(api, [key.name for key in ApiKey])
        raise ValueError(
            f"{api!r} is not an API: use Kafka's name in snake case, for example 'find_coordinator'{hint}"
        ) from None


def _error(error: str | ErrorCode) -> ErrorCode:
    if isinstance(error, ErrorCode):
        return error
    try:
        return ErrorCode[error.upper()]
    except KeyError:
        hint = _similar(error, [code.name for code in ErrorCode])
        raise ValueError(
            f"{error!r} is not an error of Kafka's protocol: use a name such as 'not_enough_replicas'{hint}"
        ) from None


def _similar(name: str, names: Sequence[str]) -> str:
    """Return the names that one may have meant, for the end of a sentence."""
    # Java's names of exceptions are tried as well: NotEnoughReplicasException.
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Exception")).upper()
    similar = [found.lower() for found in get_close_matches(snake, names)]
    return f". Did you mean {' or '.join(map(repr, similar))}?" if similar else ""

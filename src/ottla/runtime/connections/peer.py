"""A connection to another node: requests out, answers back in order, all by callbacks on the node's loop.

It is the other side of `connection.py`. A peer works on the world's network and scheduler, so it runs in a
simulation as it does in a process.

    peer = Peer(world, memory, address, PeerSettings(...), lost)
    peer.connect(ready)
    peer.ask(request, version, answered)

Requests may be pipelined; a node answers in the order it was asked, so the correlation id only checks that
nothing was lost in between. A peer that breaks, falls silent or answers nonsense closes itself: `lost` is
called with the reason, each waiting request is answered with the same `PeerLost`, and the peer is never used
again. To connect again, and when, is its owner's business.
"""

import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.runtime.connections.outbox import Flushed, Outbox
from ottla.runtime.connections.receive_buffer import ReceiveBuffer, SharedBuffer
from ottla.runtime.connections.tls import CIPHER_BYTES_AT_ONCE, TlsTransport
from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes, WireError
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.sasl.bearer_tokens import NoBearerToken
from ottla.wire.sasl.login import Login, UntrustedServer
from ottla.wire.versions import Versions
from ottla.world.network import READABLE, WRITABLE, Address, Connecting, Transport
from ottla.world.scheduler import Timer
from ottla.world.world import World

SOFTWARE_NAME: Final = "ottla-node"
_SASL_VERSION: Final = 2
FRAMES_AT_ONCE: Final = 64
"""How many answers are taken in one turn: a peer that sends fast must not keep the loop from the others."""


class Unanswered(Exception):
    """A request to another node got no response. The message says why."""


class PeerLost(Unanswered):
    """The connection to another node is over. The message says to which, and why."""

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused
        """Nobody listens there."""


class NotServed(Unanswered):
    """The other node does not serve a request in any version that this one knows."""


Answer: TypeAlias = Any
Answered: TypeAlias = Callable[[Answer], None]
"""Called with the response, or with a `PeerLost`."""


class PeerSecurity(NamedTuple):
    """How a connection to another node is encrypted, and how this node logs in there."""

    tls: ssl.SSLContext | None = None
    mechanism: str | None = None
    make_login: Callable[[], Login] | None = None


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Bounds on a connection to another node."""

    client_id: str | None = None
    software_version: str = "unknown"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    in_flight_max: int = 100
    unsent_bytes_max: int = 16 << 20
    frame_bytes_max: int = 104_857_600
    # Whether to learn the other node's versions before `ready` is called.
    learns_versions: bool = True
    security: PeerSecurity | None = None


class PeerMemory:
    """The memory that all peers of a loop receive into and send from."""

    def __init__(self, shared_buffer: SharedBuffer, staging: memoryview) -> None:
        self.shared_buffer = shared_buffer
        self.staging = staging


class _Waiting(NamedTuple):
    correlation_id: int
    api: Api
    version: int
    answered: Answered
    timer: Timer


class Peer:
    """One connection to one node."""

    def __init__(
        self,
        world: World,
        memory: PeerMemory,
        address: Address,
        settings: PeerSettings,
        lost: Callable[[PeerLost], None],
        server_name: str | None = None,
    ) -> None:
        """`lost` is called once, when the connection is over for any reason but `close`.

        `server_name` is whom a certificate has to be for, if that is not the address.
        """
        self._server_name = server_name or address[0]
        self.address = address
        self.versions: dict[int, Versions] = {}
        self.is_closed = False
        self._world = world
        self._memory = memory
        self._settings = settings
        self._lost = lost
        self._ready: Callable[[], None] | None = None
        self._connecting: Connecting | None = None
        self._connect_timer: Timer | None = None
        self._transport: Transport | None = None
        self._buffer = ReceiveBuffer(memory.shared_buffer, settings.frame_bytes_max)
        self._outbox: Outbox | None = None
        self._unsent_bytes = 0
        self._events = READABLE
        self._is_resuming = False
        self._waiting: deque[_Waiting] = deque()
        self._correlation_id = 0
        self._login: Login | None = None

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Say whether so much is on its way that the next request has to wait."""
        return (
            len(self._waiting) >= self._settings.in_flight_max
            or self._unsent_bytes >= self._settings.unsent_bytes_max
        )

    def connect(self, ready: Callable[[], None]) -> None:
        """Connect, and learn the other node's versions. `ready` is called when requests may be sent."""
        assert self._ready is None, "a peer connects once"
        self._ready = ready
        host, port = self.address
        self._connect_timer = self._world.scheduler.call_later(
            self._settings.connect_timeout_ms, self._connect_is_late
        )
        self._connecting = self._world.network.connect(host, port, self._connected, self._not_connected)

    def version_for(self, request: type[Any], version_min: int = 0) -> int:
        """Return the newest version of a request that both nodes know. Raises `NotServed`."""
        spec = spec_of(request)
        assert spec.api_key is not None, "only requests have an API key"
        theirs = self.versions.get(spec.api_key)
        if theirs is not None:
            version = min(spec.versions.last - int(spec.latest_version_unstable), theirs.last)
            if version >= max(spec.versions.first, theirs.first, version_min):
                return version
        raise NotServed(
            f"node {self._where} does not support any version of {ApiKey(spec.api_key).name} that this node "
            f"knows ({spec.versions}): upgrade the older of the two"
        )

    def ask(self, request: Any, version: int, answered: Answered, timeout_ms: int | None = None) -> None:
        """Send a request. `answered` gets the response, or a `PeerLost`, never before this has returned."""
        assert not self.is_full, "the owner asks `is_full` first"
        if self._transport is None or self.is_closed:
            self._world.scheduler.call_soon(answered, PeerLost(f"{self._where}: it is not connected"))
            return
        key = spec_of(type(request)).api_key
        assert key is not None, "only requests have an API key"
        api = api_of(key)
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request(request, api, version, correlation_id, self._settings.client_id)
        timer = self._world.scheduler.call_later(
            self._settings.request_timeout_ms if timeout_ms is None else timeout_ms,
            self._answer_is_late,
            api,
        )
        self._waiting.append(_Waiting(correlation_id, api, version, answered, timer))
        assert self._outbox is not None, "it is made with the transport"
        self._outbox.add([frame])
        self._unsent_bytes += len(frame)
        self._flush()

    def close(self) -> None:
        """Close. Waiting requests get a `PeerLost`; `lost` is not called."""
        _answer(self._end(), PeerLost(f"the connection to {self._where} was closed"))

    # Connecting

    def _connected(self, transport: Transport) -> None:
        self._connecting = None
        security = self._settings.security
        if security is not None and security.tls is not None:
            scheduler = self._world.scheduler
            transport = TlsTransport(
                transport,
                security.tls,
                scheduler,
                memoryview(bytearray(CIPHER_BYTES_AT_ONCE)),
                server_name=self._server_name,
                is_server=False,
            )
        self._transport = transport
        self._outbox = Outbox(transport, self._memory.staging)
        transport.watch(self._on_event, READABLE)
        if self._settings.learns_versions:
            hello = ApiVersionsRequest(
                client_software_name=SOFTWARE_NAME, client_software_version=self._settings.software_version
            )
            self.ask(hello, _API_VERSIONS.versions.last, self._take_versions)
        else:
            self._maybe_log_in()

    def _not_connected(self, error: OSError) -> None:
        self._connecting = None
        is_refused = isinstance(error, ConnectionRefusedError)
        self._fail(f"cannot connect: {error.strerror or error}", is_refused=is_refused)

    def _connect_is_late(self) -> None:
        self._connect_timer = None
        self._fail(f"no connection within {self._settings.connect_timeout_ms} ms")

    def _take_versions(self, answer: Any) -> None:
        if isinstance(answer, PeerLost):
            return
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code is ErrorCode.UNSUPPORTED_VERSION:
            # An older node answers in version 0 and says which versions it has: the oldest is always one.
            self.ask(ApiVersionsRequest(), 0, self._take_versions)
        elif answer.error_code is not ErrorCode.NONE:
            self._fail(f"it refused the ApiVersions request: {answer.error_code.name}")
        else:
            self.versions = {
                key.api_key: Versions(key.min_version, key.max_version) for key in answer.api_keys
            }
            self._maybe_log_in()

    # Logging in

    def _maybe_log_in(self) -> None:
        security = self._settings.security
        if security is None or security.make_login is None:
            self._become_ready()
            return
        assert security.mechanism is not None, "a login is by a mechanism"
        try:
            self._login = security.make_login()
        except NoBearerToken as error:
            self._fail(f"this node has no token to log in with: {error}")
            return
        self.ask(SaslHandshakeRequest(mechanism=security.mechanism), 1, self._take_handshake)

    def _take_handshake(self, answer: Any) -> None:
        if isinstance(answer, PeerLost):
            return
        assert self._login is not None, "it begins with the handshake"
        if answer.error_code is not ErrorCode.NONE:
            self._fail(f"it refused the SASL mechanism: it supports {', '.join(answer.mechanisms)}")
        else:
            self._send_token(self._login.first())

    def _send_token(self, token: bytes) -> None:
        self.ask(SaslAuthenticateRequest(auth_bytes=token), _SASL_VERSION, self._take_challenge)

    def _take_challenge(self, answer: Any) -> None:
        if isinstance(answer, PeerLost):
            return
        assert self._login is not None, "it begins with the handshake"
        if answer.error_code is not ErrorCode.NONE:
            self._fail(f"it refused the login: {answer.error_message}")
            return
        try:
            token = self._login.receive(answer.auth_bytes)
        except UntrustedServer as failure:
            self._fail(str(failure))
            return
        if token is None:
            self._login = None
            self._become_ready()
        else:
            self._send_token(token)

    def _become_ready(self) -> None:
        if self._connect_timer is not None:
            self._connect_timer.cancel()
            self._connect_timer = None
        assert self._ready is not None, "it was set by `connect`"
        self._ready()

    # Receiving

    def _on_event(self, events: int) -> None:
        if events & WRITABLE:
            self._flush()
        if self.is_closed or events == WRITABLE:
            return
        assert self._transport is not None, "it is what is watched"
        try:
            count = self._buffer.receive(self._transport.receive_into)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(f"the connection broke: {error.strerror or error}")
            return
        if count == 0:
            self._fail("it closed the connection")
            return
        self._take_frames()

    def _take_frames(self) -> None:
        self._is_resuming = False
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame = self._buffer.next_frame()
                if frame is None:
                    break
                response = self._decode(frame)
            except WireError as error:
                self._fail(f"it sent an invalid response: {error}")
                return
            waiting = self._waiting.popleft()
            waiting.timer.cancel()
            waiting.answered(response)
            if self.is_closed:
                return
        self._buffer.keep_rest()
        if self._buffer.has_frame() and not self._is_resuming:
            self._is_resuming = True
            self._world.scheduler.call_soon(self._resume)

    def _resume(self) -> None:
        if not self.is_closed:
            self._take_frames()

    def _decode(self, frame: memoryview) -> Any:
        """Return the response to the request that waits longest."""
        if not self._waiting:
            raise MalformedBytes("an unexpected response arrived")
        waiting = self._waiting[0]
        if len(frame) < 4:
            raise MalformedBytes(f"a response of {len(frame)} bytes has no correlation id")
        correlation_id = int.from_bytes(frame[:4], signed=True)
        if correlation_id != waiting.correlation_id:
            raise MalformedBytes(f"response {correlation_id} arrived instead of {waiting.correlation_id}")
        version = waiting.version
        if waiting.api.response is ApiVersionsResponse and _says_unsupported(frame):
            version = 0
        # The frame lies in memory that is used again: what is decoded must not point there.
        return decode_response(waiting.api, version, bytes(frame))[1]

    def _answer_is_late(self, api: Api) -> None:
        self._fail(f"{api.key.name} was not answered in time")

    # Sending

    def _flush(self) -> None:
        assert self._outbox is not None, "only what is connected is flushed"
        try:
            flushed = self._outbox.flush()
        except OSError as error:
            # In a turn of its own: the caller learns of it after `ask` has returned.
            self._world.scheduler.call_soon(self._fail, f"the connection broke: {error.strerror or error}")
            return
        self._unsent_bytes = self._outbox.size_bytes
        wanted = READABLE | WRITABLE if flushed is Flushed.SOCKET_FULL else READABLE
        if wanted != self._events:
            self._events = wanted
            assert self._transport is not None, "the outbox belongs to it"
            self._transport.change(wanted)

    # The end

    @property
    def _where(self) -> str:
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _fail(self, reason: str, *, is_refused: bool = False) -> None:
        if not self.is_closed:
            error = PeerLost(f"{self._where}: {reason}", is_refused=is_refused)
            waiting = self._end()
            # The owner first: a request that is asked again while the others are answered must not come here.
            self._lost(error)
            _answer(waiting, error)

    def _end(self) -> deque[_Waiting]:
        """Close, and return what waits for an answer."""
        if self.is_closed:
            return deque()
        self.is_closed = True
        if self._connect_timer is not None:
            self._connect_timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None:
            self._transport.close()
        self._buffer.clear()
        if self._outbox is not None:
            self._outbox.clear()
        self._unsent_bytes = 0
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.timer.cancel()
        return waiting


def _answer(waiting: deque[_Waiting], error: PeerLost) -> None:
    for one in waiting:
        one.answered(error)


_API_VERSIONS: Final = api_of(ApiKey.API_VERSIONS)


def _says_unsupported(frame: memoryview) -> bool:
    return int.from_bytes(frame[4:6], signed=True) == ErrorCode.UNSUPPORTED_VERSION

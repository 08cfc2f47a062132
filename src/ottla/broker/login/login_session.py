"""A session that begins with a login (SASL), and one that has to log in again after a while (KIP-368).

    INITIAL       ApiVersions or SaslHandshake; anything else closes the connection
    HANDSHAKE     after ApiVersions: only SaslHandshake
    AUTHENTICATE  SaslAuthenticate, or tokens without a header if the handshake was of version 0
    COMPLETE      every API, by the session behind this one

A login without a lifetime takes itself out of the way: the connection then calls the session behind it. A
failed login is answered late, and the connection is closed with it. After many, a right one is answered late
as well (see `guesses`). Before the login, frames are small, and there is a deadline.
"""

import struct
from collections.abc import Sequence
from enum import Enum, auto
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.authorization.refusals import only_error
from ottla.broker.login.mechanisms import Mechanism
from ottla.broker.serving.dispatch import PENDING, Session
from ottla.broker.serving.served_apis import SERVED
from ottla.runtime.connections.connection import Connection
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.runtime.connections.outbox import Piece
from ottla.security.principal import Principal
from ottla.security.sasl.mechanism import Identity, LoginFailed, SaslConversation
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.codec import decode_from, encode
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import UnsupportedRequest, decode_request_head
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeResponse
from ottla.world.scheduler import Timer

if TYPE_CHECKING:
    from ottla.broker.login.logins import Logins

LOGIN_MS_MAX: Final = 30_000
"""How long a login may take. Deviation: in Kafka an unfinished one may stay for ten minutes."""
REAUTHENTICATION_MS_MIN: Final = 1_000
_SIZE_AND_ID: Final = Struct(">ii")
_KEY_AND_VERSION: Final = Struct(">hh")
_NO_ERROR: Final = b"\0\0"
_FRAMES_FROM: Final = 1
"""From this version of SaslHandshake on tokens travel in SaslAuthenticate."""


class _State(Enum):
    INITIAL = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()


class LoginSession:
    """The conversation with a client until it has logged in, and again when its login expires."""

    def __init__(
        self, logins: "Logins", connection: Connection, session: Session, mechanisms: dict[str, Mechanism]
    ) -> None:
        """`session` serves the client that has logged in. `mechanisms` are those of its listener."""
        self._logins = logins
        self._connection = connection
        self._session = session
        self._mechanisms = mechanisms
        self._state = _State.INITIAL
        self._mechanism: Mechanism | None = None
        self._conversation: SaslConversation | None = None
        self._has_frames = True
        self._identity: Identity | None = None
        self._began_ms = 0
        # By the monotonic clock; None while the login does not expire.
        self._expires_ms: int | None = None
        self._timer: Timer | None = logins.scheduler.call_later(LOGIN_MS_MAX, self._is_late)
        logins.begun(self)
        connection.limit_frames(logins.frame_bytes_max)

    def receive(self, frame: memoryview) -> Sequence[Piece] | None:
        """Take the next step of the login, or serve a client that has logged in."""
        if self._state is _State.COMPLETE:
            return self._receive_later(frame)
        if self._state is _State.FAILED:
            raise ConnectionEnded("a client that failed to log in sent more")
        if self._state is _State.AUTHENTICATE:
            return self._authenticate(frame)
        try:
            api_key, version = _KEY_AND_VERSION.unpack_from(frame)
        except struct.error as error:
            raise ConnectionEnded("a client sent no request before it logged in") from error
        if api_key == ApiKey.API_VERSIONS and self._state is _State.INITIAL:
            return self._tell_versions(frame)
        if api_key != ApiKey.SASL_HANDSHAKE:
            raise ConnectionEnded(f"a client sent API {api_key} before it logged in")
        return self._shake_hands(frame, version)

    def close(self) -> None:
        """Take note that the connection is closed."""
        self._stop_waiting()
        self._session.close()

    # The steps

    def _tell_versions(self, frame: memoryview) -> Sequence[Piece] | None:
        pieces = self._session.receive(frame)
        assert pieces is not None, "ApiVersions is answered at once"
        # The error stands behind the size and the correlation id, in every version.
        if bytes(b"".join(pieces)[8:10]) == _NO_ERROR:
            self._state = _State.HANDSHAKE
        return pieces

    def _shake_hands(self, frame: memoryview, version: int) -> Sequence[Piece] | None:
        head = decode_request_head(frame)
        if version not in SERVED[ApiKey.SASL_HANDSHAKE].versions:
            raise UnsupportedRequest(ApiKey.SASL_HANDSHAKE, version, head.correlation_id)
        ask, _ = decode_from(head.api.request, frame, version, head.body_position)
        self._mechanism = self._mechanisms.get(ask.mechanism)
        enabled = tuple(self._mechanisms)
        if self._mechanism is None or (
            self._identity is not None and ask.mechanism != self._session.context.login
        ):
            response = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
            )
            reason = f"the mechanism {ask.mechanism!r} is not enabled on this listener"
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._fail(_frame(response, version, head.correlation_id), reason, error=error)
        self._has_frames = version >= _FRAMES_FROM
        self._conversation = self._mechanism.begin()
        self._began_ms = self._logins.clock.monotonic_ms()
        self._state = _State.AUTHENTICATE
        return _frame(SaslHandshakeResponse(mechanisms=enabled), version, head.correlation_id)

    def _authenticate(self, frame: memoryview) -> Sequence[Piece] | None:
        if not self._has_frames:
            return self._take_token(bytes(frame), None, 0)
        head = decode_request_head(frame)
        key, version = head.api.key, head.version
        if key is not ApiKey.SASL_AUTHENTICATE:
            served = SERVED.get(key)
            if served is None or version not in served.versions:
                raise UnsupportedRequest(key, version, head.correlation_id)
            response = only_error(head.api.response, ErrorCode.ILLEGAL_SASL_STATE)
            pieces = _frame(response, version, head.correlation_id)
            return self._fail(pieces, f"it sent {key.name} instead of a token")
        if version not in SERVED[ApiKey.SASL_AUTHENTICATE].versions:
            raise UnsupportedRequest(key, version, head.correlation_id)
        ask, _ = decode_from(head.api.request, frame, version, head.body_position)
        return self._take_token(bytes(ask.auth_bytes), version, head.correlation_id)

    def _take_token(self, token: bytes, version: int | None, correlation_id: int) -> Sequence[Piece] | None:
        assert self._conversation is not None, "it begins with the handshake"
        assert self._mechanism is not None, "it is chosen with the handshake"
        try:
            challenge = self._conversation.receive(token)
            if challenge.identity is not None:
                self._check_same(challenge.identity)
        except LoginFailed as failure:
            pieces: list[Any] = []
            if version is not None:
                message = failure.message or (
                    "Authentication failed during authentication due to invalid credentials with SASL "
                    f"mechanism {self._mechanism.name}"
                )
                response = SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message, auth_bytes=b""
                )
                pieces = _frame(response, version, correlation_id)
            wait_ms = self._find_wait_ms(is_right=False)
            return self._fail(pieces, str(failure), wait_ms, is_guess=True)
        if challenge.identity is None:
            return _answer(challenge.token, 0, version, correlation_id)
        wait_ms = self._find_wait_ms(is_right=True)
        if not wait_ms:
            return _answer(challenge.token, self._complete(challenge.identity), version, correlation_id)
        identity = challenge.identity
        self._stop_waiting()

        def finish() -> None:
            self._timer = None
            pieces = _answer(challenge.token, self._complete(identity), version, correlation_id)
            self._connection.answer_later(pieces)

        self._timer = self._logins.scheduler.call_later(wait_ms, finish)
        return PENDING

    def _find_wait_ms(self, *, is_right: bool) -> int:
        """Return for how long the outcome is held back, because of wrong passwords before."""
        assert self._conversation is not None, "it begins with the handshake"
        user = self._conversation.user
        wait_ms = self._logins.find_wait_ms(self._connection, user, is_right=is_right)
        if wait_ms is None:
            reason = f"too many wrong passwords from this address, the last one for {user[:64]!r}"
            self._logins.failed(self._connection, reason)
            raise ConnectionEnded(reason)
        return wait_ms

    def _check_same(self, identity: Identity) -> None:
        """Refuse another principal on a connection that belongs to one."""
        known = self._identity
        if known is not None and (known.name, known.principal_type) != (
            identity.name,
            identity.principal_type,
        ):
            message = (
                "Cannot change principals during re-authentication from "
                f"{known.principal_type}.{known.name}: {identity.principal_type}.{identity.name}"
            )
            raise LoginFailed("it wanted to become another principal", message)

    def _complete(self, identity: Identity) -> int:
        """Note the principal that has logged in. Returns how long that holds, 0 for ever."""
        assert self._mechanism is not None, "it is chosen with the handshake"
        self._stop_waiting()
        is_first = self._identity is None
        self._identity = identity
        self._state = _State.COMPLETE
        self._conversation = None
        context = self._session.context
        context.principal = Principal(identity.principal_type, identity.name)
        context.login = self._mechanism.name
        context.is_logged_in_by_token = identity.is_by_token
        self._connection.limit_frames(None)
        lifetime_ms = self._lifetime_ms(identity)
        self._expires_ms = None
        if lifetime_ms is not None:
            self._expires_ms = self._logins.clock.monotonic_ms() + lifetime_ms
        elif is_first:
            self._connection.use_session(self._session)
        self._logins.succeeded(context)
        return max(0, lifetime_ms or 0)

    def _lifetime_ms(self, identity: Identity) -> int | None:
        assert self._mechanism is not None, "it is chosen with the handshake"
        bounds = []
        if self._mechanism.session_ms_max > 0:
            bounds.append(self._mechanism.session_ms_max)
        if identity.expires_ms is not None:
            bounds.append(identity.expires_ms - self._logins.clock.now_ms())
        return min(bounds) if bounds else None

    def _receive_later(self, frame: memoryview) -> Sequence[Piece] | None:
        """Serve a client whose login may have expired, or who logs in again before it does."""
        if self._expires_ms is None:
            return self._session.receive(frame)
        now_ms = self._logins.clock.monotonic_ms()
        is_handshake = len(frame) >= 2 and int.from_bytes(frame[:2]) == ApiKey.SASL_HANDSHAKE
        if is_handshake and now_ms - self._began_ms >= REAUTHENTICATION_MS_MIN:
            version = int.from_bytes(frame[2:4])
            self._timer = self._logins.scheduler.call_later(LOGIN_MS_MAX, self._is_late)
            return self._shake_hands(frame, version)
        if now_ms > self._expires_ms:
            raise ConnectionEnded("the login has expired, and the client did not log in again")
        return self._session.receive(frame)

    # The end of a login

    def _fail(
        self,
        pieces: list[Any],
        reason: str,
        wait_ms: int = 0,
        *,
        is_guess: bool = False,
        error: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED,
    ) -> Sequence[Piece] | None:
        """Answer after a delay, and close. Nothing is read meanwhile, since the answer is pending."""
        self._state = _State.FAILED
        self._stop_waiting()
        self._logins.failed(self._connection, reason, is_guess=is_guess)
        context = self._session.context
        context.node.journal.login_refused(context, error)

        def answer() -> None:
            self._connection.answer_later(pieces)
            self._connection.close()

        self._timer = self._logins.scheduler.call_later(max(wait_ms, self._logins.delay_ms), answer)
        return PENDING

    def give_way(self) -> None:
        """Close, since too many others want to log in."""
        self._connection.close(ConnectionEnded("too many clients are logging in at once"))

    def _is_late(self) -> None:
        self._timer = None
        self._connection.close(ConnectionEnded(f"a login took longer than {LOGIN_MS_MAX // 1000} s"))

    def _stop_waiting(self) -> None:
        self._logins.ended(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _answer(token: bytes, lifetime_ms: int, version: int | None, correlation_id: int) -> list[Any]:
    if version is None:
        return [len(token).to_bytes(4) + token]
    response = SaslAuthenticateResponse(error_message=None, auth_bytes=token, session_lifetime_ms=lifetime_ms)
    return _frame(response, version, correlation_id)


def _frame(response: Any, version: int, correlation_id: int) -> list[Any]:
    api = api_of(type(response).__wire_spec__.api_key)
    tail = b"\0" * api.response_header_version(version)
    body = encode(response, version)
    return [_SIZE_AND_ID.pack(4 + len(tail) + len(body), correlation_id) + tail + body]

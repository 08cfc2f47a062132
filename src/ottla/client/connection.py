"""One connection to one broker: requests out, answers back in order.

The versions both sides know are settled by ApiVersions before the first request. Requests may be pipelined; a
broker answers in the order it was asked, so the correlation id only checks that nothing was lost between.
A connection that breaks or falls silent fails every request still waiting on it and is never used again.
"""

import asyncio
import contextlib
import os
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

from ottla import __version__
from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    RequestTimedOut,
    UnsupportedByBroker,
    UntrustedBroker,
)
from ottla.client.frame_receiver import Frame, FrameReceiver
from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes, NotInVersion
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.versions import Versions

SOFTWARE_NAME = "ottla"
SOFTWARE_VERSION = __version__

Authenticate = Callable[["BrokerConnection"], Awaitable[None]]

_SESSION_SHARE = 0.85
"""For which share of its life a login is used: what waits in the broker has to be answered in time."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Waiting(NamedTuple):
    correlation_id: int
    api: Api
    version: int
    answer: asyncio.Future[Any]


class BrokerConnection:
    """An open connection. Make one with `open_connection`."""

    def __init__(
        self, address: Address, client_id: str | None, timeout_s: float, setup_timeout_s: float
    ) -> None:
        self.address = address
        self.versions: dict[int, Versions] = {}
        self.finalized_features: dict[str, int] = {}
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._setup_timeout_s = setup_timeout_s
        self._transport: asyncio.Transport
        self._receiver: FrameReceiver
        self._waiting: deque[_Waiting] = deque()
        self._correlation_id = 0
        self._lost: ClientError | None = None
        # When to log in again, on another connection. 0: never.
        self._stale_at_s = 0.0
        self._drained: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether another request may be sent."""
        return self._lost is None

    @property
    def is_stale(self) -> bool:
        """Whether the login is about to expire, so that the next request needs another connection."""
        return 0 < self._stale_at_s <= asyncio.get_running_loop().time()

    @property
    def is_usable(self) -> bool:
        """Whether the next request may use this connection."""
        return self.is_open and not self.is_stale

    def is_logged_in_for(self, session_lifetime_ms: int) -> None:
        """Take note of how long the broker lets a login hold; 0 means for ever (KIP-368)."""
        if session_lifetime_ms > 0:
            lifetime_s = session_lifetime_ms / 1000 * _SESSION_SHARE
            self._stale_at_s = asyncio.get_running_loop().time() + lifetime_s

    async def drain(self) -> None:
        """Wait for all answers that are due, and close.

        What takes longer than an answer may is not waited for: callers that gave up took their limits along.
        """
        if self._waiting and self.is_open:
            self._drained = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timeout_s):
                    await self._drained
        await self.close()

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._waiting)

    @property
    def takes_more(self) -> bool:
        """Say whether what was sent has left, but for a little. More would only fill up the memory here."""
        return self._receiver.takes_more.is_set()

    async def until_it_takes_more(self) -> None:
        """Wait until what was sent has left. A broker that reads nothing for too long is given up."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._receiver.takes_more.wait()
        except TimeoutError:
            error = RequestTimedOut(
                f"{self.address} reads nothing of what is sent to it: it may be overloaded"
            )
            self._lose(error)
            self._transport.abort()
            raise error from None

    def version_for(self, request: type[Any], at_most: int | None = None) -> int:
        """Return the newest version of a request that both sides know."""
        spec = spec_of(request)
        assert spec.api_key is not None, "only requests have an API key"
        theirs = self.versions.get(spec.api_key)
        newest = spec.versions.last - int(spec.latest_version_unstable)
        if theirs is not None:
            version = min(newest, theirs.last, newest if at_most is None else at_most)
            if version >= max(spec.versions.first, theirs.first):
                return version
        raise UnsupportedByBroker(
            f"the broker at {self.address} does not support any version of {ApiKey(spec.api_key).name} that "
            f"this client knows ({spec.versions}): upgrade the older of the two"
        )

    async def ask(self, request: Any, version: int | None = None, timeout_s: float | None = None) -> Any:
        """Send a request and wait for the answer."""
        return await self.answer_to(self.send(request, version), type(request).__name__, timeout_s)

    async def answer_to(self, answer: asyncio.Future[Any], what: str, timeout_s: float | None = None) -> Any:
        """Wait for the answer to a request that was sent. `what` names the request in an error."""
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                return await answer
        except TimeoutError:
            error = RequestTimedOut(f"{what} got no answer from {self.address} in time: it may be overloaded")
            self._lose(error)
            raise error from None

    def send(self, request: Any, version: int | None = None) -> asyncio.Future[Any]:
        """Send a request; the future gets the answer. Requests leave in the order of these calls."""
        api, version, correlation_id = self._write(request, version)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(correlation_id, api, version, answer))
        return answer

    def send_unanswered(self, request: Any, version: int | None = None) -> None:
        """Send a request that has no answer: Produce with acks=0."""
        self._write(request, version)

    def hang_up(self) -> None:
        """Close without waiting. What was sent without asking for an answer still leaves."""
        self._lose(ConnectionLost(f"the connection to {self.address} was closed"))

    async def close(self) -> None:
        """Close, after what was sent without asking for an answer. Requests that still wait for one fail."""
        self._lose(ConnectionLost(f"the connection to {self.address} was closed"))
        try:
            async with asyncio.timeout(self._setup_timeout_s):
                await asyncio.shield(self._receiver.closed)
        except TimeoutError:
            # The broker takes nothing any more. A transport would wait for it for ever.
            self._transport.abort()
            await self._receiver.closed

    async def _open(self, tls: ssl.SSLContext | None, authenticate: Authenticate | None) -> Self:
        await self._connect(tls)
        try:
            await self._learn_versions()
            if authenticate is not None:
                await authenticate(self)
        except ConnectionLost as error:
            await self.close()
            spoken = ("" if authenticate is None else "SASL_") + ("PLAINTEXT" if tls is None else "SSL")
            raise ConnectionLost(
                f"{self.address} closed the connection before it answered; check that its listener uses "
                f"{spoken} ({error})"
            ) from error
        except RequestTimedOut as error:
            await self.close()
            raise ConnectionLost(
                f"{self.address} accepts connections, but does not answer like a Kafka broker; check the "
                f"address, and whether the broker is overloaded ({error})"
            ) from error
        except BaseException:
            await self.close()
            raise
        return self

    async def _connect(self, tls: ssl.SSLContext | None) -> None:
        try:
            async with asyncio.timeout(self._setup_timeout_s):
                self._transport, self._receiver = await asyncio.get_running_loop().create_connection(
                    lambda: FrameReceiver(self._answer, self._broken), *self.address, ssl=tls
                )
        except ssl.SSLCertVerificationError as error:
            raise UntrustedBroker(
                f"the certificate of {self.address} is not trusted: {error.verify_message}; check "
                "ssl.ca.location, and that the certificate is for this address"
            ) from error
        except ssl.SSLError as error:
            raise ConnectionLost(
                f"cannot use TLS with {self.address}; check that it is a TLS listener ({error.reason})"
            ) from error
        except TimeoutError as error:
            raise ConnectionLost(
                f"cannot connect to {self.address}: no answer within {self._setup_timeout_s:g} s"
            ) from error
        except OSError as error:
            # Of a refused connection the event loop tells no more than the address.
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            reason = said or str(error) or "it closed the connection; check that it is a TLS listener"
            raise ConnectionLost(f"cannot connect to {self.address}: {reason}") from error

    async def _learn_versions(self) -> None:
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        newest = api_of(ApiKey.API_VERSIONS).versions.last
        answer = await self.ask(request, newest)
        if answer.error_code is ErrorCode.UNSUPPORTED_VERSION:
            # An older broker answers in version 0 and says which versions it has: the oldest is always one.
            answer = await self.ask(ApiVersionsRequest(), 0)
        self.versions = {key.api_key: Versions(key.min_version, key.max_version) for key in answer.api_keys}
        self.finalized_features = {item.name: item.max_version_level for item in answer.finalized_features}

    def _write(self, request: Any, version: int | None) -> tuple[Api, int, int]:
        if self._lost is not None:
            raise self._lost
        if version is None:
            version = self.version_for(type(request))
        key = spec_of(type(request)).api_key
        assert key is not None, "only requests have an API key"
        api = api_of(key)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        try:
            frame = encode_request(request, api, version, self._correlation_id, self._client_id)
        except NotInVersion as error:
            raise UnsupportedByBroker(
                f"the broker at {self.address} supports {api.key.name} up to version {version}, which has no "
                f"{error.field}: upgrade the broker, or leave that out"
            ) from error
        self._transport.write(frame)
        return api, version, self._correlation_id

    def _broken(self, error: Exception | None) -> None:
        """The stream is over, by the broker's will or by what it sent."""
        if error is None:
            self._lose(ConnectionLost(f"the broker at {self.address} closed the connection"))
        else:
            self._lose(ConnectionLost(f"the connection to {self.address} broke: {error}"))

    def _answer(self, frame: Frame) -> None:
        if not self._waiting:
            raise MalformedBytes("an unexpected response arrived")
        waiting = self._waiting[0]
        correlation_id, response = self._decode(waiting, frame)
        if correlation_id != waiting.correlation_id:
            raise MalformedBytes(f"response {correlation_id} arrived instead of {waiting.correlation_id}")
        # Only now: a request whose answer makes no sense fails with all others.
        self._waiting.popleft()
        if not waiting.answer.done():
            waiting.answer.set_result(response)
        self._maybe_drained()

    def _decode(self, waiting: _Waiting, frame: Frame) -> tuple[int, Any]:
        if waiting.api.response is ApiVersionsResponse and _says_unsupported(frame):
            return decode_response(waiting.api, 0, frame)
        return decode_response(waiting.api, waiting.version, frame)

    def _lose(self, error: ClientError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        self._transport.close()
        while self._waiting:
            answer = self._waiting.popleft().answer
            if not answer.done():
                answer.set_exception(error)
                # A caller that gave up must not make the loop complain that nobody looked at the error.
                answer.exception()
        self._maybe_drained()

    def _maybe_drained(self) -> None:
        if self._drained is not None and not self._waiting and not self._drained.done():
            self._drained.set_result(None)


def _says_unsupported(frame: Frame) -> bool:
    return int.from_bytes(frame[4:6], signed=True) == ErrorCode.UNSUPPORTED_VERSION


async def open_connection(
    address: Address,
    *,
    client_id: str | None = "ottla",
    timeout_s: float = 30.0,
    setup_timeout_s: float = 10.0,
    tls: ssl.SSLContext | None = None,
    authenticate: Authenticate | None = None,
) -> BrokerConnection:
    """Connect, settle versions, authenticate."""
    return await BrokerConnection(address, client_id, timeout_s, setup_timeout_s)._open(tls, authenticate)

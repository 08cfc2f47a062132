"""The way to the active controller: a request goes in, and its response comes out later.

Handlers, and the parts of a broker that report to the controller, ask by request and never call a decision.
So they do not know whether the controller is in this process, on another node, or on none at the moment.

What a client asks for is forwarded in an Envelope, with the identity of the client. What the broker has to
say itself is sent as it is. If the controller is not known, cannot be reached or is not the active one any
more, the request waits and goes to the next one, as in Kafka's NodeToControllerChannelManager.
"""

import logging
from collections.abc import Callable
from functools import cache, partial
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, Protocol

from ottla.broker.deferred import Deferred
from ottla.quorum.controller.deciders import NOT_CONTROLLER
from ottla.quorum.controller.decision import Caller, Refusal
from ottla.quorum.quorum_protocols import KnownLeader, LeaderWatch
from ottla.quorum.refusals import SERVED_BY_LEADER, refuse
from ottla.quorum.voters import Endpoint
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import NotServed, PeerLost
from ottla.runtime.log_lines import repeated_lines
from ottla.security.principal_data import encode_principal
from ottla.wire.apis import Api, api_of
from ottla.wire.compiling.error_finder import ErrorFinder, compile_error_finder
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import WireError
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler, Timer

RETRY_MS: Final = 50
"""How long a request that found no active controller waits, unless one shows up earlier."""
ASK_MS_MAX: Final = 60_000
"""How long it goes on in all. Kafka forwards for as long."""

_logger: Final = logging.getLogger("ottla.controller")
_lines: Final = repeated_lines("ottla.controller")


class ControllerChannel(Protocol):
    """Where the controller is asked."""

    when_lost: Callable[[], None] | None
    """Called when the connection to the controller is lost, or there is another controller."""

    def ask(self, ask: Any, caller: Caller | None = None, timeout_ms: int = ASK_MS_MAX) -> Deferred[Any]:
        """Send a request, for the client `caller` or for this node itself, and return its response.

        The response comes when the decision is committed, and published on this node if the controller is
        here. If no active controller decides in time, it refuses the request with REQUEST_TIMED_OUT: then
        nobody knows whether it will be done. The deferred fails if the controller itself does.
        """

    def close(self) -> None:
        """Ask no more. What waits is refused with NOT_CONTROLLER."""


class LocalController:
    """The controller of this node. It refuses with NOT_CONTROLLER when it is not the active one."""

    def __init__(self, ask: Callable[[Any, Caller | None, Callable[[Any], None]], None]) -> None:
        """`ask` is that of the node's `MetadataQuorum`."""
        self._ask = ask
        self.when_lost: Callable[[], None] | None = None

    def ask(
        self,
        ask: Any,
        caller: Caller | None = None,
        timeout_ms: int = ASK_MS_MAX,  # noqa: ARG002 - it answers as soon as it has decided
    ) -> Deferred[Any]:
        """Let the controller of this node decide."""
        response: Deferred[Any] = Deferred()
        try:
            self._ask(ask, caller, response.resolve)
        except Exception as error:
            if response.is_done:
                raise
            # A bug of ours, or a decision that does not fit into a batch. It concerns this request alone. It
            # is logged here because some requests are sent without waiting for the response.
            _logger.critical("the controller failed on %s", type(ask).__name__, exc_info=error)
            response.fail(error)
        return response

    def close(self) -> None:
        """Do nothing: the quorum refuses what waits when it resigns."""


class _Asked:
    """A request that has not been decided about yet."""

    __slots__ = ("ask", "caller", "deadline", "response", "timeout_ms")

    def __init__(self, ask: Any, caller: Caller | None, timeout_ms: int) -> None:
        self.ask = ask
        self.caller = caller
        # None stands for `controller.socket.timeout.ms`. A client has no say in when a connection is closed.
        self.timeout_ms = timeout_ms if caller is None and timeout_ms < ASK_MS_MAX else None
        self.response: Deferred[Any] = Deferred()
        self.deadline: Timer | None = None


class ChannelWorld(NamedTuple):
    """What the channel uses of the world around it."""

    clock: Clock
    scheduler: Scheduler
    make_link: Callable[[Endpoint], Link]


class ClusterController:
    """The active controller, wherever it is."""

    def __init__(self, quorum: LeaderWatch, local: LocalController, world: ChannelWorld) -> None:
        self._quorum = quorum
        self._local = local
        self._scheduler = world.scheduler
        self._make_link = world.make_link
        self._link: Link | None = None
        self._linked: Endpoint | None = None
        self._is_closed = False
        self.when_lost: Callable[[], None] | None = None
        """Called when the connection to the controller is lost, or there is another controller."""
        # In the order they came. Those that wait for a controller are sent in this order, too.
        self._open: dict[_Asked, None] = {}
        self._waiting: dict[_Asked, None] = {}
        self._retry: Timer | None = None
        quorum.when_leader_changes(self._leader_changed)

    def ask(self, ask: Any, caller: Caller | None = None, timeout_ms: int = ASK_MS_MAX) -> Deferred[Any]:
        """Ask the active controller.

        A connection on which this node gets no answer in time is closed, as in Kafka: it may lead nowhere.
        """
        asked = _Asked(ask, caller, timeout_ms)
        self._open[asked] = None
        self._send(asked)
        if not asked.response.is_done:
            asked.deadline = self._scheduler.call_later(timeout_ms, self._too_late, asked)
        return asked.response

    def close(self) -> None:
        """Ask no more."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._link is not None:
            self._link.close()
        for asked in list(self._open):
            self._refuse(asked, NOT_CONTROLLER)

    # Sending

    def _send(self, asked: _Asked) -> None:
        if self._is_closed:
            self._refuse(asked, NOT_CONTROLLER)
            return
        if self._quorum.is_active:
            self._local.ask(asked.ask, asked.caller).when_done(
                partial(self._decided, asked), partial(self._fail, asked)
            )
            return
        link = self._find_link()
        if link is None:
            self._wait(asked)
        elif asked.caller is None:
            link.ask(asked.ask, partial(self._answered, asked), asked.timeout_ms)
        else:
            link.ask(_seal(asked.ask, asked.caller), partial(self._opened, asked))

    def _find_link(self) -> Link | None:
        """Return the way to the leader, if one is known."""
        endpoint = self._quorum.leader.endpoint
        if endpoint is None:
            return None
        if endpoint != self._linked:
            if self._link is not None:
                self._link.close()
            self._link, self._linked = self._make_link(endpoint), endpoint
            self._link.when_lost = self._link_lost
        return self._link

    def _link_lost(self) -> None:
        if self.when_lost is not None and not self._is_closed:
            self.when_lost()

    def _wait(self, asked: _Asked) -> None:
        """Let a request wait until there is an active controller."""
        if asked not in self._open:
            return
        self._waiting[asked] = None
        if self._retry is None:
            self._retry = self._scheduler.call_later(RETRY_MS, self._send_waiting)

    def _send_waiting(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        waiting, self._waiting = self._waiting, {}
        for asked in waiting:
            if asked in self._open:
                self._send(asked)

    def _leader_changed(self, leader: KnownLeader) -> None:
        if (self._waiting or self._is_elsewhere(leader)) and not self._is_closed:
            # In a turn of its own: the one who tells this is in the midst of a change.
            self._scheduler.call_soon(self._follow_leader)

    def _is_elsewhere(self, leader: KnownLeader) -> bool:
        return self._link is not None and leader.endpoint not in (None, self._linked)

    def _follow_leader(self) -> None:
        """Send to the new controller what waits, and what the old one has not answered.

        A machine that lost its power says nothing, so its answers would be waited for until a timeout. Until
        then no leader here could change its in-sync replicas. Deviation: Kafka waits for
        `controller.socket.timeout.ms`.
        """
        if self._link is not None and self._is_elsewhere(self._quorum.leader):
            link, self._link, self._linked = self._link, None, None
            link.close()
        self._send_waiting()
        if self.when_lost is not None:
            self.when_lost()

    # What comes back

    def _answered(self, asked: _Asked, answer: Any) -> None:
        """Take the answer to a request of this node."""
        if asked not in self._open:
            return
        if isinstance(answer, PeerLost):
            self._lost(asked, answer)
        elif isinstance(answer, NotServed):
            _lines.warn("the controller is too old", str(answer))
            self._refuse(asked, Refusal(ErrorCode.UNSUPPORTED_VERSION, str(answer)))
        else:
            self._decided(asked, answer)

    def _opened(self, asked: _Asked, answer: Any) -> None:
        """Take the answer to a request of a client, out of its envelope."""
        if asked not in self._open:
            return
        if not isinstance(answer, EnvelopeResponse):
            self._answered(asked, answer)
            return
        assert asked.caller is not None, "requests of the node itself have no envelope"
        if answer.error_code is ErrorCode.NOT_CONTROLLER:
            self._wait(asked)
        elif answer.error_code is not ErrorCode.NONE or answer.response_data is None:
            _lines.warn("the controller refused to serve a forwarded request", answer.error_code.name)
            error = answer.error_code
            if error not in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
                error = ErrorCode.UNKNOWN_SERVER_ERROR
            self._refuse(asked, Refusal(error))
        else:
            try:
                _, response = decode_response(
                    _api_of(type(asked.ask)), asked.caller.version, answer.response_data
                )
            except WireError as error:
                self._fail(asked, error)
            else:
                self._decided(asked, response)

    def _decided(self, asked: _Asked, response: Any) -> None:
        """Take a response, unless it only says that another controller is the active one."""
        if asked not in self._open:
            return
        errors = _errors_in(response)
        is_elsewhere = ErrorCode.NOT_CONTROLLER in errors
        if isinstance(asked.ask, SERVED_BY_LEADER):
            is_elsewhere |= ErrorCode.NOT_LEADER_OR_FOLLOWER in errors
        if is_elsewhere:
            self._wait(asked)
        else:
            self._finish(asked, response)

    def _lost(self, asked: _Asked, error: PeerLost) -> None:
        _lines.warn("lost the connection to the controller", str(error))
        self._wait(asked)

    # The end of a request

    def _finish(self, asked: _Asked, response: Any) -> None:
        if self._forget(asked):
            asked.response.resolve(response)

    def _fail(self, asked: _Asked, error: Exception) -> None:
        if self._forget(asked):
            asked.response.fail(error)

    def _too_late(self, asked: _Asked) -> None:
        asked.deadline = None
        message = "No active controller decided about the request in time."
        self._refuse(asked, Refusal(ErrorCode.REQUEST_TIMED_OUT, message))

    def _refuse(self, asked: _Asked, refusal: Refusal) -> None:
        self._finish(asked, refuse(asked.ask, refusal))

    def _forget(self, asked: _Asked) -> bool:
        if asked not in self._open:
            return False
        del self._open[asked]
        self._waiting.pop(asked, None)
        if asked.deadline is not None:
            asked.deadline.cancel()
        return True


def _seal(ask: Any, caller: Caller) -> EnvelopeRequest:
    """Put the request of a client into an envelope."""
    frame = encode_request(ask, _api_of(type(ask)), caller.version, 0, caller.client_id)
    return EnvelopeRequest(
        request_data=frame[4:],
        request_principal=encode_principal(caller.principal),
        # A link-local address of IPv6 has its interface behind a percent sign.
        client_host_address=ip_address(caller.host.partition("%")[0]).packed,
    )


def _api_of(request: type[Any]) -> Api:
    key = spec_of(request).api_key
    assert key is not None, "only requests have an API key"
    return api_of(key)


def says_not_controller(response: Any, version: int | None = None) -> bool:
    """Say whether a response refuses its request because another node is the active controller."""
    return ErrorCode.NOT_CONTROLLER in _errors_in(response, version)


def _errors_in(response: Any, version: int | None = None) -> list[ErrorCode]:
    found: list[ErrorCode] = []
    finder = _error_finder(type(response), version)  # type: ignore[arg-type]  # a class can be hashed
    finder(response, found.append)
    return found


@cache
def _error_finder(response: type[Any], version: int | None) -> ErrorFinder:
    last = spec_of(response).versions.last
    finder: ErrorFinder = compile_error_finder(response, last if version is None else version)
    return finder

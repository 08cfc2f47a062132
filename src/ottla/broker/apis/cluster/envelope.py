"""Envelope: a broker passes on a client's request that only the controller can decide about.

The request inside is served as if the client had sent it to the controller itself, with the principal and
the address that the broker vouches for. If this node is not the active controller, that is said outside, so
that the broker looks for the one that is.
"""

from functools import partial
from ipaddress import ip_address
from typing import Any

from ottla.broker.authorization.audit import FORWARDED
from ottla.broker.authorization.authorizers import guarded
from ottla.broker.quorum.controller_channel import says_not_controller
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, declared_of, find_handler, serves
from ottla.broker.serving.replies import Reply, then
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.security.principal import Principal
from ottla.security.principal_data import UnreadablePrincipal, decode_principal
from ottla.security.rights import Operation, on_cluster
from ottla.wire.codec import decode_from
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import RequestHead, decode_request_head, encode_response
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


class _Refused(Exception):
    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(error_code.name)
        self.error_code = error_code


class _Forwarded:
    """The client behind a broker, as handlers see it."""

    def __init__(self, listener_name: str, local: tuple[str, int], peer_host: str) -> None:
        self.listener_name = listener_name
        self.local = local
        self.peer_host = peer_host
        # The envelope does not tell it.
        self.peer_port = 0

    def has_hung_up(self) -> bool:
        """Say no: the broker in between waits for the response."""
        return False

    def mute(self, milliseconds: int) -> None:
        """Leave it to the broker, which knows from the response how long its client has to wait."""


@serves(
    EnvelopeRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def envelope(ask: EnvelopeRequest, context: RequestContext) -> Reply:
    """Serve the request inside."""
    try:
        head, request = _open(ask.request_data)
        inner = _inner_context(ask, head, context)
    except _Refused as refused:
        return EnvelopeResponse(error_code=refused.error_code)
    handler = find_handler(head.api.key, Listener.CONTROLLER)
    assert handler is not None, "what is forwardable is served"
    if context.node.authorizer.is_active:
        # The broker may forward, but whether the client may do what it asks for is decided here.
        handler = guarded(head.api.key, handler)
    return then(handler(request, inner), partial(_wrap, head))


def _open(data: bytes) -> tuple[RequestHead, Any]:
    try:
        head = decode_request_head(memoryview(data))
    except MalformedBytes as error:
        # That is what Kafka says about a header of which it can make nothing, too.
        raise _Refused(ErrorCode.UNSUPPORTED_VERSION) from error
    served = SERVED.get(head.api.key)
    if served is None or Listener.CONTROLLER not in served.listeners:
        raise _Refused(ErrorCode.INVALID_REQUEST)
    if not declared_of(head.api.key).is_forwarded:
        # Nothing else is passed on by brokers.
        raise _Refused(ErrorCode.INVALID_REQUEST)
    if head.version not in served.versions:
        raise _Refused(ErrorCode.UNSUPPORTED_VERSION)
    try:
        request, _ = decode_from(head.api.request, data, head.version, head.body_position)
    except MalformedBytes as error:
        raise _Refused(ErrorCode.INVALID_REQUEST) from error
    return head, request


def _inner_context(ask: EnvelopeRequest, head: RequestHead, context: RequestContext) -> RequestContext:
    try:
        host = str(ip_address(ask.client_host_address))
    except ValueError as error:
        raise _Refused(ErrorCode.INVALID_REQUEST) from error
    local = context.local_host, context.local_port
    inner = RequestContext(context.node, _Forwarded(context.listener_name, local, host), Listener.CONTROLLER)
    inner.principal = _principal(ask.request_principal)
    # The broker has seen how the client logged in, and refuses by itself what that does not allow.
    inner.login = FORWARDED
    inner.version, inner.client_id, inner.correlation_id = head.version, head.client_id, head.correlation_id
    inner.request_bytes = len(ask.request_data)
    return inner


def _principal(data: bytes | None) -> Principal:
    try:
        return decode_principal(data or b"")
    except UnreadablePrincipal as error:
        raise _Refused(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from error


def _wrap(head: RequestHead, response: Any) -> EnvelopeResponse:
    if says_not_controller(response, head.version):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    frame = encode_response(response, head.api, head.version, head.correlation_id)
    return EnvelopeResponse(response_data=frame[4:])

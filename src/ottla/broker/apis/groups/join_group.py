"""JoinGroup: a member joins a classic group. Answered when all of its members have joined."""

from typing import Final

from ottla.broker.authorization.refusals import only_error
from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_group
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import NO_PROTOCOL_FROM, JoinGroupRequest, JoinGroupResponse

_LASTING: Final = frozenset(
    (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
    )
)
"""Errors that joining again does not mend: the journal tells for which group."""


def _refused(_ask: JoinGroupRequest, error_code: ErrorCode, context: RequestContext) -> JoinGroupResponse:
    has_no_protocol = context.version >= NO_PROTOCOL_FROM
    return only_error(JoinGroupResponse, error_code, protocol_name=None if has_no_protocol else "")


@serves(JoinGroupRequest, "0-9", OfRequest(on_group(Operation.READ), "group_id", refuse=_refused))
def join_group(ask: JoinGroupRequest, context: BrokerContext) -> Deferred[JoinGroupResponse]:
    """Let the group coordinator answer, when everybody is there."""
    broker = context.broker
    answer: Deferred[JoinGroupResponse] = Deferred()
    broker.groups.coordinator.join_group(ask, client_of(context), broker.clock.now_ms(), answer.resolve)
    answer.when_done(lambda response: _note_refusal(ask, response, context))
    return answer.then(_without_empty_name if context.version >= NO_PROTOCOL_FROM else _with_protocol)


def _note_refusal(ask: JoinGroupRequest, response: JoinGroupResponse, context: BrokerContext) -> None:
    if response.error_code in _LASTING:
        offers = tuple(one.name for one in ask.protocols)
        context.node.journal.join_refused(context, ask.group_id, ErrorCode(response.error_code), offers)


def _with_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    """Older versions have no way to say that there is no protocol."""
    return replace(response, protocol_name="") if response.protocol_name is None else response


def _without_empty_name(response: JoinGroupResponse) -> JoinGroupResponse:
    """Newer versions say it in one way only, also for a protocol whose name is empty."""
    return replace(response, protocol_name=None) if response.protocol_name == "" else response

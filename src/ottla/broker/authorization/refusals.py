"""Answers that refuse a request or a part of it, made from what the response declares."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from ottla.quorum.controller.deciders import MODULES, find_decider
from ottla.quorum.controller.decision import Refusal
from ottla.wire.apis import api_of
from ottla.wire.declare import Message, fields_of, replace, spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty

M = TypeVar("M", bound=Message)

MESSAGES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
}
"""The sentences of Kafka's errors. Clients show them to their users."""


def refused(ask: Any, error_code: ErrorCode) -> Message:
    """Return the response that refuses a request as a whole."""
    key = spec_of(type(ask)).api_key
    assert key is not None, "only requests are refused"
    if key in MODULES:
        refusal: Message = find_decider(type(ask)).refuse(ask, Refusal(error_code, MESSAGES.get(error_code)))
        return refusal
    response: type[Message] = api_of(key).response
    return only_error(response, error_code)


def only_error(response: type[M], error_code: ErrorCode, **values: Any) -> M:
    """Return a response, or a part of one, that says nothing but an error and `values`."""
    declared = fields_of(response)
    if "error_code" in declared:
        values["error_code"] = error_code
    if "error_message" in declared:
        values.setdefault("error_message", MESSAGES.get(error_code))
    nothing: M = empty(response)
    return replace(nothing, **values)


def in_order(asked: Sequence[Any], denied: dict[int, Any], answers: Sequence[Any]) -> tuple[Any, ...]:
    """Put answers and refusals in the order of the request. `denied` has the refusals by their place.

    Where the handler answered with other entries than it was asked for, the refusals come first.
    """
    if len(answers) + len(denied) != len(asked):
        return (*denied.values(), *answers)
    served = iter(answers)
    return tuple(denied[place] if place in denied else next(served) for place in range(len(asked)))

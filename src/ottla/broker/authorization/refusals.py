"""Answers that refuse a request or a part of it, made from what the response declares."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from ottla.quorum.controller.deciders import MODULES, find_decider
from ottla.quorum.controller.decision import Refusal
from ottla.security.rights import ResourceType
from ottla.wire.apis import api_of
from ottla.wire.declare import Message, fields_of, replace, spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty, layout_of

M = TypeVar("M", bound=Message)

ERROR_OF: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error of a right that is missing, by what it is a right on."""

MESSAGES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
}
"""The sentences of Kafka's errors. Clients show them to their users."""

_WHAT_IT_IS_ABOUT: Final = frozenset(
    (
        "group_id",
        "name",
        "partition",
        "partition_index",
        "producer_id",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "topic_name",
        "transactional_id",
    )
)
"""The fields of a refused part that its refusal repeats."""


def refused(
    ask: Any, error_code: ErrorCode, version: int | None = None, says: Mapping[str, Any] | None = None
) -> Message:
    """Return the response that refuses a request as a whole.

    Where the response has no error of its own, it has one for each part of the request. `says` gives other
    fields beside the error. Without a version, the last one is meant.
    """
    key = spec_of(type(ask)).api_key
    assert key is not None, "only requests are refused"
    response: type[Message] = api_of(key).response
    error = fields_of(response).get("error_code")
    if key in MODULES:
        refusal: Message = find_decider(type(ask)).refuse(ask, Refusal(error_code, MESSAGES.get(error_code)))
        if error is not None and version is not None and version not in error.versions:
            return replace(refusal, error_code=ErrorCode.NONE)
        return refusal
    if error is not None:
        return only_error(response, error_code, **(says or {}))
    of_each_part: Message = refused_part(ask, response, error_code, says or {})
    return of_each_part


def only_error(response: type[M], error_code: ErrorCode, **values: Any) -> M:
    """Return a response, or a part of one, that says nothing but an error and `values`."""
    declared = fields_of(response)
    if "error_code" in declared:
        values["error_code"] = error_code
    if "error_message" in declared:
        values.setdefault("error_message", MESSAGES.get(error_code))
    nothing: M = empty(response)
    return replace(nothing, **values)


def refused_part(asked: Any, answer: type[Any] | None, error_code: ErrorCode, says: Mapping[str, Any]) -> Any:
    """Return the refusal of a part of a request: what it is about, and the error at the innermost place.

    `asked` is a struct, or a plain value such as a name or the number of a partition.
    """
    assert answer is not None, "answers are structs"
    layout = layout_of(answer)
    about = [field.name for field in layout if field.name in _WHAT_IT_IS_ABOUT]
    values: dict[str, Any]
    if hasattr(asked, "__wire_fields__"):
        fields = fields_of(type(asked))
        values = {name: getattr(asked, name) for name in about if name in fields}
    else:
        values = {about[0]: asked}
    if "error_code" in fields_of(answer):
        return only_error(answer, error_code, **values, **says)
    for field in layout:
        if field.is_array and field.struct is not None:
            inner = field.struct
            values[field.name] = tuple(
                [refused_part(part, inner, error_code, says) for part in _parts_of(asked)]
            )
    return replace(empty(answer), **values)


def _parts_of(asked: Any) -> Sequence[Any]:
    """Return the entries of the only list that a part of a request has."""
    (listed,) = [field.name for field in layout_of(type(asked)) if field.is_array]
    return getattr(asked, listed) or ()


def in_order(asked: Sequence[Any], denied: dict[int, Any], answers: Sequence[Any]) -> tuple[Any, ...]:
    """Put answers and refusals in the order of the request. `denied` has the refusals by their place.

    Where the handler answered with other entries than it was asked for, the refusals come first.
    """
    if len(answers) + len(denied) != len(asked):
        return (*denied.values(), *answers)
    served = iter(answers)
    return tuple(denied[place] if place in denied else next(served) for place in range(len(asked)))

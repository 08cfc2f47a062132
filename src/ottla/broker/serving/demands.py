"""What the declaration of an API says about the rights that it asks for. Guards are made of it.

    @serves(
        OffsetDeleteRequest,
        "0",
        OfRequest(on_group(Operation.DELETE), "group_id"),
        OfEach(on_topic(Operation.READ), "topics.name", "topics"),
    )

So an API says which right it asks for, on what, and what is answered to a request or a part of it that is
refused. A right on the cluster without anything around it is asked for the request as a whole. The one place
that looks at all this is `authorization.guards`.

A refusal repeats what the refused part is about (its name, its number), and has the error at the innermost
place that has one. `says` gives fields that are not at their defaults beside the error.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.broker.serving.context import RequestContext
from ottla.security.rights import Operation, Right
from ottla.security.rights import ResourceType as Resource
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

Named: TypeAlias = str | Callable[[Any], Iterable[str]]
"""A field with a name, or with several; or a function that finds them. "" stands for the cluster."""
Refuse: TypeAlias = Callable[[Any, ErrorCode, RequestContext], Any]
"""Makes the refusal of a request or a part of it, where a plain one would not be Kafka's."""
_HAVE_CONFIGS: Final = {
    Resource.TOPIC: (ResourceType.TOPIC,),
    Resource.GROUP: (ResourceType.GROUP,),
    Resource.CLUSTER: (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS),
}
"""On which resources a right is asked for, by the types that configs belong to."""
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class OfRequest(NamedTuple):
    """A right without which the request is refused as a whole: on each resource that a field names."""

    right: Right
    named: Named = ""
    unless: Right | None = None
    """A right on the cluster that stands for this one."""
    says: Mapping[str, Any] = _NOTHING
    refuse: Refuse | None = None


class OfEach(NamedTuple):
    """A right that each entry of a list needs: `topics.name` is the field `name` of the list `topics`.

    In versions where entries have ids instead of names, the name is that of the topic with the id. An id that
    there is no topic for is left to the handler. Of several rights on one list, each is for other types.
    """

    right: Right
    named: str
    answered: str
    unless: Right | None = None
    says: Mapping[str, Any] = _NOTHING
    refuse: Refuse | None = None
    types: tuple[int, ...] = ()
    """It is asked for entries with one of these values in `resource_type`."""
    is_request_checked: bool = False
    """The handler is called even with no entry left, as it may find an error of the request as a whole, which
    is then all that is answered.
    """
    drops_repeated: bool = False
    """An entry that is repeated counts once."""


class OfAnswer(NamedTuple):
    """A right to see an entry of an answer: without it the entry is left out, or changed by `hide`."""

    right: Right
    named: str
    unless: Right | None = None
    hide: Callable[[Any], Any] | None = None


class ByHandler(NamedTuple):
    """A right that the handler asks for, where it turns out to be needed."""

    right: Right


Demand: TypeAlias = OfRequest | OfEach | OfAnswer | ByHandler


def demand_of(declared: Right | Demand) -> Demand:
    """Return what is asked for. A right on the cluster alone is asked for the request as a whole."""
    if not isinstance(declared, Right):
        return declared
    assert declared.resource_type is Resource.CLUSTER, f"{declared} is asked for on something"
    return OfRequest(declared)


def of_each_resource(operation: Operation, answered: str) -> tuple[OfEach, ...]:
    """Return the rights on configs: each resource needs the one of its type."""
    return tuple(
        OfEach(Right(operation, resource), "resources.resource_name", answered, types=types)
        for resource, types in _HAVE_CONFIGS.items()
    )

"""The table of guards: what stands between a request and its handler where access rules hold.

    @guards(ApiKey.LIST_OFFSETS)
    def list_offsets(ask: ListOffsetsRequest, context: RequestContext, serve: Serve) -> Reply:

A guard lets the handler serve what the client may ask for, and answers for the rest as Kafka does. It sees
the same requests as the handler: of a large one that is cut, each part. So handlers know nothing of access
rules, and a node without rules pays nothing for them.

An API that asks for one right on the cluster and nothing else needs no guard of its own: it is served or
refused as a whole. The answers of some APIs depend on the rules in too many places for a guard: their
handlers ask by themselves, and are listed in `CHECKED_BY_HANDLER`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

from ottla.broker.authorization.refusals import refused
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import Handler, declared_of
from ottla.broker.serving.replies import Reply
from ottla.security.rights import CLUSTER, ResourceType, Right
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode

Serve: TypeAlias = Callable[[Any], Reply]
"""Calls the handler with what the client may ask for."""
Guard: TypeAlias = Callable[[Any, RequestContext, Serve], Reply]
F = TypeVar("F", bound=Guard)

CHECKED_BY_HANDLER: Final = frozenset(
    (
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    )
)
"""APIs whose handlers ask for rights by themselves."""

_MODULES: Final = (
    "cluster_guards",
    "config_guards",
    "group_guards",
    "offset_guards",
    "share_guards",
    "topic_guards",
    "transaction_guards",
)
_guards: dict[ApiKey, Guard] = {}


def guards(*keys: ApiKey) -> Callable[[F], F]:
    """Register the guard of some APIs."""

    def register(guard: F) -> F:
        for key in keys:
            _guards[key] = guard
        return guard

    return register


def find_guard(key: ApiKey) -> Guard | None:
    """Return the guard of an API; None for one that needs none."""
    for module in _MODULES:
        import_module(f"{__package__}.{module}")
    declared = declared_of(key)
    if key in _guards:
        return _guards[key]
    if key in CHECKED_BY_HANDLER or declared.free_because:
        return None
    (right,) = declared.rights
    assert right.resource_type is ResourceType.CLUSTER, f"{key.name} has a right of its own and no guard"
    return cluster_guard(right)


def cluster_guard(right: Right) -> Guard:
    """Return the guard of an API that is served or refused as a whole."""

    def guard(ask: Any, context: RequestContext, serve: Serve) -> Reply:
        if context.allows(right, CLUSTER):
            return serve(ask)
        return refused(ask, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return guard


def guarded(key: ApiKey, handler: Handler) -> Handler:
    """Put the guard of an API before its handler."""
    guard = find_guard(key)
    if guard is None:
        return handler

    def handle(ask: Any, context: RequestContext) -> Reply:
        return guard(ask, context, lambda allowed: handler(allowed, context))

    return handle

"""The table of deciders: which function decides about a request, and how the request is refused.

    @decides(CreateTopicsRequest, refuse=refuse_create_topics, strict_from=6)
    def decide_create_topics(view: ControllerView, ask: CreateTopicsRequest) -> Decision[...]:

A controller is asked by request, so that it makes no difference where the request comes from: from this node,
from another one, or from a client whose broker forwards it. Every request can be refused as a whole, for the
node that it reaches may not be the active controller.

Modules are imported when the first request needs them, or soon after the start if none does.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeVar

from ottla.quorum.controller.brokers.sessions import BrokerSessions
from ottla.quorum.controller.decision import Decide, Refusal
from ottla.wire.apis import ApiKey
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

MODULES: Final[Mapping[ApiKey, str]] = {
    ApiKey.ALLOCATE_PRODUCER_IDS: "producer_ids",
    ApiKey.ALTER_CLIENT_QUOTAS: "quotas",
    ApiKey.ALTER_CONFIGS: "configs",
    ApiKey.ALTER_PARTITION: "partitions.alter_partition",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "partitions.reassignments",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "scram",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "brokers.directory_assignments",
    ApiKey.BROKER_HEARTBEAT: "brokers.heartbeat",
    ApiKey.BROKER_REGISTRATION: "brokers.registration",
    ApiKey.CONTROLLER_REGISTRATION: "brokers.registration",
    ApiKey.CREATE_ACLS: "security.access_rules",
    ApiKey.CREATE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.CREATE_PARTITIONS: "topics.new_topics",
    ApiKey.CREATE_TOPICS: "topics.new_topics",
    ApiKey.DELETE_ACLS: "security.access_rules",
    ApiKey.DELETE_TOPICS: "topics.delete_topics",
    ApiKey.ELECT_LEADERS: "partitions.elections",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "configs",
    ApiKey.RENEW_DELEGATION_TOKEN: "security.delegation_tokens",
    ApiKey.UNREGISTER_BROKER: "brokers.registration",
    ApiKey.UPDATE_FEATURES: "features",
}


class Decider(NamedTuple):
    """What a controller does about one type of request."""

    decide: Decide[Any, Any]
    refuse: Callable[[Any, Refusal], Any]
    """Return the response that refuses a request as a whole."""
    strict_from: int | None = None
    """From which version on a client that is over its mutation quota is refused. None: there is no quota."""
    note: Callable[[BrokerSessions, Any, Any, int], None] | None = None
    """Note what a request and its reply tell about the life of a broker, at a monotonic time."""


NOT_CONTROLLER: Final = Refusal(
    ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
)
"""The node is not the active controller, or is it no longer. What was asked for may happen all the same."""

_deciders: dict[type[Any], Decider] = {}


def decides(
    request: type[Ask],
    *,
    refuse: Callable[[Ask, Refusal], Reply],
    strict_from: int | None = None,
    note: Callable[[BrokerSessions, Ask, Reply, int], None] | None = None,
) -> Callable[[Decide[Ask, Reply]], Decide[Ask, Reply]]:
    """Register the function that decides about requests of this type."""

    def register(decide: Decide[Ask, Reply]) -> Decide[Ask, Reply]:
        _deciders[request] = Decider(decide, refuse, strict_from, note)
        return decide

    return register


def find_decider(request: type[Any]) -> Decider:
    """Return the decider of a type of request, imported now if need be."""
    if request not in _deciders:
        key = spec_of(request).api_key
        assert key is not None, "only requests are decided about"
        _import(ApiKey(key))
    return _deciders[request]


def import_deciders() -> Iterator[None]:
    """Import the deciders that nobody has needed so far, one for each step."""
    for key in MODULES:
        _import(key)
        yield


def _import(key: ApiKey) -> None:
    import_module(f"ottla.quorum.controller.{MODULES[key]}")

"""Whose time is not counted: requests of other nodes, and writes that nobody waits for, as in Kafka.

A quota for every user would otherwise slow down replication. A client that only pretends to be a node is
counted, because it lacks the right.
"""

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.serving.served_apis import SERVED
from ottla.security.rights import CLUSTER, Operation, on_cluster
from ottla.wire.apis import ApiKey

if TYPE_CHECKING:
    from ottla.broker.serving.context import RequestContext

_OF_NODES: Final = on_cluster(Operation.CLUSTER_ACTION)
_REPLICA_STATE_FROM: Final = 15


def is_exempt(key: ApiKey, ask: Any, context: "RequestContext") -> bool:
    """Say whether the time of a request does not count against the quota of its client."""
    if key is ApiKey.PRODUCE:
        return bool(ask.acks == 0)
    if key is ApiKey.FETCH:
        is_of_node = _replica_id(ask, context.version) >= 0
    else:
        is_of_node = _OF_NODES in SERVED[key].rights
    return is_of_node and context.may(_OF_NODES, CLUSTER)


def _replica_id(ask: Any, version: int) -> int:
    found: int = ask.replica_state.replica_id if version >= _REPLICA_STATE_FROM else ask.replica_id
    return found

"""Whose time is not counted: requests of other nodes, and writes that nobody waits for, as in Kafka.

A quota for every user would otherwise slow down replication. A client that only pretends to be a node is
counted, because it lacks the right.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.broker.serving.context import RequestContext
from ottla.security.rights import CLUSTER, Operation, Right, on_cluster

_OF_NODES: Final = on_cluster(Operation.CLUSTER_ACTION)


def exemption(rights: Sequence[Right]) -> Callable[[Any, RequestContext], bool]:
    """Return the rule of an API that declares none: all requests that only nodes may send are exempt."""
    return is_of_node if _OF_NODES in rights else _never


def is_of_node(_ask: Any, context: RequestContext) -> bool:
    """Say whether the client is another node."""
    return context.may(_OF_NODES, CLUSTER)


def _never(_ask: Any, _context: RequestContext) -> bool:
    return False

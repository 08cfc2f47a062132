"""How the leader of a classic group shares out partitions: pure functions, one module for each way.

All members must know one way in common. The names are Kafka's, so that members of other makes agree.
"""

from ottla.client.consumer.assignors.assignor import Assignor, RebalanceProtocol
from ottla.client.consumer.assignors.cooperative_sticky import COOPERATIVE_STICKY
from ottla.client.consumer.assignors.range import RANGE
from ottla.client.consumer.assignors.roundrobin import ROUNDROBIN
from ottla.client.consumer.assignors.sticky import STICKY

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor for assignor in (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY)
}

__all__ = ["ASSIGNORS", "Assignor", "RebalanceProtocol"]

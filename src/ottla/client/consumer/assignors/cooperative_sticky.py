"""cooperative-sticky: even shares, and members go on reading what they keep (KIP-429).

A partition that moves is given to nobody in this round: its owner gives it up, joins again, and then the next
round gives it out. So it never has two readers.
"""

from collections.abc import Sequence

from ottla.client.consumer.assignors.assignor import (
    Assignor,
    Members,
    PartitionCounts,
    RebalanceProtocol,
    Shares,
)
from ottla.client.consumer.assignors.balance import assign_evenly
from ottla.client.consumer.embedded_protocol import (
    NO_GENERATION,
    Subscription,
    decode_generation,
    encode_generation,
)
from ottla.model.ids import TopicPartition


def assign_cooperatively(members: Members, partitions: PartitionCounts) -> Shares:
    """Share out, without what somebody else still has to give up."""
    owned = {name: (item.owned, _generation(item)) for name, item in members.items()}
    shares = assign_evenly(members, partitions, owned)
    owners: dict[TopicPartition, set[str]] = {}
    for name, subscription in members.items():
        for where in subscription.owned:
            owners.setdefault(where, set()).add(name)
    return {
        name: [where for where in share if owners.get(where, set()) <= {name}]
        for name, share in shares.items()
    }


def _generation(subscription: Subscription) -> int:
    # Members that are older than the field write it into the user data.
    if subscription.generation != NO_GENERATION:
        return subscription.generation
    return decode_generation(subscription.user_data)


def _note(_owned: Sequence[TopicPartition], generation: int) -> bytes:
    return encode_generation(generation)


COOPERATIVE_STICKY = Assignor(
    "cooperative-sticky", RebalanceProtocol.COOPERATIVE, assign_cooperatively, _note
)

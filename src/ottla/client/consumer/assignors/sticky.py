"""sticky: even shares that move as little as can be; members give up everything while they join.

Since nothing is owned at that moment, what a member had stands in the assignor's note in the user data.
"""

from ottla.client.consumer.assignors.assignor import (
    Assignor,
    Members,
    PartitionCounts,
    RebalanceProtocol,
    Shares,
)
from ottla.client.consumer.assignors.balance import assign_evenly
from ottla.client.consumer.embedded_protocol import decode_sticky_note, encode_sticky_note


def assign_sticky(members: Members, partitions: PartitionCounts) -> Shares:
    """Share out, starting from what the notes say."""
    owned = {name: decode_sticky_note(subscription.user_data) for name, subscription in members.items()}
    return assign_evenly(members, partitions, owned)


STICKY = Assignor("sticky", RebalanceProtocol.EAGER, assign_sticky, encode_sticky_note)

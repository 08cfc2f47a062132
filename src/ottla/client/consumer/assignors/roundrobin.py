"""roundrobin: all partitions in order, dealt in turn to the members that want their topics."""

from ottla.client.consumer.assignors.assignor import (
    Assignor,
    Members,
    PartitionCounts,
    RebalanceProtocol,
    Shares,
    in_order,
)
from ottla.model.ids import TopicPartition


def assign_in_turn(members: Members, partitions: PartitionCounts) -> Shares:
    """Deal the partitions out."""
    shares: Shares = {member_id: [] for member_id in members}
    ordered = in_order(members)
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    turn = 0
    for topic in sorted(wanted & partitions.keys()):
        for number in range(partitions[topic]):
            while topic not in members[ordered[turn]].topics:
                turn = (turn + 1) % len(ordered)
            shares[ordered[turn]].append(TopicPartition(topic, number))
            turn = (turn + 1) % len(ordered)
    return shares


ROUNDROBIN = Assignor("roundrobin", RebalanceProtocol.EAGER, assign_in_turn)

"""range: each topic is cut into one run of partitions for each member; the first members get the longer runs.

Topics with the same number of partitions are cut alike, so that partition N of all of them meets at one
member.

Deviation: racks are not looked at. Kafka's uses them only where members and replicas both name theirs.
"""

from ottla.client.consumer.assignors.assignor import (
    Assignor,
    Members,
    PartitionCounts,
    RebalanceProtocol,
    Shares,
    in_order,
)
from ottla.model.ids import TopicPartition


def assign_ranges(members: Members, partitions: PartitionCounts) -> Shares:
    """Cut every topic into runs."""
    shares: Shares = {member_id: [] for member_id in members}
    ordered = in_order(members)
    for topic in sorted(partitions):
        takers = [member_id for member_id in ordered if topic in members[member_id].topics]
        start = 0
        for index, member_id in enumerate(takers):
            share = partitions[topic] // len(takers) + (index < partitions[topic] % len(takers))
            shares[member_id] += [TopicPartition(topic, number) for number in range(start, start + share)]
            start += share
    return shares


RANGE = Assignor("range", RebalanceProtocol.EAGER, assign_ranges)

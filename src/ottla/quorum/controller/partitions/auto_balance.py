"""Balancing by itself (`ottla.balance.auto`): which moves the active controller begins next.

Brokers that have left for good are emptied first: those that are not registered any more, and those that were
away for `ottla.balance.leave.ms`. Then brokers that hold less than their share get more, such as one that has
just joined. A broker that is away for a short time, for a restart, changes nothing: until it is back, only
replicas of brokers that have left are moved.

Few partitions move at a time, and the next ones are chosen when these are done. So a plan is never carried
out that was made for a cluster of long ago. What is weighed is the number of replicas and leaders, and racks.
The controller knows neither sizes nor load: `ottla cluster balance` does.
"""

from collections.abc import Collection
from typing import Any

from ottla.metadata.balance_plan import Move, Node, Placed, TooFewBrokers, plan_moves
from ottla.metadata.image import MetadataImage
from ottla.model.ids import TopicPartition
from ottla.quorum.controller.decision import ControllerView
from ottla.quorum.controller.partitions.reassignments import decide_alter_reassignments
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord
from ottla.wire.metadata_records.partitions import PartitionRecord


def decide_balance(view: ControllerView, left: Collection[int], moves_max: int) -> list[Any]:
    """Return the records that begin the next moves, at most `moves_max`. None while others are under way.

    `left` are the brokers that were away for so long that they have left for good.
    """
    image = view.image
    partitions = [
        (TopicPartition(topic.name, number), record)
        for topic in image.topics
        for number, record in topic.partitions.items()
    ]
    if any(record.adding_replicas or record.removing_replicas for _, record in partitions):
        return []
    moves = _plan(image, partitions, left, moves_max)
    if not moves:
        return []
    return list(decide_alter_reassignments(view, _request(moves)).records)


def _plan(
    image: MetadataImage,
    partitions: list[tuple[TopicPartition, PartitionRecord]],
    left: Collection[int],
    moves_max: int,
) -> list[Move]:
    nodes = [
        Node(one.broker_id, one.rack) for one in image.brokers.values() if _serves(one) and _has_room(one)
    ]
    known = image.brokers.keys() - set(left)
    gone = {one for _, record in partitions for one in record.replicas if one not in known}
    # A partition that none of its brokers can copy from stays where it is, and so does one that could have
    # no other place.
    movable = [
        Placed(where, record.replicas)
        for where, record in partitions
        if record.leader >= 0 and len(record.replicas) <= len(nodes)
    ]
    everybody_serves = all(_serves(image.brokers[one]) for one in known)
    try:
        moves = plan_moves(nodes, movable, empty=gone, moves_replicas=everybody_serves, moves_max=moves_max)
    except TooFewBrokers:
        return []
    copies = [move for move in moves if move.added]
    if copies:
        return copies[:moves_max]
    # Leaders change when all replicas are where they should be.
    return moves[:moves_max] if everybody_serves else []


def _serves(broker: RegisterBrokerRecord) -> bool:
    """Say whether a broker serves, and is about to stay."""
    return not broker.fenced and not broker.in_controlled_shutdown


def _has_room(broker: RegisterBrokerRecord) -> bool:
    """Say whether a broker has a directory that is not cordoned."""
    return not broker.log_dirs or bool(set(broker.log_dirs) - set(broker.cordoned_log_dirs or ()))


def _request(moves: list[Move]) -> AlterPartitionReassignmentsRequest:
    topics: dict[str, list[ReassignablePartition]] = {}
    for move in moves:
        one = ReassignablePartition(partition_index=move.where.partition, replicas=move.after)
        topics.setdefault(move.where.topic, []).append(one)
    return AlterPartitionReassignmentsRequest(
        topics=tuple(ReassignableTopic(name=name, partitions=tuple(ones)) for name, ones in topics.items())
    )

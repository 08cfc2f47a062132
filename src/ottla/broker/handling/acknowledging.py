"""Acknowledgements, as they come with ShareFetch and with ShareAcknowledge: checked, and passed on."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.share.in_flight import Acknowledgement
from ottla.broker.share.runs import AcknowledgeType
from ottla.broker.share.sessions import TopicIdPartition
from ottla.coordination.share.state import ShareKey
from ottla.security.rights import Operation, on_topic
from ottla.wire.error_code import ErrorCode

_FIRST_VERSION_WITH_RENEWAL: Final = 2
_READ: Final = on_topic(Operation.READ)


class Acknowledged(NamedTuple):
    """What became of the acknowledgements of one partition."""

    error_code: ErrorCode
    message: str | None = None


def acknowledge(
    group_id: str,
    member_id: str,
    asked: Iterable[tuple[TopicIdPartition, Sequence[Any]]],
    renews: bool,
    context: BrokerContext,
) -> dict[TopicIdPartition, Deferred[Acknowledged]]:
    """Pass on what a member says of each partition."""
    outcomes: dict[TopicIdPartition, Deferred[Acknowledged]] = {}
    for (topic_id, number), batches in asked:
        outcome: Deferred[Acknowledged] = Deferred()
        outcomes[topic_id, number] = outcome
        refusal = _find_refusal((topic_id, number), batches, renews, context)
        if refusal is not ErrorCode.NONE or not batches:
            outcome.resolve(Acknowledged(refusal))
            continue
        share_partition = context.broker.sharing.find(ShareKey(group_id, topic_id, number))
        if share_partition is None:
            outcome.resolve(Acknowledged(_why_missing((topic_id, number), context)))
            continue
        share_partition.acknowledge(
            member_id,
            [Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types) for one in batches],
            lambda code, message, outcome=outcome: outcome.resolve(Acknowledged(code, message)),  # type: ignore[misc]
        )
    return outcomes


def _find_refusal(
    one: TopicIdPartition, batches: Sequence[Any], renews: bool, context: BrokerContext
) -> ErrorCode:
    topic = context.broker.image.topics.find_by_id(one[0])
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not _are_valid(batches, context.version, renews):
        return ErrorCode.INVALID_REQUEST
    if not context.allows(_READ, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if one[1] not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _are_valid(batches: Sequence[Any], version: int, renews: bool) -> bool:
    most = AcknowledgeType.RENEW if version >= _FIRST_VERSION_WITH_RENEWAL else AcknowledgeType.REJECT
    previous_last = -1
    for one in batches:
        types = one.acknowledge_types
        if (
            one.first_offset > one.last_offset
            or one.first_offset < previous_last
            or not types
            or (len(types) > 1 and one.last_offset - one.first_offset != len(types) - 1)
            or not all(0 <= kind <= most for kind in types)
            or (AcknowledgeType.RENEW in types and not renews)
        ):
            return False
        previous_last = one.last_offset
    return True


def _why_missing(one: TopicIdPartition, context: BrokerContext) -> ErrorCode:
    """Say why there is nothing to acknowledge: the leader is elsewhere, or nothing was acquired here."""
    partition = context.broker.partitions.by_key.get(one)
    if partition is None:
        return context.broker.partitions.why_missing(*one)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

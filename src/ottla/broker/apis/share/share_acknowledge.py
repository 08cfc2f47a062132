"""ShareAcknowledge: a member of a share group says what became of records, without asking for more."""

from typing import Any, Final

from ottla.broker.deferred import Deferred, gather
from ottla.broker.handling.acknowledging import Acknowledged, acknowledge
from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition
from ottla.coordination.group.share.heartbeat import MEMBER_ID_MAX
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@serves(
    ShareAcknowledgeRequest,
    "1-2",
    on_group(Operation.READ),
    on_topic(Operation.READ),
    checked_by=CheckedBy.HANDLER,
    has_short_answers=True,
)
def share_acknowledge(
    ask: ShareAcknowledgeRequest, context: BrokerContext
) -> Deferred[ShareAcknowledgeResponse]:
    """Answer when everything that was said is written."""
    refusal, message = check_member(ask, context)
    sharing = context.broker.sharing
    session = None if refusal else sharing.sessions.find(ask.group_id or "", ask.member_id or "")
    if not refusal and ask.share_session_epoch == INITIAL_EPOCH:
        refusal = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    elif not refusal and session is None:
        refusal = ErrorCode.SHARE_SESSION_NOT_FOUND
    elif session is not None and ask.share_session_epoch != FINAL_EPOCH:
        refusal = session.check_epoch(ask.share_session_epoch)
    if refusal or session is None:
        return Deferred.of(
            ShareAcknowledgeResponse(
                error_code=refusal, error_message=message, responses=(), node_endpoints=()
            )
        )
    asked = [
        ((topic.topic_id, one.partition_index), one.acknowledgement_batches)
        for topic in ask.topics
        for one in topic.partitions
    ]
    outcomes = acknowledge(session.group_id, session.member_id, asked, ask.is_renew_ack, context)

    def respond(found: list[Acknowledged]) -> ShareAcknowledgeResponse:
        if ask.share_session_epoch == FINAL_EPOCH:
            sharing.release_session(session)
        return _response(dict(zip(outcomes, found, strict=True)), session.group_id, context)

    return gather(list(outcomes.values())).then(respond)


def check_member(ask: Any, context: BrokerContext) -> tuple[ErrorCode, str | None]:
    """Say whether a member may ask: NONE, or why not."""
    if not context.broker.groups.serves_share_protocol:
        return ErrorCode.UNSUPPORTED_VERSION, None
    if ask.group_id is None:
        return ErrorCode.INVALID_REQUEST, "Invalid group id in the request."
    if not context.allows(on_group(Operation.READ), ask.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, None
    if not ask.member_id or len(ask.member_id) > MEMBER_ID_MAX:
        return ErrorCode.INVALID_REQUEST, "Invalid member id in the request."
    return ErrorCode.NONE, None


def _response(
    outcomes: dict[TopicIdPartition, Acknowledged], group_id: str, context: BrokerContext
) -> ShareAcknowledgeResponse:
    topics: dict[Any, list[PartitionData]] = {}
    leaders = set()
    for (topic_id, number), (error_code, message) in outcomes.items():
        leader = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
        if error_code in _ELSEWHERE:
            leader_id, leader_epoch = leader_of((topic_id, number), context)
            leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            leaders.add(leader_id)
        topics.setdefault(topic_id, []).append(
            PartitionData(
                partition_index=number, error_code=error_code, error_message=message, current_leader=leader
            )
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=context.broker.sharing.limits_of(group_id).lock_ms,
        responses=tuple(
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=tuple(
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in context.broker.endpoints.living(context)
            if node.node_id in leaders
        ),
    )


def leader_of(one: TopicIdPartition, context: BrokerContext) -> tuple[int, int]:
    """Return the leader of a partition and its epoch, as the metadata has them."""
    topic = context.broker.image.topics.find_by_id(one[0])
    record = None if topic is None else topic.partitions.get(one[1])
    return (-1, -1) if record is None else (record.leader, record.leader_epoch)

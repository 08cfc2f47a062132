"""StreamsGroupHeartbeat: a member joins, stays in or leaves a streams group (KIP-1071)."""

from collections.abc import Sequence
from typing import Final

from ottla.broker.coordinators.clients import client_of
from ottla.broker.coordinators.internal_topics import find_topology_fault
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import ByHandler, OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.streams.answers import HeartbeatOutcome, refused_heartbeat
from ottla.coordination.group.streams.status import StatusCode
from ottla.coordination.group.streams.topology import all_topic_names
from ottla.security.rights import CLUSTER, Operation, on_cluster, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_FAILURES_TOLD_MAX: Final = 3


def _names_of_topics(ask: StreamsGroupHeartbeatRequest) -> Sequence[str]:
    """Return the topics of the topology. Names that no topic can have are refused later."""
    if ask.topology is None or find_topology_fault(ask.topology) is not None:
        return ()
    return all_topic_names(ask.topology)


@serves(
    StreamsGroupHeartbeatRequest,
    "0",
    OfRequest(on_group(Operation.READ), "group_id", says={"error_message": None}),
    OfRequest(on_topic(Operation.DESCRIBE), _names_of_topics, says={"error_message": None}),
    ByHandler(on_cluster(Operation.CREATE)),
    ByHandler(on_topic(Operation.CREATE)),
)
def streams_group_heartbeat(
    ask: StreamsGroupHeartbeatRequest, context: BrokerContext
) -> Deferred[StreamsGroupHeartbeatResponse]:
    """Let the group coordinator answer, and have internal topics created that are missing."""
    broker = context.broker
    if not broker.groups.serves_streams_protocol:
        return Deferred.of(refused_heartbeat(ErrorCode.UNSUPPORTED_VERSION).response)
    if ask.topology is not None and (fault := find_topology_fault(ask.topology)) is not None:
        return Deferred.of(refused_heartbeat(ErrorCode.STREAMS_INVALID_TOPOLOGY, fault).response)
    if ask.member_epoch < 0:
        broker.journal.member_left(context, ask.group_id, ask.member_id, None)
    answer: Deferred[HeartbeatOutcome] = Deferred()
    broker.groups.coordinator.streams_group_heartbeat(
        ask, client_of(context), broker.clock.now_ms(), answer.resolve
    )
    return answer.then(lambda outcome: _create_topics(ask.group_id, outcome, context))


def _create_topics(
    group_id: str, outcome: HeartbeatOutcome, context: BrokerContext
) -> StreamsGroupHeartbeatResponse:
    """Create what is missing, in the name of the member. Tell it if that is not allowed, or has failed."""
    response, missing = outcome
    if not missing:
        return response
    groups = context.broker.groups
    if not context.may(on_cluster(Operation.CREATE), CLUSTER):
        denied = [name for name in missing if not context.allows(on_topic(Operation.CREATE), name)]
        if denied:
            return _with_detail(response, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
    groups.internal_topics.create(
        missing, context, 2 * groups.streams_intervals(group_id).heartbeat_interval_ms
    )
    failures = groups.internal_topics.failures(missing)
    if not failures:
        return response
    told = [f"{name} ({why})" for name, why in list(failures.items())[:_FAILURES_TOLD_MAX]]
    more = len(failures) - len(told)
    return _with_detail(
        response, f"; Creation failed: {', '.join(told)}{f' and {more} more' if more > 0 else ''}."
    )


def _with_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> StreamsGroupHeartbeatResponse:
    statuses = tuple(
        replace(status, status_detail=status.status_detail + detail)
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else status
        for status in response.status or ()
    )
    return replace(response, status=statuses)

"""DescribeCluster: the brokers of the cluster, and its id."""

from typing import Final

from ottla.broker.node import BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, CheckedBy, serves, serves_on_controller
from ottla.security.rights import CLUSTER, NOT_ASKED, Operation, ResourceType, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_MISMATCHED: Final = "The request was sent to an endpoint of type {}, but we wanted an endpoint of type {}"


@serves(
    DescribeClusterRequest,
    "0-2",
    free_because="every client must find the brokers",
    checked_by=CheckedBy.HANDLER,
    listeners=BOTH,
)
def describe_cluster(ask: DescribeClusterRequest, context: BrokerContext) -> DescribeClusterResponse:
    """Answer for the listener that is asked on. Of the controllers, only their own listeners tell."""
    if ask.endpoint_type == _CONTROLLERS:
        return _refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, _MISMATCHED.format("BROKER", "CONTROLLER"))
    if ask.endpoint_type != _BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {ask.endpoint_type}")
    endpoints = context.broker.endpoints
    living = endpoints.living(context)
    listed = endpoints.all(context) if ask.include_fenced_brokers else living
    return DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        # Controllers are not for clients to talk to. Any broker hands a request on to them.
        controller_id=living[context.broker.random.randrange(len(living))].node_id if living else -1,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=one.node_id, host=one.host, port=one.port, rack=one.rack, is_fenced=one.is_fenced
            )
            for one in listed
        ),
        cluster_authorized_operations=(
            cluster_operations(context) if ask.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


@serves_on_controller(DescribeClusterRequest)
def describe_controllers(ask: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """List the controllers that have the listener that is asked on."""
    if ask.endpoint_type == _BROKERS:
        return _refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, _MISMATCHED.format("CONTROLLER", "BROKER"))
    if ask.endpoint_type != _CONTROLLERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {ask.endpoint_type}")
    node = context.node
    controllers = sorted(node.image.controllers.items())
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=node.cluster_id,
        controller_id=node.quorum.leader.node_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=controller_id, host=endpoint.host, port=endpoint.port, rack=None, is_fenced=False
            )
            for controller_id, controller in controllers
            for endpoint in controller.endpoints
            if endpoint.name == context.listener_name
        ),
        cluster_authorized_operations=(
            cluster_operations(context) if ask.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def cluster_operations(context: RequestContext) -> int:
    """Return the bit set of what the client may do to the cluster. Who may not describe it learns nothing."""
    if not context.may(on_cluster(Operation.DESCRIBE), CLUSTER):
        return 0
    return context.operations(ResourceType.CLUSTER, CLUSTER)


def _refused(error_code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error_code, error_message=message, cluster_id="", brokers=())

"""DescribeCluster (API key 60): the nodes of the cluster."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=60, versions="0-2", flexible="0+", listeners=("broker", "controller"))
class DescribeClusterRequest:
    """Ask for the cluster's id and its brokers, or (v1+) its controllers.

    v2 may ask for fenced brokers too.
    """

    include_cluster_authorized_operations: bool = wire("0+")
    endpoint_type: i8 = wire("1+", default=1)
    include_fenced_brokers: bool = wire("2+", default=False)


@struct
class DescribeClusterBroker:
    """A node of the cluster and its endpoint."""

    broker_id: i32 = wire("0+", map_key=True)
    host: str = wire("0+")
    port: i32 = wire("0+")
    rack: str | None = wire("0+", default=None)
    is_fenced: bool = wire("2+", default=False)


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """Give the cluster's id and its nodes of the kind asked for.

    From v2 on each broker tells whether it is fenced.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    endpoint_type: i8 = wire("1+", default=1)
    cluster_id: str = wire("0+")
    controller_id: i32 = wire("0+", default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = wire("0+")
    cluster_authorized_operations: i32 = wire("0+", default=-2147483648)

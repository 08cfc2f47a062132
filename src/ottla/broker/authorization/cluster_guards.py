"""The guards of APIs about the cluster whose responses have no error for the whole request."""

from typing import Any, Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import refused
from ottla.broker.serving.context import RequestContext
from ottla.security.rights import CLUSTER, Operation, on_cluster
from ottla.wire.apis import ApiKey
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ottla.wire.messages.elect_leaders import ERROR_OF_ALL_FROM, ElectLeadersRequest

_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@guards(ApiKey.ELECT_LEADERS)
def elect_leaders(ask: ElectLeadersRequest, context: RequestContext, serve: Serve) -> Any:
    """Ask for the cluster. The first version has no error for the request as a whole."""
    if context.allows(on_cluster(Operation.ALTER), CLUSTER):
        return serve(ask)
    response = refused(ask, _DENIED)
    if context.version >= ERROR_OF_ALL_FROM:
        return response
    return replace(response, error_code=ErrorCode.NONE)


@guards(ApiKey.ALTER_REPLICA_LOG_DIRS)
def alter_replica_log_dirs(ask: AlterReplicaLogDirsRequest, context: RequestContext, serve: Serve) -> Any:
    """Ask for the cluster."""
    if context.allows(on_cluster(Operation.ALTER), CLUSTER):
        return serve(ask)
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in ask.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(partition_index=number, error_code=_DENIED)
                for number in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        )
    )

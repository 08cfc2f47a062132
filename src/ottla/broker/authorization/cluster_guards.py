"""The guards of APIs about the cluster whose responses have no error for the whole request."""

from typing import Any, Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import only_error, refused
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply
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
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.wire.messages.elect_leaders import ERROR_OF_ALL_FROM, ElectLeadersRequest
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@guards(ApiKey.ELECT_LEADERS)
def elect_leaders(ask: ElectLeadersRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the cluster. The first version has no error for the request as a whole."""
    if context.allows(on_cluster(Operation.ALTER), CLUSTER):
        return serve(ask)
    response = refused(ask, _DENIED)
    if context.version >= ERROR_OF_ALL_FROM:
        return response
    return replace(response, error_code=ErrorCode.NONE)


@guards(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def list_partition_reassignments(
    ask: ListPartitionReassignmentsRequest, context: RequestContext, serve: Serve
) -> Any:
    """Ask for the cluster. A refusal names the partitions that were asked about."""
    if context.allows(on_cluster(Operation.DESCRIBE), CLUSTER):
        return serve(ask)
    return only_error(
        ListPartitionReassignmentsResponse,
        _DENIED,
        topics=tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(
                        partition_index=number, replicas=(), adding_replicas=(), removing_replicas=()
                    )
                    for number in topic.partition_indexes
                ),
            )
            for topic in ask.topics or ()
        ),
    )


@guards(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def describe_client_quotas(ask: DescribeClientQuotasRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the cluster."""
    if context.allows(on_cluster(Operation.DESCRIBE_CONFIGS), CLUSTER):
        return serve(ask)
    return only_error(DescribeClientQuotasResponse, _DENIED, entries=None)


@guards(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
def describe_user_scram_credentials(
    ask: DescribeUserScramCredentialsRequest, context: RequestContext, serve: Serve
) -> Any:
    """Ask for the cluster. A refusal has an entry for each user, without a name."""
    if context.allows(on_cluster(Operation.DESCRIBE), CLUSTER):
        return serve(ask)
    refusals = tuple(only_error(DescribeUserScramCredentialsResult, _DENIED) for _ in ask.users or ())
    return only_error(DescribeUserScramCredentialsResponse, _DENIED, results=refusals)


@guards(ApiKey.ALTER_REPLICA_LOG_DIRS)
def alter_replica_log_dirs(ask: AlterReplicaLogDirsRequest, context: RequestContext, serve: Serve) -> Reply:
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

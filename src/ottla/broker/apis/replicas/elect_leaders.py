"""ElectLeaders: partitions get the leader that a user wants."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.elect_leaders import ERROR_OF_ALL_FROM, ElectLeadersRequest, ElectLeadersResponse


@serves(
    ElectLeadersRequest,
    "0-2",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("topic_partitions.partitions", "replica_election_results.partition_results"),),
)
def elect_leaders(ask: ElectLeadersRequest, context: RequestContext) -> Deferred[ElectLeadersResponse]:
    """Answer when the leaders are elected."""
    reply = context.ask_controller(ask)
    return reply if context.version >= ERROR_OF_ALL_FROM else reply.then(_without_error_of_all)


def _without_error_of_all(response: ElectLeadersResponse) -> ElectLeadersResponse:
    """The first version has no error for the request as a whole. Each partition has it as well."""
    return replace(response, error_code=ErrorCode.NONE)

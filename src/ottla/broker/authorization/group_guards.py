"""The guard of FindCoordinator, where one field says what the names in another one are."""

from collections.abc import Callable
from typing import Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.sorting import sort_out
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply
from ottla.security.rights import (
    CLUSTER,
    Operation,
    on_cluster,
    on_group,
    on_transactional_id,
)
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import (
    SEVERAL_FROM,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)

_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_DESCRIBE: Final = on_group(Operation.DESCRIBE)
_TRANSACTION_KEY: Final = 1
_SHARE_KEY: Final = 2


@guards(ApiKey.FIND_COORDINATOR)
def find_coordinator(ask: FindCoordinatorRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each group or transactional id. Only brokers look for coordinators of share groups."""
    find_denial = _key_check(ask.key_type, context)
    if context.version < SEVERAL_FROM:
        denial = find_denial(ask.key)
        if denial is None:
            return serve(ask)
        return FindCoordinatorResponse(
            error_code=denial, error_message=denial.name, node_id=-1, host="", port=-1
        )

    def refuse(key: str) -> FoundCoordinator | None:
        denial = find_denial(key)
        if denial is None:
            return None
        return FoundCoordinator(key=key, node_id=-1, host="", port=-1, error_code=denial, error_message="")

    return sort_out(
        context,
        ask,
        serve,
        "coordinator_keys",
        "coordinators",
        refuse,
        FindCoordinatorResponse,
    )


def _key_check(key_type: int, context: RequestContext) -> Callable[[str], ErrorCode | None]:
    if key_type == _TRANSACTION_KEY:
        right, denied = (
            on_transactional_id(Operation.DESCRIBE),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )
    else:
        right, denied = _DESCRIBE, _DENIED
    if key_type == _SHARE_KEY:
        is_broker = context.allows(on_cluster(Operation.CLUSTER_ACTION), CLUSTER)
        return lambda _: None if is_broker else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return lambda key: None if context.allows(right, key) else denied

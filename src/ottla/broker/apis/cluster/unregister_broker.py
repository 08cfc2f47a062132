"""UnregisterBroker: a broker leaves the cluster for good. For one that is alive that is refused."""

from typing import Final

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.runtime.log_lines import repeated_lines
from ottla.security.rights import Operation, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

_lines: Final = repeated_lines("ottla.broker")


@serves(
    UnregisterBrokerRequest,
    "0",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
)
def unregister_broker(
    ask: UnregisterBrokerRequest, context: RequestContext
) -> Deferred[UnregisterBrokerResponse]:
    """Answer when the broker is forgotten."""

    def log(answer: UnregisterBrokerResponse) -> UnregisterBrokerResponse:
        detail = f"{ask.broker_id}, requested by client {context.client_id!r} at {context.peer_host}"
        if answer.error_code is ErrorCode.POLICY_VIOLATION:
            _lines.warn("refused to unregister a broker that is alive", detail)
        elif answer.error_code is ErrorCode.NONE:
            _lines.warn("unregistered a broker", detail)
        return answer

    return context.ask_controller(ask).then(log)

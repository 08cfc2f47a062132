"""The way to the active controller: a request goes in, and its response comes out later.

Handlers, and the parts of a broker that report to the controller, ask by request and never call a decision.
So they do not know whether the controller is in this process, on another node, or on none at the moment.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.broker.deferred import Deferred
from ottla.quorum.controller.decision import Caller

_logger: Final = logging.getLogger("ottla.controller")


class ControllerChannel(Protocol):
    """Where the controller is asked."""

    def ask(self, ask: Any, caller: Caller | None = None) -> Deferred[Any]:
        """Send a request, for the client `caller` or for this node itself, and return its response.

        The response comes when the decision is committed and published on this node. It refuses the request
        with NOT_CONTROLLER if there is no active controller, or none any more before the decision is
        committed: then nobody knows whether it will be. The deferred fails if the controller itself does.
        """


class LocalController:
    """The controller of this node."""

    def __init__(self, ask: Callable[[Any, Caller | None, Callable[[Any], None]], None]) -> None:
        """`ask` is that of the node's `MetadataQuorum`."""
        self._ask = ask

    def ask(self, ask: Any, caller: Caller | None = None) -> Deferred[Any]:
        """Let the controller of this node decide."""
        response: Deferred[Any] = Deferred()
        try:
            self._ask(ask, caller, response.resolve)
        except Exception as error:
            if response.is_done:
                raise
            # A bug of ours, or a decision that does not fit into a batch. It concerns this request alone. It
            # is logged here because some requests are sent without waiting for the response.
            _logger.critical("the controller failed on %s", type(ask).__name__, exc_info=error)
            response.fail(error)
        return response

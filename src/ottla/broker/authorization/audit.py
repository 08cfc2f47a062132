"""The audit log: who was denied what, who changed what, and who logged in, as lines of JSON.

    {"time_ms": 1, "event": "denied", "principal": "User:bob", "host": "10.0.0.7", "operation": "WRITE", ...}

Requests that only read or write records are not listed one by one if they are allowed: there may be a
hundred thousand in a second. Lines are limited per second. What is left out is counted, by kind, in a line of
its own, so that nobody can hide a denial behind a flood of others. No value of a config and no secret is ever
written.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ottla.security.rights import Right
from ottla.wire.declare import fields_of
from ottla.world.clock import Clock

if TYPE_CHECKING:
    from ottla.broker.serving.context import RequestContext

LOGGER: Final = "ottla.audit"
LINES_PER_SECOND_MAX: Final = 200
NAMES_MAX: Final = 20
"""How many names of a request are listed."""
NAME_CHARACTERS_MAX: Final = 249
_NAMES: Final = frozenset(
    (
        "broker_id",
        "entity_name",
        "name",
        "operation",
        "owner_principal_name",
        "permission_type",
        "principal",
        "principal_filter",
        "resource_name",
        "resource_name_filter",
        "topic",
        "topic_names",
    )
)
"""Fields of requests that say what a change is about. Values and secrets are not among them."""


class Audit:
    """The audit log of one node."""

    def __init__(self, clock: Clock, node_id: int) -> None:
        self._clock = clock
        self._node_id = node_id
        self._logger = logging.getLogger(LOGGER)
        self._second = 0
        self._written = 0
        self._left_out: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """How many events of each kind there were, written or not."""

    def denied(self, context: "RequestContext", right: Right, name: str) -> None:
        """Take note that a client may not do something."""
        self._write(
            "denied",
            **_client(context),
            operation=right.operation.name,
            resource_type=right.resource_type.name,
            resource=name[:NAME_CHARACTERS_MAX],
        )

    def changed(self, context: "RequestContext", ask: Any) -> None:
        """Take note that a client asks the controller for a change."""
        about: list[str] = []
        if self._logger.isEnabledFor(logging.INFO):
            about = [str(name)[:NAME_CHARACTERS_MAX] for name in islice(names_in(ask), NAMES_MAX)]
        self._write("change", **_client(context), request=type(ask).__name__, about=about)

    def logged_in(self, context: "RequestContext") -> None:
        """Take note of a login."""
        self._write("login", **_client(context), by=context.login)

    def login_failed(self, host: str, listener: str, reason: str) -> None:
        """Take note of a login that failed. The reason names the user, if there is one."""
        self._write("login failed", host=host, listener=listener, reason=reason[:NAME_CHARACTERS_MAX])

    def _write(self, event: str, **details: Any) -> None:
        self.counts[event] += 1
        if not self._logger.isEnabledFor(logging.INFO):
            return
        now_ms = self._clock.now_ms()
        second = now_ms // 1000
        if second != self._second:
            self._second, self._written = second, 0
            if self._left_out:
                left_out, self._left_out = dict(self._left_out), Counter()
                self._log(now_ms, "left out", counts=left_out)
        if self._written >= LINES_PER_SECOND_MAX:
            self._left_out[event] += 1
            return
        self._written += 1
        self._log(now_ms, event, **details)

    def _log(self, now_ms: int, event: str, **details: Any) -> None:
        line = {"time_ms": now_ms, "node": self._node_id, "event": event, **details}
        self._logger.info("%s", json.dumps(line))


def _client(context: "RequestContext") -> dict[str, Any]:
    return {
        "principal": str(context.principal),
        "host": context.host,
        "listener": context.listener_name,
        "client_id": (context.client_id or "")[:NAME_CHARACTERS_MAX],
    }


def names_in(message: Any) -> Iterator[Any]:
    """Give the names that a request is about, in its order."""
    for field in fields_of(type(message)):
        value = getattr(message, field)
        if isinstance(value, tuple) and not hasattr(value, "__wire_fields__"):
            for element in value:
                if hasattr(element, "__wire_fields__"):
                    yield from names_in(element)
                elif field in _NAMES:
                    yield element
        elif hasattr(value, "__wire_fields__"):
            yield from names_in(value)
        elif field in _NAMES and value is not None:
            yield value

"""The audit log: who was denied what, who changed what, and who logged in, as lines of JSON.

    {"time_ms": 1, "event": "denied", "principal": "User:bob", "host": "10.0.0.7", "operation": "WRITE", ...}

Requests that only read or write records are not listed one by one if they are allowed: there may be a
hundred thousand in a second. Each principal has a number of lines a second for each kind of event, so that
nobody can hide what another one does behind a flood. Changes of rules, users, quotas, tokens and configs, and
passwords that were refused, are written however many there are. What is left out is counted in lines of its
own, for each principal. No value of a config and no secret is ever written.

A change is noted where the client is connected: that broker knows its listener and asks the controller once.
The controller does not note what was forwarded to it.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ottla.broker.serving.context import RequestContext
from ottla.quorum.quorum_protocols import CallLater
from ottla.security.rights import Right
from ottla.wire.apis import ApiKey
from ottla.wire.declare import fields_of, spec_of
from ottla.world.clock import Clock

LOGGER: Final = "ottla.audit"
LINES_PER_SECOND_MAX: Final = 50
"""How many lines each principal has in a second, for each kind of event."""
NAMED_MAX: Final = 1000
"""For how many principals what was left out is counted one by one."""
FORWARDED: Final = "forwarded"
"""How a client has logged in whose request came from another node."""
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

_ALWAYS_WRITTEN: Final = frozenset(
    (
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.DELETE_ACLS,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.UPDATE_FEATURES,
    )
)
_BETWEEN_NODES: Final = frozenset(
    (
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.BROKER_HEARTBEAT,
    )
)
"""What nodes ask the controller for all the time: no client has asked for it."""


class Audit:
    """The audit log of one node."""

    def __init__(self, clock: Clock, node_id: int, call_later: CallLater | None = None) -> None:
        """With `call_later`, what was left out is counted a second later even if nothing follows."""
        self._clock = clock
        self._node_id = node_id
        self._call_later = call_later
        self._logger = logging.getLogger(LOGGER)
        self._second = 0
        # How many lines were written, and how many were not, in this second, for each principal and kind.
        self._written: Counter[tuple[str, str]] = Counter()
        self._left_out: dict[str, Counter[str]] = {}
        self.counts: Counter[str] = Counter()
        """How many events of each kind there were, written or not."""

    def denied(self, context: RequestContext, right: Right, name: str) -> None:
        """Take note that a client may not do something."""
        self._write(
            "denied",
            str(context.principal),
            **_client(context),
            operation=right.operation.name,
            resource_type=right.resource_type.name,
            resource=name[:NAME_CHARACTERS_MAX],
        )

    def changed(self, context: RequestContext, ask: Any) -> None:
        """Take note that a client asks for a change, unless another node has done so already."""
        if context.login == FORWARDED or spec_of(type(ask)).api_key in _BETWEEN_NODES:
            return
        if getattr(ask, "resources", True) == ():
            # All that it named was denied, which is noted already.
            return
        about: list[str] = []
        if self._logger.isEnabledFor(logging.INFO):
            about = [str(name)[:NAME_CHARACTERS_MAX] for name in islice(names_in(ask), NAMES_MAX)]
        self._write(
            "change",
            None if spec_of(type(ask)).api_key in _ALWAYS_WRITTEN else str(context.principal),
            **_client(context),
            request=type(ask).__name__,
            about=about,
        )

    def logged_in(self, context: RequestContext) -> None:
        """Take note of a login."""
        self._write("login", str(context.principal), **_client(context), by=context.login)

    def login_failed(self, host: str, listener: str, reason: str, *, is_guess: bool) -> None:
        """Take note of a login that failed. The reason names the user, if there is one.

        `is_guess` says that a password or a token was refused. These are slow already: see `guesses`.
        """
        whose = None if is_guess else host
        self._write("login failed", whose, host=host, listener=listener, reason=reason[:NAME_CHARACTERS_MAX])

    def flush(self) -> None:
        """Write how much was left out up to now."""
        left_out, self._left_out = self._left_out, {}
        for who, counts in left_out.items():
            self._log(self._clock.now_ms(), "left out", who=who, counts=dict(counts))

    def _write(self, event: str, whose: str | None, **details: Any) -> None:
        """Write a line, or count it. `whose` budget it comes from; None if it is written in any case."""
        self.counts[event] += 1
        if not self._logger.isEnabledFor(logging.INFO):
            return
        now_ms = self._clock.now_ms()
        if now_ms // 1000 != self._second:
            self._second = now_ms // 1000
            self._written.clear()
            self.flush()
        if whose is not None:
            self._written[whose, event] += 1
            if self._written[whose, event] > LINES_PER_SECOND_MAX:
                self._leave_out(event, whose)
                return
        self._log(now_ms, event, **details)

    def _leave_out(self, event: str, whose: str) -> None:
        if not self._left_out and self._call_later is not None:
            self._call_later(1000, self.flush)
        if whose not in self._left_out and len(self._left_out) >= NAMED_MAX:
            whose = "others"
        self._left_out.setdefault(whose, Counter())[event] += 1

    def _log(self, now_ms: int, event: str, **details: Any) -> None:
        line = {"time_ms": now_ms, "node": self._node_id, "event": event, **details}
        self._logger.info("%s", json.dumps(line))


def _client(context: RequestContext) -> dict[str, Any]:
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

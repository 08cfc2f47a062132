"""What a handler or a guard returns, and what can be done with it. Nobody else tells the kinds apart.

    a message             the answer
    a `Deferred`          the answer comes later
    a generator           the answer is worked out in turns with everybody else: see `in_turns`
    an `EncodedResponse`  the body of the answer, encoded already
    `NO_REPLY`            the client expects no answer

A handler may also raise `CloseConnection`. What is deferred or worked out in turns becomes one of the others.
"""

from collections.abc import Callable
from types import GeneratorType
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard

from ottla.broker.deferred import Deferred
from ottla.broker.serving.in_turns import InTurns
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.wire.declare import Message


class NoReply:
    """The type of `NO_REPLY`."""


NO_REPLY: Final = NoReply()
"""What a handler returns when the client expects no answer at all (Produce with acks 0)."""


class EncodedResponse(NamedTuple):
    """The body of an answer, encoded already for the version that was asked in."""

    body: bytes


class CloseConnection(ConnectionEnded):
    """Raised by a handler: close the connection without an answer, which is how some errors are reported."""


Reply: TypeAlias = Message | EncodedResponse | NoReply | Deferred[Any] | InTurns[Any]


def is_in_turns(reply: Reply) -> TypeGuard[InTurns[Any]]:
    """Say whether an answer is still to be worked out."""
    return isinstance(reply, GeneratorType)


def is_there(reply: Reply) -> bool:
    """Say whether nobody has to wait for the answer."""
    return not isinstance(reply, Deferred) or reply.is_done


def settle(reply: Reply) -> InTurns[Any]:
    """Return what a reply becomes: one that is worked out in turns, or that comes later."""
    while True:
        if is_in_turns(reply):
            reply = yield from reply
        elif isinstance(reply, Deferred):
            if not reply.is_done:
                yield reply
            reply = reply.value()
        else:
            return reply


def then(reply: Reply, change: Callable[[Any], Any]) -> Reply:
    """Change an answer, now or when it comes."""
    if isinstance(reply, Deferred):
        return reply.then(change)
    if is_in_turns(reply):
        return _change_in_turns(reply, change)
    changed: Reply = change(reply)
    return changed


def _change_in_turns(reply: InTurns[Any], change: Callable[[Any], Any]) -> InTurns[Any]:
    return change((yield from settle(reply)))

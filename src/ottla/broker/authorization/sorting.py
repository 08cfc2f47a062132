"""Requests that list resources: the handler gets those that the client may use, the others are refused."""

from collections.abc import Callable
from typing import Any

from ottla.broker.authorization.refusals import in_order
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.in_turns import AT_ONCE, InTurns, finish
from ottla.broker.serving.replies import Reply, settle, then
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty


def sort_out(
    context: RequestContext,
    ask: Any,
    serve: Callable[[Any], Reply],
    asked: str,
    answered: str,
    refuse: Callable[[Any], Any | None],
    response: type[Any],
    is_request_checked: bool = False,
) -> Reply:
    """Serve the entries of one list that the client may use, and put the refusals of the others beside.

    `refuse` returns the refusal of an entry, or None for one that is allowed. `response` is what the refusals
    are put into if no entry is left to serve. With `is_request_checked`, the handler is called even then, and
    what it finds wrong with the request as a whole is all that is answered.
    """
    sorting = _sort_out(ask, serve, asked, answered, refuse, response, is_request_checked)
    # A part of a large request is as small as it has to be.
    return finish(sorting) if context.portion_of or len(getattr(ask, asked)) <= AT_ONCE else sorting


def _sort_out(
    ask: Any,
    serve: Callable[[Any], Reply],
    asked: str,
    answered: str,
    refuse: Callable[[Any], Any | None],
    response: type[Any],
    is_request_checked: bool,
) -> InTurns[Any]:
    entries = getattr(ask, asked)
    allowed: list[Any] = []
    denied: dict[int, Any] = {}
    for place, entry in enumerate(entries):
        refusal = refuse(entry)
        if refusal is None:
            allowed.append(entry)
        else:
            denied[place] = refusal
        if place % AT_ONCE == AT_ONCE - 1:
            yield None
    if not denied:
        return serve(ask)
    if not allowed and not is_request_checked:
        return replace(empty(response), **{answered: tuple(denied.values())})

    def put_together(response: Any) -> Any:
        answers = getattr(response, answered)
        if not is_request_checked:
            return replace(response, **{answered: in_order(entries, denied, answers)})
        if response.error_code is not ErrorCode.NONE:
            return response
        return replace(response, **{answered: (*denied.values(), *answers)})

    return then(serve(replace(ask, **{asked: tuple(allowed)})), put_together)


def change_each(
    context: RequestContext, answer: Reply, listed: str, change: Callable[[Any], Any | None]
) -> Reply:
    """Change each entry that an answer lists. None leaves it out."""
    if context.portion_of:
        return then(answer, lambda response: finish(_change_each(response, listed, change)))
    return _change_each(answer, listed, change)


def _change_each(answer: Reply, listed: str, change: Callable[[Any], Any | None]) -> InTurns[Any]:
    response = yield from settle(answer)
    changed: list[Any] = []
    for place, entry in enumerate(getattr(response, listed)):
        if (now := change(entry)) is not None:
            changed.append(now)
        if place % AT_ONCE == AT_ONCE - 1:
            yield None
    return replace(response, **{listed: tuple(changed)})

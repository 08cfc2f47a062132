"""Requests that list resources: the handler gets those that the client may use, the others are refused."""

from collections.abc import Callable
from typing import Any

from ottla.broker.authorization.guards import Serve
from ottla.broker.authorization.refusals import in_order, then
from ottla.wire.declare import replace


def sort_out(
    ask: Any,
    serve: Serve,
    asked: str,
    answered: str,
    refuse: Callable[[Any], Any | None],
    nothing: Callable[[], Any],
) -> Any:
    """Serve the entries of one list that the client may use, and put the refusals of the others beside.

    `refuse` returns the refusal of an entry, or None for one that is allowed. `nothing` makes the response
    that the refusals are put into if no entry is left to serve.
    """
    entries = getattr(ask, asked)
    denied: dict[int, Any] = {}
    for place, entry in enumerate(entries):
        refusal = refuse(entry)
        if refusal is not None:
            denied[place] = refusal
    if not denied:
        return serve(ask)
    if len(denied) == len(entries):
        return replace(nothing(), **{answered: tuple(denied.values())})
    allowed = tuple(entry for place, entry in enumerate(entries) if place not in denied)

    def put_together(response: Any) -> Any:
        return replace(response, **{answered: in_order(entries, denied, getattr(response, answered))})

    return then(serve(replace(ask, **{asked: allowed})), put_together)

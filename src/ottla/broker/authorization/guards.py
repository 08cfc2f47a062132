"""The guards: what stands between a request and its handler where access rules hold.

A guard lets the handler serve what the client may ask for, and answers for the rest as Kafka does. It sees
the same requests as the handler: of a large one that is cut, each part. So handlers know nothing of access
rules, and a node without rules pays nothing for them.

Nearly all guards are made here from what an API declares: see `serving.demands`. Some are functions, because
what they ask for depends on more than one field:

    @guards(ApiKey.PRODUCE)
    def produce(ask: ProduceRequest, context: RequestContext, serve: Serve) -> Reply:

The answers of some APIs depend on the rules in too many places for a guard: their handlers ask by themselves.
Which is which is declared, too, by `checked_by`.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

from ottla.broker.authorization.refusals import ERROR_OF, refused, refused_part
from ottla.broker.authorization.sorting import change_each, sort_out
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.demands import Demand, OfAnswer, OfEach, OfRequest, demand_of
from ottla.broker.serving.handlers import CheckedBy, Handler, declared_of
from ottla.broker.serving.in_turns import AT_ONCE, InTurns, finish
from ottla.broker.serving.replies import Reply
from ottla.security.rights import CLUSTER, ResourceType, Right
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import replace
from ottla.wire.layout import layout_of

Serve: TypeAlias = Callable[[Any], Reply]
"""Calls the handler with what the client may ask for."""
Guard: TypeAlias = Callable[[Any, RequestContext, Serve], Reply]
F = TypeVar("F", bound=Guard)
NameOf: TypeAlias = Callable[[Any, RequestContext], str | None]
"""Finds the name of the resource that an entry is about; None if there is nothing to ask for."""

_MODULES: Final = ("group_guards", "offset_guards", "topic_guards", "transaction_guards")
_guards: dict[ApiKey, Guard] = {}


def guards(key: ApiKey) -> Callable[[F], F]:
    """Register the guard of an API that is a function."""

    def register(guard: F) -> F:
        _guards[key] = guard
        return guard

    return register


def written_guards() -> frozenset[ApiKey]:
    """Return the APIs whose guards are functions."""
    for module in _MODULES:
        import_module(f"{__package__}.{module}")
    return frozenset(_guards)


def find_guard(key: ApiKey) -> Guard | None:
    """Return the guard of an API; None for one that needs none."""
    declared = declared_of(key)
    if declared.checked_by is CheckedBy.HANDLER or declared.free_because:
        return None
    if declared.checked_by is CheckedBy.GUARD:
        written_guards()
        return _guards[key]
    return derive_guard(key, [demand_of(declaration) for declaration in declared.demands])


def guarded(key: ApiKey, handler: Handler) -> Handler:
    """Put the guard of an API before its handler."""
    guard = find_guard(key)
    if guard is None:
        return handler

    def handle(ask: Any, context: RequestContext) -> Reply:
        return guard(ask, context, lambda allowed: handler(allowed, context))

    return handle


def derive_guard(key: ApiKey, demands: Sequence[Demand]) -> Guard:
    """Return the guard that sees to what an API demands: first of the request, then of each entry."""
    of_request = [demand for demand in demands if isinstance(demand, OfRequest)]
    of_each = [demand for demand in demands if isinstance(demand, OfEach)]
    of_answer = [demand for demand in demands if isinstance(demand, OfAnswer)]
    serve_allowed = _sorter(key, of_each) if of_each else _serve_all
    for demand in reversed(of_answer):
        serve_allowed = _hider(key, demand, serve_allowed)
    if not of_request:
        return serve_allowed

    def guard(ask: Any, context: RequestContext, serve: Serve) -> Reply:
        checking = _check(ask, context, of_request)
        if context.portion_of or all(len(_names(ask, demand)) <= AT_ONCE for demand in of_request):
            refusal = finish(checking)
            return serve_allowed(ask, context, serve) if refusal is None else refusal
        return _in_turns(checking, lambda: serve_allowed(ask, context, serve))

    return guard


def _serve_all(ask: Any, _context: RequestContext, serve: Serve) -> Reply:
    return serve(ask)


def _in_turns(checking: InTurns[Any], serve: Callable[[], Reply]) -> InTurns[Any]:
    refusal = yield from checking
    return serve() if refusal is None else refusal


def _check(ask: Any, context: RequestContext, demands: Sequence[OfRequest]) -> InTurns[Any]:
    """Return the refusal of a request, or None."""
    for demand in demands:
        if _is_spared(demand.unless, context):
            continue
        for place, name in enumerate(_names(ask, demand)):
            if not context.allows(demand.right, name):
                error_code = ERROR_OF[demand.right.resource_type]
                if demand.refuse is not None:
                    return demand.refuse(ask, error_code, context)
                return refused(ask, error_code, context.version, demand.says)
            if place % AT_ONCE == AT_ONCE - 1:
                yield None
    return None


def _is_spared(right: Right | None, context: RequestContext) -> bool:
    """Say whether the client has a right that stands for all others."""
    return right is not None and context.may(right, CLUSTER)


def _names(ask: Any, demand: OfRequest) -> Sequence[str]:
    """Return the names of the resources that a right is asked on for a request."""
    if not demand.named:
        return (CLUSTER,)
    if callable(demand.named):
        return tuple(demand.named(ask))
    names = getattr(ask, demand.named)
    return (names,) if isinstance(names, str) else names or ()


def _sorter(key: ApiKey, demands: Sequence[OfEach]) -> Guard:
    """Return what serves the entries of a list that the client has the rights for."""
    (listed,) = {demand.named.partition(".")[0] for demand in demands}
    (answered,) = {demand.answered for demand in demands}
    response = api_of(key).response
    entry_response = _entries_of(response, answered)
    name_of = _namer(_entries_of(api_of(key).request, listed), demands[0].named.partition(".")[2])

    def serve_allowed(ask: Any, context: RequestContext, serve: Serve) -> Reply:
        asked_for = [demand for demand in demands if not _is_spared(demand.unless, context)]
        if demands[0].drops_repeated:
            ask = replace(ask, **{listed: tuple(dict.fromkeys(getattr(ask, listed)))})

        def refuse(entry: Any) -> Any | None:
            for demand in asked_for:
                if demand.types and entry.resource_type not in demand.types:
                    continue
                is_on_cluster = demand.right.resource_type is ResourceType.CLUSTER
                name = CLUSTER if is_on_cluster else name_of(entry, context)
                if name is None or context.allows(demand.right, name):
                    continue
                error_code = ERROR_OF[demand.right.resource_type]
                if demand.refuse is not None:
                    return demand.refuse(entry, error_code, context)
                return refused_part(entry, entry_response, error_code, demand.says)
            return None

        if not asked_for:
            return serve(ask)
        is_request_checked = demands[0].is_request_checked
        return sort_out(context, ask, serve, listed, answered, refuse, response, is_request_checked)

    return serve_allowed


def _entries_of(message: type[Any], listed: str) -> type[Any] | None:
    """Return the struct of the entries of a list; None if they are plain values."""
    (field,) = [field for field in layout_of(message) if field.name == listed]
    assert field.is_array, f"{message.__name__}.{listed} is a list"
    return field.struct


def _namer(entry: type[Any] | None, named: str) -> NameOf:
    """Return what finds the name in an entry."""
    if entry is None:
        return lambda name, _context: name
    fields = {field.name: field for field in layout_of(entry)}
    named_in = fields[named].versions
    if "topic_id" not in fields:
        return lambda asked, _context: getattr(asked, named)

    def find(asked: Any, context: RequestContext) -> str | None:
        if context.version in named_in:
            name: str = getattr(asked, named)
            return name
        topic = context.node.image.topics.find_by_id(asked.topic_id)
        return None if topic is None else topic.name

    return find


def _hider(key: ApiKey, demand: OfAnswer, serve_more: Guard) -> Guard:
    """Return what leaves out of an answer what the client may not see."""
    *path, named = demand.named.split(".")
    _entries_of(api_of(key).response, path[0])

    def serve_visible(ask: Any, context: RequestContext, serve: Serve) -> Reply:
        answer = serve_more(ask, context, serve)
        if _is_spared(demand.unless, context):
            return answer

        def show(entry: Any) -> Any | None:
            if context.may(demand.right, getattr(entry, named)):
                return entry
            return None if demand.hide is None else demand.hide(entry)

        def show_inside(entry: Any) -> Any:
            return replace(entry, **{path[1]: tuple(_kept(getattr(entry, path[1]), show))})

        return change_each(context, answer, path[0], show if len(path) == 1 else show_inside)

    return serve_visible


def _kept(entries: Iterable[Any], show: Callable[[Any], Any | None]) -> Iterable[Any]:
    return (shown for entry in entries if (shown := show(entry)) is not None)

"""The table of handlers: one file in a folder of `ottla.broker.apis` for each API, named after it.

    @serves(
        ListOffsetsRequest,
        "1-11",
        OfEach(on_topic(Operation.DESCRIBE), "topics.name", "topics"),
        cuts=(...),
    )
    def list_offsets(ask: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:

All that is to be said about an API is said there, once: in which versions and on which listeners it is
served, which rights it asks for and on what, whether the controller decides it, where a large request may be
cut, how long its answers may be. What ApiVersions and the login have to know before a handler is imported is
collected from there into `served_apis`.

A handler returns a `Reply`: see `replies`. It runs on the event loop and must not block. One whose request is
a list says by a `Cut` where a large one may be cut: it is then called for each part. One that cannot be cut
and may take long returns a generator, which yields wherever others may be served and returns the answer.

Record batches in `ask` lie in the connection's receive buffer: they are valid until the handler returns, so
one that defers before it has used them copies them first.

Files are imported when the first request comes, or soon after the start if none does: a node that starts does
not wait for eighty modules.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import Demand
from ottla.broker.serving.replies import Reply
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.security.rights import Right
from ottla.wire.apis import ApiKey
from ottla.wire.declare import spec_of

if TYPE_CHECKING:
    from ottla.broker.serving.lanes import Lanes

APIS: Final = "ottla.broker.apis"
"""Where the handlers are."""
Ask = TypeVar("Ask")
Context = TypeVar("Context", bound=RequestContext)
Replied = TypeVar("Replied", bound=Reply)
Handler: TypeAlias = Callable[[Any, RequestContext], Reply]


BROKERS: Final = frozenset((Listener.BROKER,))
CONTROLLERS: Final = frozenset((Listener.CONTROLLER,))
BOTH: Final = BROKERS | CONTROLLERS

NewLanes: TypeAlias = "Callable[[RequestContext, Callable[[Any], None], Callable[[Exception], None]], Lanes]"


class CheckedBy(Enum):
    """Who sees to the rights that an API declares."""

    DECLARATION = auto()
    """Nobody else: a guard is made of what is declared."""
    GUARD = auto()
    """A guard that is a function, since what it asks for depends on more than one field."""
    HANDLER = auto()
    """The handler: its answers depend on rights in too many places for a guard."""


class Declared(NamedTuple):
    """What a handler says about its API.

    `demands` are the rights that Kafka asks for, and on what: see `demands`. An API without any says why.
    """

    versions: str
    demands: tuple[Right | Demand, ...]
    checked_by: CheckedBy = CheckedBy.DECLARATION
    free_because: str = ""
    listeners: frozenset[Listener] = BROKERS
    # Answers may hold ranges of files.
    sends_files: bool = False
    # It is served to clients that have not logged in yet.
    is_for_login: bool = False
    # Kafka lists those of telemetry only where metrics of clients are received.
    is_advertised: bool = True
    # Requests may be as large as `socket.request.max.bytes` allows, because they carry records.
    carries_records: bool = False
    # One version more is known, which is not final: `unstable.api.versions.enable` offers it.
    has_unstable: bool = False
    # The controller decides it: brokers pass it on in an envelope.
    is_forwarded: bool = False
    # Answers are short unless the request is large, or are encoded already: they are encoded at once.
    has_short_answers: bool = False
    # Where large requests are cut. Of several cuts, the first counts whose part of the request is large.
    cuts: tuple[Cut, ...] = ()
    # How many elements a request may have, where that is less than memory would allow.
    elements_max: int | None = None
    # How small an element can be, where that saves the usual request a look at how many there are.
    element_bytes_min: int = 1
    # Says whether the time of a request does not count against the quota of its client: see `limits.exempt`.
    is_exempt: "Callable[[Any, RequestContext], bool] | None" = None
    # Makes the short ways of a connection for clients that repeat themselves.
    new_lanes: "NewLanes | None" = None

    @property
    def rights(self) -> tuple[Right, ...]:
        """The rights that are asked for."""
        return tuple(demand if isinstance(demand, Right) else demand.right for demand in self.demands)


_handlers: dict[ApiKey, Handler] = {}
_controller_handlers: dict[ApiKey, Handler] = {}
_declared: dict[ApiKey, Declared] = {}


def serves(
    request: type[Ask], versions: str, *demands: Right | Demand, **others: Any
) -> Callable[[Callable[[Ask, Context], Replied]], Callable[[Ask, Context], Replied]]:
    """Register the function that answers requests of this type, and what it declares of their API."""
    key = spec_of(request).api_key
    assert key is not None, "only requests have handlers"

    def register(handler: Callable[[Ask, Context], Replied]) -> Callable[[Ask, Context], Replied]:
        # On the listeners of a broker, a context is one of a broker.
        _handlers[ApiKey(key)] = cast("Handler", handler)
        _declared[ApiKey(key)] = Declared(versions, demands, **others)
        return handler

    return register


def serves_on_controller(
    request: type[Ask],
) -> Callable[[Callable[[Ask, RequestContext], Replied]], Callable[[Ask, RequestContext], Replied]]:
    """Register the function that answers requests of this type on the listeners of the controller.

    It is for an API that brokers serve in another way. It lies in the same file.
    """
    key = spec_of(request).api_key
    assert key is not None, "only requests have handlers"

    def register(
        handler: Callable[[Ask, RequestContext], Replied],
    ) -> Callable[[Ask, RequestContext], Replied]:
        _controller_handlers[ApiKey(key)] = handler
        return handler

    return register


def find_handler(key: ApiKey, listener: Listener = Listener.BROKER) -> Handler | None:
    """Return the handler of an API, imported now if need be; None for one that is not served."""
    if key not in SERVED or listener not in SERVED[key].listeners:
        return None
    declared_of(key)
    if listener is Listener.CONTROLLER and key in _controller_handlers:
        return _controller_handlers[key]
    return _handlers[key]


def declared_of(key: ApiKey) -> Declared:
    """Return what the handler of a served API declares. It is imported now if need be."""
    if key not in _declared:
        import_module(_find_modules()[key.name.lower()])
    return _declared[key]


def all_declared() -> Mapping[ApiKey, Declared]:
    """Return what is declared in the files that were imported so far."""
    return _declared


@cache
def _find_modules() -> dict[str, str]:
    """Return the module of each API by its name. Nothing is imported but the folders."""
    apis = import_module(APIS)
    folders = [import_module(f"{APIS}.{folder.name}") for folder in iter_modules(apis.__path__)]
    return {
        module.name: f"{folder.__name__}.{module.name}"
        for folder in folders
        for module in iter_modules(folder.__path__)
    }

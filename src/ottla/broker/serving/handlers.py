"""The table of handlers: one file in a folder of `ottla.broker.apis` for each API, named after it.

    @handles(ListOffsetsRequest)
    def list_offsets(ask: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:

A handler returns the answer, a `Deferred` of it, `NO_REPLY`, or an answer that is encoded already. It runs
on the event loop and must not block. One whose request is a list says by a `Cut` where a large one may be
cut: it is then called for each part. One that cannot be cut and may take long returns a generator, which
yields wherever others may be served and returns the answer.

Record batches in `ask` lie in the connection's receive buffer: they are valid until the handler returns, so
one that defers before it has used them copies them first.

`served_apis.py` says in which versions and on which listeners an API is served, and which rights it asks for.
Files are imported when the first request comes, or soon after the start if none does: a node that starts does
not wait for eighty modules.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ottla.broker import apis
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.wire.apis import ApiKey
from ottla.wire.declare import spec_of

if TYPE_CHECKING:
    from ottla.broker.serving.context import RequestContext

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Any, "RequestContext"], Any]


class NoReply:
    """The type of `NO_REPLY`."""


NO_REPLY: Final = NoReply()
"""What a handler returns when the client expects no answer at all (Produce with acks 0)."""


class EncodedResponse(NamedTuple):
    """The body of an answer, encoded already for the version that was asked in."""

    body: bytes


class CloseConnection(ConnectionEnded):
    """Raised by a handler: close the connection without an answer, which is how some errors are reported."""


_handlers: dict[ApiKey, Handler] = {}
_controller_handlers: dict[ApiKey, Handler] = {}
_cuts: dict[ApiKey, tuple[Cut, ...]] = {}
_elements_max: dict[ApiKey, int | None] = {}


def handles(request: type[Any], *cuts: Cut, elements_max: int | None = None) -> Callable[[F], F]:
    """Register the function that answers requests of this type, and where large ones are cut.

    Of several cuts, the first counts whose part of the request is large. `elements_max` bounds what a request
    may have of elements, where that is less than memory would allow.
    """
    key = spec_of(request).api_key
    assert key is not None, "only requests have handlers"

    def register(handler: F) -> F:
        _handlers[ApiKey(key)] = handler
        _cuts[ApiKey(key)] = cuts
        _elements_max[ApiKey(key)] = elements_max
        return handler

    return register


def handles_on_controller(request: type[Any]) -> Callable[[F], F]:
    """Register the function that answers requests of this type on the listeners of the controller.

    It is for an API that brokers serve in another way. It lies in the same file.
    """
    key = spec_of(request).api_key
    assert key is not None, "only requests have handlers"

    def register(handler: F) -> F:
        _controller_handlers[ApiKey(key)] = handler
        return handler

    return register


def find_handler(key: ApiKey, listener: Listener = Listener.BROKER) -> Handler | None:
    """Return the handler of an API, imported now if need be; None for one that is not served."""
    if key not in SERVED or listener not in SERVED[key].listeners:
        return None
    if key not in _handlers and key not in _controller_handlers:
        import_module(_find_modules()[key.name.lower()])
    if listener is Listener.CONTROLLER and key in _controller_handlers:
        return _controller_handlers[key]
    return _handlers[key]


@cache
def _find_modules() -> dict[str, str]:
    """Return the module of each API by its name. Nothing is imported but the folders."""
    folders = [import_module(f"{apis.__name__}.{folder.name}") for folder in iter_modules(apis.__path__)]
    return {
        module.name: f"{folder.__name__}.{module.name}"
        for folder in folders
        for module in iter_modules(folder.__path__)
    }


def find_cuts(key: ApiKey) -> tuple[Cut, ...]:
    """Return where the requests of an API are cut. Its handler must have been found before."""
    return _cuts.get(key, ())


def find_elements_max(key: ApiKey) -> int | None:
    """Return how many elements a request of an API may have, if its handler says so."""
    return _elements_max.get(key)

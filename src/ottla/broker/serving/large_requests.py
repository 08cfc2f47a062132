"""A large request, from its bytes to the bytes of its answer, in turns with everybody else.

    decode -> cut -> handler, handler, handler -> merge -> encode -> the connection

Each arrow is a place where others are served: see `runtime.turns`. What a request may cost is bounded, before
and while it is served. Beyond a bound the connection is closed, since no answer could be trusted to arrive:

    elements    by what an element and its answer take in memory, together at most `COST_BYTES_MAX`
    answer      `ANSWER_BYTES_MAX`, counted as it grows

Deviation: Kafka has no such bounds. One request can take all memory of a broker there.
"""

import struct
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut, Merged, Pace, arrange, cut, join_rest, weigh
from ottla.broker.serving.replies import NO_REPLY, Reply, is_there, settle
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.runtime.connections.outbox import HeldAnswer
from ottla.runtime.turns import Task
from ottla.wire.codec import patient_decoder_of, patient_encoder_of
from ottla.wire.compiling.source import ELEMENTS_AT_ONCE
from ottla.wire.declare import replace
from ottla.wire.encoded_items import as_array
from ottla.wire.errors import MalformedBytes
from ottla.wire.layout import Field, layout_of

if TYPE_CHECKING:
    from ottla.broker.serving.routes import Route

COST_BYTES_MAX: Final = 256 << 20
"""What the elements of one request and of its answer may take in memory."""
ANSWER_BYTES_MAX: Final = 100 << 20
"""How large the answer to a large request may become. Kafka's clients take as much."""

LARGE_BYTES_MAX: Final = 256 << 20
"""What all large requests and their answers may hold in memory before only the oldest goes on."""

ATOMIC_ELEMENTS_MAX: Final = 100_000
"""How many elements a request may have that is not served in parts."""

LATER_MAX: Final = 64
"""How many parts of a request may wait for their answers before the next part is served."""

_BAD_BYTES: Final = (struct.error, IndexError, UnicodeDecodeError)
_STRUCT_BYTES: Final = 80
_FIELD_BYTES: Final = 8
_STRING_BYTES: Final = 56
_INTEGER_BYTES: Final = 36


class TooCostly(MalformedBytes):
    """A request asks for more than one request may."""


def element_cost(cls: type[Any], version: int, paths: Iterable[str] = ()) -> int:
    """Return what the largest element of an array in a message takes in memory, its strings empty.

    Where a message is cut, only the arrays on the way there count: `paths` names them.
    """
    names = {name for path in paths for name in path.split(".")}
    return max(
        (_cost(field, version) for field in _arrays(cls, version) if not names or field.name in names),
        default=0,
    )


def _arrays(cls: type[Any], version: int) -> Iterator[Field]:
    for field in layout_of(cls):
        if version in field.versions:
            if field.is_array:
                yield field
            if field.struct is not None:
                yield from _arrays(field.struct, version)


def _cost(field: Field, version: int) -> int:
    if field.struct is None:
        return _STRING_BYTES if field.kind in ("string", "bytes", "uuid") else _INTEGER_BYTES
    inner = [inside for inside in layout_of(field.struct) if version in inside.versions]
    return _STRUCT_BYTES + sum(
        _FIELD_BYTES + (_STRING_BYTES if inside.kind in ("string", "bytes") and not inside.is_array else 0)
        for inside in inner
    )


class LargeRequest:
    """One request on its way."""

    __slots__ = ("_answer_bytes", "_context", "_now_ns", "_route", "_took_ns", "task")

    def __init__(self, route: "Route", context: RequestContext, task: Task, frame_bytes: int) -> None:
        self._route = route
        self._context = context
        self._answer_bytes = 0
        self._took_ns = 0
        self._now_ns = context.node.clock.monotonic_ns
        self.task = task
        task.hold(frame_bytes)

    def decode(self, frame: memoryview, position: int) -> Generator[None, None, Any]:
        """Return the request."""
        route = self._route
        decoding = patient_decoder_of(route.api.request, route.version)(frame, position, len(frame))
        elements = 0
        try:
            while True:
                next(decoding)
                elements += ELEMENTS_AT_ONCE
                if elements > route.elements_max:
                    raise TooCostly(
                        f"{route.api.key.name} has more than {elements} elements, at most "
                        f"{route.elements_max} are allowed"
                    )
                self.task.hold(ELEMENTS_AT_ONCE * route.element_bytes)
                yield
        except StopIteration as done:
            return done.value[0]
        except _BAD_BYTES as error:
            raise MalformedBytes(f"request: {error}") from error

    def respond(
        self, ask: Any, count_time: Callable[[int, Any], Any]
    ) -> Generator[Deferred[Any] | None, None, Any]:
        """Return the answer of the handler, or the merged answers to all parts of the request."""
        plan = self._route.find_cut(ask)
        if plan is None:
            response = yield from self._handle(ask)
        else:
            self._context.portion_of = weigh(ask, plan.asked.split("."), RECORDS_MAX)
            try:
                response = yield from self._respond_in_parts(ask, plan)
            finally:
                self._context.portion_of = 0
        return count_time(self._took_ns, response)

    def _respond_in_parts(self, ask: Any, plan: Cut) -> Generator[Deferred[Any] | None, None, Any]:
        path, (array, *inner) = plan.asked.split("."), plan.answered.split(".")
        merged = Merged(inner)
        answer: Any = None
        pace = Pace(plan.at_once)
        # Answers that come later, in their order: the disk may sync for many parts at once.
        later: deque[tuple[Reply, bool]] = deque()

        def take(reply: Reply, is_continued: bool) -> Generator[Deferred[Any] | None, None, None]:
            nonlocal answer
            response = yield from settle(reply)
            if response is NO_REPLY:
                answer = response
                return
            self._route.find_errors(response, self._route.count_error)
            answer = response if answer is None else join_rest(answer, response, array)
            yield from merged.add(getattr(response, array), is_continued, self._encode_item)
            self._count_answer(merged.size_bytes)

        wholes: list[Any] = yield from arrange(ask, plan)
        for whole in wholes:
            for portion, is_continued in cut(whole, path, pace):
                started_ns = self._now_ns()
                later.append((self._route.handler(portion, self._context), is_continued))
                took_ns = self._now_ns() - started_ns
                self._took_ns += took_ns
                pace.took(took_ns)
                # Only the first part is charged with the bytes of the request.
                self._context.request_bytes = 0
                while later and (len(later) > LATER_MAX or is_there(later[0][0])):
                    yield from take(*later.popleft())
                yield None
        while later:
            yield from take(*later.popleft())
        if answer is None or answer is NO_REPLY:
            return answer
        yield from merged.finish(self._encode_item)
        self._count_answer(merged.size_bytes)
        return replace(answer, **{array: as_array(merged.count, merged.take())})  # type: ignore[arg-type]

    def _handle(self, ask: Any) -> Generator[Deferred[Any] | None, None, Any]:
        started_ns = self._now_ns()
        reply = self._route.handler(ask, self._context)
        self._took_ns += self._now_ns() - started_ns
        return (yield from settle(reply))

    def _encode_item(self, item: Any, add: Callable[[bytes], None]) -> Generator[None, None, None]:
        route = self._route
        yield from patient_encoder_of(type(item), route.version, route.api.response)(item, add)

    def _count_answer(self, size_bytes: int) -> None:
        self.task.hold(size_bytes - self._answer_bytes)
        self._answer_bytes = size_bytes
        if size_bytes > ANSWER_BYTES_MAX:
            raise TooCostly(
                f"the answer to {self._route.api.key.name} takes more than {ANSWER_BYTES_MAX} bytes"
            )


def held(pieces: list[Any], task: Task) -> HeldAnswer:
    """Return an answer whose memory is counted until it is sent."""
    size_bytes = sum(len(piece) for piece in pieces if isinstance(piece, bytes | bytearray | memoryview))
    task.hold(size_bytes - task.held_bytes)
    return HeldAnswer(pieces, task.release)

"""What is known of each API and version that is served: how to decode, answer and count it.

A `Route` is made when a request of its API and version comes for the first time, and looked up from then on.
It also writes answers: at once, or, if they may be large, in turns.
"""

import struct
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from struct import Struct
from typing import Any, Final

from ottla.broker.serving.cuts import PIECE_BYTES, Cut
from ottla.broker.serving.exempt import exemption
from ottla.broker.serving.handlers import Declared, Handler, declared_of, find_handler
from ottla.broker.serving.large_requests import (
    ATOMIC_ELEMENTS_MAX,
    COST_BYTES_MAX,
    element_cost,
)
from ottla.broker.serving.replies import EncodedResponse
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.runtime.connections.file_range import FileRange
from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.codec import decoder_of, encoder_of, patient_encoder_of
from ottla.wire.compiling.error_finder import ErrorFinder, compile_error_finder
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import Unencodable

_SIZE_AND_ID = Struct(">ii")
_BAD_VALUES = (struct.error, TypeError, AttributeError, UnicodeEncodeError, ValueError)

PLAIN_FRAME_BYTES_MAX: Final = 8 << 20
"""How large a request may be that carries no records.

Deviation: Kafka takes any up to `socket.request.max.bytes`. Decoded, a list of one-byte elements takes 38
times as much memory as its bytes, so 100 MiB would take 4 GiB. A fetch of 200,000 partitions has 6 MiB.
"""

ANY_SIZE: Final = 1 << 31
FRESH_ERRORS_MAX: Final = 100
"""How many errors of one answer are written to the journal."""

Pieces = list[Any]
"""An answer: one piece of bytes, or several with ranges of files among them."""


class Route:
    """What is known of one version of an API, and plain counters of what came."""

    __slots__ = (
        "_cut_from_bytes",
        "api",
        "cuts",
        "decode",
        "element_bytes",
        "elements_max",
        "encode",
        "encodes_at_once",
        "errors",
        "find_errors",
        "find_errors_patiently",
        "frame_bytes_max",
        "fresh_errors",
        "handler",
        "has_file_ranges",
        "head_size",
        "is_exempt",
        "is_flexible",
        "latency_buckets",
        "new_lanes",
        "now_ns",
        "received_bytes",
        "requests",
        "response_tail",
        "sent_bytes",
        "total_ns",
        "version",
    )

    def __init__(
        self,
        api: Api,
        version: int,
        declared: Declared,
        handler: Handler,
        now_ns: Callable[[], int],
        fresh_errors: list[tuple[ApiKey, ErrorCode]],
    ) -> None:
        self.api = api
        self.version = version
        self.handler = handler
        self.now_ns = now_ns
        self.is_flexible = version in api.flexible
        self.decode: Callable[[memoryview, int, int], tuple[Any, int]] = decoder_of(api.request, version)
        self.encode: Callable[[Any, Callable[[Any], None]], None] = encoder_of(api.response, version)
        self.find_errors: ErrorFinder = compile_error_finder(api.response, version)
        # Made when it is first needed, which for most routes is never.
        self.find_errors_patiently: Any = None
        self.response_tail = b"\0" * api.response_header_version(version)
        self.head_size = 4 + len(self.response_tail)
        self.has_file_ranges = declared.sends_files
        self.new_lanes = declared.new_lanes
        self.is_exempt = declared.is_exempt or exemption(declared.rights)
        self.frame_bytes_max = ANY_SIZE if declared.carries_records else PLAIN_FRAME_BYTES_MAX
        self.cuts = declared.cuts
        self._cut_from_bytes = min((plan.at_once for plan in self.cuts), default=ANY_SIZE)
        self._cut_from_bytes *= declared.element_bytes_min
        self.element_bytes = element_cost(
            api.request, version, [plan.asked for plan in self.cuts]
        ) + element_cost(api.response, version, [plan.answered for plan in self.cuts])
        self.elements_max = COST_BYTES_MAX // max(self.element_bytes, 1)
        elements_max = declared.elements_max or (ANY_SIZE if self.cuts else ATOMIC_ELEMENTS_MAX)
        self.elements_max = min(self.elements_max, elements_max)
        self.encodes_at_once = declared.has_short_answers
        self.requests = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self.errors: Counter[ErrorCode] = Counter()
        self.fresh_errors = fresh_errors
        self.total_ns = 0
        # Bucket k counts answers that took below 2^k microseconds, and not below 2^(k-1).
        self.latency_buckets = [0] * 32

    def encode_answer(self, correlation_id: int, response: Any) -> Pieces:
        """Write the frame of an answer. Ranges of files stay what they are."""
        if isinstance(response, EncodedResponse):
            size = self.head_size + len(response.body)
            self.sent_bytes += size + 4
            return [_SIZE_AND_ID.pack(size, correlation_id) + self.response_tail + response.body]
        pieces: Pieces = []
        try:
            self.encode(response, pieces.append)
            self.find_errors(response, self.count_error)
        except Unencodable:
            raise
        except _BAD_VALUES as error:
            raise Unencodable(f"{self.api.key.name} v{self.version}: {error}") from error
        if self.has_file_ranges:
            return self._frame(correlation_id, pieces)
        body = b"".join(pieces)
        size = self.head_size + len(body)
        self.sent_bytes += size + 4
        return [_SIZE_AND_ID.pack(size, correlation_id) + self.response_tail + body]

    def encode_patiently(self, correlation_id: int, response: Any) -> Generator[None, None, Pieces]:
        """Write the frame of an answer that may be large. Yields after some elements each time."""
        if isinstance(response, EncodedResponse):
            return self.encode_answer(correlation_id, response)
        pieces: Pieces = []
        done: Pieces = []
        try:
            for _ in patient_encoder_of(self.api.response, self.version)(response, pieces.append):
                done += _join_bytes(_flatten(pieces))
                pieces.clear()
                yield
            if self.find_errors_patiently is None:
                self.find_errors_patiently = compile_error_finder(
                    self.api.response, self.version, patient=True
                )
            yield from self.find_errors_patiently(response, self.count_error)
        except Unencodable:
            raise
        except _BAD_VALUES as error:
            raise Unencodable(f"{self.api.key.name} v{self.version}: {error}") from error
        return self._frame(correlation_id, done + _flatten(pieces))

    def _frame(self, correlation_id: int, pieces: Pieces) -> Pieces:
        size = self.head_size + sum(map(len, pieces))
        pieces.insert(0, _SIZE_AND_ID.pack(size, correlation_id) + self.response_tail)
        self.sent_bytes += size + 4
        return _join_bytes(pieces)

    def find_cut(self, ask: Any) -> Cut | None:
        """Return where a request is to be cut, if it is large."""
        for plan in self.cuts:
            if plan.is_large(ask):
                return None if plan.is_whole is not None and plan.is_whole(ask) else plan
        return None

    def is_to_be_cut(self, ask: Any, size_bytes: int) -> bool:
        """Say whether a request is large, by its elements. Mostly its size says enough."""
        return size_bytes > self._cut_from_bytes and self.find_cut(ask) is not None

    def count_error(self, error: ErrorCode) -> None:
        """Count an error in an answer."""
        self.errors[error] += 1
        if len(self.fresh_errors) < FRESH_ERRORS_MAX:
            self.fresh_errors.append((self.api.key, error))

    def count(self, started_ns: int) -> None:
        """Count an answered request."""
        took_ns = self.now_ns() - started_ns
        self.total_ns += took_ns
        bucket = (took_ns // 1000).bit_length()
        self.latency_buckets[bucket if bucket < 31 else 31] += 1


class Routes:
    """The routes of one kind of listener that were asked for so far.

    `by_key` has them by API key and version in one number.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        listener: Listener = Listener.BROKER,
        guard: Callable[[ApiKey, Handler], Handler] | None = None,
        *,
        with_unstable: bool = False,
    ) -> None:
        """`now_ns` is the clock that requests are timed by. `guard` puts access rules before a handler.

        `with_unstable` serves versions that are not final yet.
        """
        self.now_ns = now_ns
        self.listener = listener
        self._guard = guard
        self._with_unstable = with_unstable
        self.by_key: dict[int, Route] = {}
        # The errors of the answer that was encoded last, for the journal.
        self.fresh_errors: list[tuple[ApiKey, ErrorCode]] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(list(self.by_key.values()))

    def find(self, api_key: int, version: int) -> Route | None:
        """Return the route, made now if need be; None for what this node does not serve."""
        served = SERVED.get(api_key)  # type: ignore[call-overload]  # an ApiKey is a number
        if served is None or self.listener not in served.listeners:
            return None
        if version not in served.versions_offered(with_unstable=self._with_unstable):
            return None
        api = api_of(api_key)
        handler = find_handler(api.key, self.listener)
        assert handler is not None, "what is in the table has a handler"
        if self._guard is not None:
            handler = self._guard(api.key, handler)
        route = Route(api, version, declared_of(api.key), handler, self.now_ns, self.fresh_errors)
        self.by_key[api_key << 16 | version] = route
        return route


def _flatten(pieces: Pieces) -> Pieces:
    """Put the pieces of encoded items where their list is."""
    if list not in map(type, pieces):
        return pieces
    flat: Pieces = []
    for piece in pieces:
        flat += piece if type(piece) is list else (piece,)
    return flat


def _join_bytes(pieces: Pieces) -> Pieces:
    """Make one piece of all bytes that follow each other, because each piece is sent on its own.

    Pieces that are large stay what they are, since to copy them would take longer.
    """
    joined: Pieces = []
    start = 0
    for place, piece in enumerate(pieces):
        if type(piece) is FileRange or len(piece) >= PIECE_BYTES:
            joined.append(b"".join(pieces[start:place]))
            joined.append(piece)
            start = place + 1
    joined.append(b"".join(pieces[start:] if start else pieces))
    return joined

"""How a large request is cut into small ones, and how their answers become one.

Most requests are lists: of groups, of topics and their partitions, of resources. Each element is answered for
itself. A handler says so by a `Cut`, and then has to know nothing of large requests:

    @serves(DescribeGroupsRequest, "0-6", on_group(Operation.DESCRIBE), cuts=(Cut("groups", "groups"),))

A large request is served as several small ones, each an ordinary call of the handler, with turns for
everybody else between them. An element with elements of its own, such as a topic with many partitions, may be
cut as well; then the answers to its parts become one element again. Where elements must not be repeated in a
request, `key` says what they are known by: all that are repeated go into one of the small requests, in pairs,
so that the handler sees that they are.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.wire.declare import fields_of, replace
from ottla.wire.encoded_items import EncodedItems

EncodeItem = Callable[[Any, Callable[[bytes], None]], Generator[None, None, None]]
"""Encodes the first, an element, by calls of the second. Yields after some elements inside."""

AT_ONCE: Final = 32
"""Up to how many elements a request is served at once."""
KEYS_AT_ONCE: Final = 1_000
PIECE_BYTES: Final = 64 * 1024
"""Large answers are kept in pieces of about this size: to copy all of it at once would take long."""


class Cut(NamedTuple):
    """Where a request is cut: an array, or arrays inside each other, of the request and of its answer."""

    asked: str
    answered: str
    at_once: int = AT_ONCE
    key: Callable[[Any], Any] | None = None
    """What an element is known by that must not be repeated."""
    is_whole: Callable[[Any], bool] | None = None
    """Says of a request that it must not be cut."""
    drops_repeated: bool = False
    """An element that is repeated counts once."""
    narrow: Callable[[Any], Any] | None = None
    """Leaves out elements that do not count because of others."""

    def is_large(self, ask: Any) -> bool:
        """Say whether a request has more elements than are served at once."""
        return weigh(ask, tuple(self.asked.split(".")), self.at_once) > self.at_once


class Pace:
    """How many elements are served at once: as many as take about a millisecond."""

    __slots__ = ("size",)

    def __init__(self, size: int = AT_ONCE) -> None:
        self.size = size

    def took(self, took_ns: int) -> None:
        """Learn from how long the last ones took."""
        if took_ns > 2_000_000:
            self.size = max(2, self.size // 2)
        elif took_ns < 500_000:
            self.size = min(4096, self.size * 2)


class Portion(NamedTuple):
    """A small request, and whether it goes on inside the element that the one before ended with."""

    ask: Any
    is_continued: bool


def weigh(struct: Any, path: Sequence[str], limit: int) -> int:
    """Return how many elements a struct has along a path; anything above `limit` if there are more."""
    items = getattr(struct, path[0])
    if items is None:
        return 1
    if len(path) == 1:
        return 1 + len(items)
    weight = 1
    for item in items:
        weight += weigh(item, path[1:], limit)
        if weight > limit:
            break
    return weight


def cut(ask: Any, path: Sequence[str], pace: Pace) -> Iterator[Portion]:
    """Give a request, or a struct of it, in parts of as many elements as the pace says at the time."""
    name, *inner = path
    items = getattr(ask, name) or ()
    if not inner:
        position = 0
        while position < len(items):
            part = items[position : position + pace.size]
            yield Portion(replace(ask, **{name: part}), position > 0)
            position += len(part)
        return
    batch: list[Any] = []
    weight = 0
    for item in items:
        item_weight = weigh(item, inner, pace.size)
        if batch and weight + item_weight > pace.size:
            yield Portion(replace(ask, **{name: tuple(batch)}), False)
            batch, weight = [], 0
        if item_weight > pace.size:
            for number, part in enumerate(cut(item, inner, pace)):
                yield Portion(replace(ask, **{name: (part.ask,)}), number > 0)
        else:
            batch.append(item)
            weight += item_weight
    if batch:
        yield Portion(replace(ask, **{name: tuple(batch)}), False)


def arrange(ask: Any, plan: Cut) -> Generator[None, None, list[Any]]:
    """Return the requests to cut: one, or two if elements are repeated. Yields between some of them.

    The second has each repeated element twice, one behind the other, so that a cut at an even place parts
    none from its like.
    """
    if plan.narrow is not None:
        ask = plan.narrow(ask)
        yield
    if plan.key is None:
        return [ask]
    name = plan.asked.split(".")[0]
    items = getattr(ask, name) or ()
    times: Counter[Any] = Counter()
    for start in range(0, len(items), KEYS_AT_ONCE):
        times.update(map(plan.key, items[start : start + KEYS_AT_ONCE]))
        yield
    if len(times) == len(items):
        return [ask]
    single: list[Any] = []
    repeated: dict[Any, Any] = {}
    for start in range(0, len(items), KEYS_AT_ONCE):
        for item in items[start : start + KEYS_AT_ONCE]:
            key = plan.key(item)
            if times[key] == 1:
                single.append(item)
            else:
                repeated.setdefault(key, item)
        yield
    if plan.drops_repeated:
        return [replace(ask, **{name: (*single, *repeated.values())})]
    pairs = tuple(item for item in repeated.values() for _ in range(2))
    return [replace(ask, **{name: part}) for part in (tuple(single), pairs) if part]


def goes_on(before: Any, after: Any, path: Sequence[str]) -> bool:
    """Say whether two elements of answers are parts of one: all but the arrays inside is the same."""
    name = path[0] if path else None
    return all(
        getattr(before, field) == getattr(after, field) for field in fields_of(type(before)) if field != name
    )


def join_rest(before: Any, after: Any, array: str) -> Any:
    """Return the answer `before` with what the next one tells beside the array that is cut."""
    changes: dict[str, Any] = {}
    for field in fields_of(type(before)):
        first, second = getattr(before, field), getattr(after, field)
        if field == array or first == second:
            continue
        if field == "throttle_time_ms":
            changes[field] = max(first, second)
        elif type(first) is tuple and type(second) is tuple:
            changes[field] = tuple(dict.fromkeys((*first, *second)))
        elif not first:
            changes[field] = second
    return replace(before, **changes) if changes else before


class _Open:
    """An element that may go on, with all that its array has so far.

    To join two parts would copy both, so an element of a hundred thousand parts would be copied as often.
    """

    __slots__ = ("_inner", "_items", "_last", "_path", "struct")

    def __init__(self, struct: Any, path: Sequence[str]) -> None:
        self.struct = struct
        self._path = path
        self._inner = path[1:]
        # None while it has gone no further: most elements never do.
        self._items: list[Any] | None = None
        # The last of its items, if that has an array of its own.
        self._last: _Open | None = None

    def go_on(self, part: Any) -> None:
        """Take another part of it."""
        items = getattr(part, self._path[0])
        if self._items is None:
            mine = getattr(self.struct, self._path[0])
            if mine is None or items is None:
                self.struct = self.struct if items is None else part
                return
            self._items = list(mine)
            self._open_last()
        if self._last is not None and items and goes_on(self._last.struct, items[0], self._inner):
            self._last.go_on(items[0])
            items = items[1:]
        if items:
            self._close_last()
            self._items += items
            self._open_last()

    def _open_last(self) -> None:
        if self._inner and self._items:
            self._last = _Open(self._items.pop(), self._inner)

    def _close_last(self) -> None:
        if self._last is not None and self._items is not None:
            self._items.append(self._last.closed())
            self._last = None

    def closed(self) -> Any:
        """Return the element: it goes no further."""
        if self._items is None:
            return self.struct
        self._close_last()
        return replace(self.struct, **{self._path[0]: tuple(self._items)})


class Merged:
    """The elements of all answers so far: encoded, but for the last, which may go on."""

    __slots__ = ("_inner", "_last", "_small", "_small_bytes", "count", "encoded", "size_bytes")

    def __init__(self, inner: Sequence[str]) -> None:
        self._inner = inner
        self._last: _Open | None = None
        self.count = 0
        self._small: list[bytes] = []
        self._small_bytes = 0
        self.encoded: list[bytes] = []
        self.size_bytes = 0

    def add(self, items: Any, is_continued: bool, encode: EncodeItem) -> Generator[None, None, None]:
        """Take the elements of the next answer."""
        if type(items) is EncodedItems:
            self._keep(items.body)
            self.count += len(items)
            return
        for item in items or ():
            if self._last is not None:
                if is_continued and self._inner and goes_on(self._last.struct, item, self._inner):
                    self._last.go_on(item)
                    is_continued = False
                    continue
                yield from self.finish(encode)
            self._last = _Open(item, self._inner)
            is_continued = False

    def finish(self, encode: EncodeItem) -> Generator[None, None, None]:
        """Encode the last element too: it goes no further."""
        if self._last is None:
            return
        last, self._last = self._last.closed(), None
        pieces: list[bytes] = []
        yield from encode(last, pieces.append)
        self._keep(b"".join(pieces))
        self.count += 1

    def take(self) -> list[bytes]:
        """Return all that is encoded, in pieces."""
        self._pack()
        return self.encoded

    def _keep(self, body: bytes) -> None:
        self._small.append(body)
        self._small_bytes += len(body)
        self.size_bytes += len(body)
        if self._small_bytes > PIECE_BYTES:
            self._pack()

    def _pack(self) -> None:
        self.encoded.append(b"".join(self._small))
        self._small.clear()
        self._small_bytes = 0

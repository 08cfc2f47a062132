"""A promise of a value: what a handler returns when it cannot answer yet.

It calls back at once and in order, on the event loop, in the very call that resolves it. That is why it is
not an asyncio future: a future calls back in a later turn of the loop and costs 2 us more for each answer.
A deferred is resolved or failed exactly once; doing so twice is our own bug and asserts.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_WAITING = object()


class Deferred(Generic[T]):
    """A value, or an error, that comes later."""

    __slots__ = ("_error", "_listeners", "_value")

    def __init__(self) -> None:
        self._value: T | object = _WAITING
        self._error: Exception | None = None
        self._listeners: tuple[tuple[Callable[[T], None], Callable[[Exception], None] | None], ...] = ()

    @property
    def is_done(self) -> bool:
        """Say whether the value or an error is there."""
        return self._value is not _WAITING or self._error is not None

    def resolve(self, value: T) -> None:
        """Give the value, and call everyone who waits for it."""
        assert self._value is _WAITING, "a deferred is resolved once"
        assert self._error is None, "one that has failed is not resolved"
        self._value = value
        listeners, self._listeners = self._listeners, ()
        for listener, _ in listeners:
            listener(value)

    def fail(self, error: Exception) -> None:
        """Give up: everyone who waits learns why."""
        assert not self.is_done, "a deferred fails once"
        self._error = error
        listeners, self._listeners = self._listeners, ()
        for _, on_error in listeners:
            if on_error is not None:
                on_error(error)

    def when_done(
        self, listener: Callable[[T], None], on_error: Callable[[Exception], None] | None = None
    ) -> None:
        """Call `listener` with the value, now if it is there already."""
        if self._error is not None:
            if on_error is not None:
                on_error(self._error)
        elif self._value is not _WAITING:
            listener(self._value)  # type: ignore[arg-type]  # narrowed by the sentinel
        else:
            # There is nearly always one.
            self._listeners = (*self._listeners, (listener, on_error))

    def then(self, change: Callable[[T], U]) -> "Deferred[U]":
        """Return a deferred of the changed value. An error of `change` itself becomes the error."""
        changed: Deferred[U] = Deferred()

        def pass_on(value: T) -> None:
            try:
                result = change(value)
            except Exception as error:
                # Whatever it is, the connection that waits has to learn of it.
                changed.fail(error)
            else:
                changed.resolve(result)

        self.when_done(pass_on, changed.fail)
        return changed

    def value(self) -> T:
        """Return the value of one that is done; raise its error if it failed."""
        if self._error is not None:
            raise self._error
        assert self._value is not _WAITING, "the value is not there yet"
        return self._value  # type: ignore[return-value]  # narrowed by the sentinel

    @classmethod
    def of(cls, value: T) -> "Deferred[T]":
        """Return one that is resolved already."""
        deferred: Deferred[T] = cls()
        deferred._value = value
        return deferred


def gather(parts: Sequence[Deferred[T]]) -> Deferred[list[T]]:
    """Return a deferred of all values, in order. The first error is the error."""
    gathered: Deferred[list[T]] = Deferred()
    missing = len(parts)

    def one_more(_value: T) -> None:
        nonlocal missing
        missing -= 1
        if missing == 0 and not gathered.is_done:
            gathered.resolve([part.value() for part in parts])

    def fail(error: Exception) -> None:
        if not gathered.is_done:
            gathered.fail(error)

    if not parts:
        gathered.resolve([])
    for part in parts:
        part.when_done(one_more, fail)
    return gathered

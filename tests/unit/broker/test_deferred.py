"""A deferred calls back once, in order, in the call that resolves it."""

import pytest

from ottla.broker.deferred import Deferred


def test_listeners_are_called_in_order_by_resolve_itself() -> None:
    deferred: Deferred[int] = Deferred()
    heard: list[str] = []
    deferred.when_done(lambda value: heard.append(f"first {value}"))
    deferred.when_done(lambda value: heard.append(f"second {value}"))

    deferred.resolve(7)

    assert heard == ["first 7", "second 7"]


def test_a_late_listener_is_called_at_once() -> None:
    heard: list[int] = []
    Deferred.of(7).when_done(heard.append)
    assert heard == [7]


def test_a_change_that_raises_fails_the_changed_deferred() -> None:
    deferred: Deferred[int] = Deferred()
    errors: list[Exception] = []
    deferred.then(lambda value: 1 // value).when_done(lambda _: None, errors.append)

    deferred.resolve(0)

    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_an_error_passes_through_changes() -> None:
    deferred: Deferred[int] = Deferred()
    changed = deferred.then(str).then(len)

    deferred.fail(KeyError("gone"))

    with pytest.raises(KeyError, match="gone"):
        changed.value()


def test_resolving_twice_is_our_own_bug() -> None:
    deferred: Deferred[int] = Deferred()
    deferred.resolve(1)
    with pytest.raises(AssertionError, match="once"):
        deferred.resolve(2)

"""Connections that come too fast: who waits, and who is turned away."""

from ottla.broker.limits.connection_rates import ADDRESSES_MAX, KEY, UNLIMITED, ConnectionRates
from ottla.runtime.connections.listener import Admission

AT_ONCE = Admission(0, 0)


def rates(limit: int = UNLIMITED, listener_limit: int = UNLIMITED, **by_address: float) -> ConnectionRates:
    """Return rates of which `listener_limit` is for the listener L alone."""
    made = ConnectionRates(11, 1000)
    named = {None if name == "default" else name: rate for name, rate in by_address.items()}
    made.use(limit, {"L": listener_limit}, {(("ip", name),): {KEY: rate} for name, rate in named.items()})
    return made


def test_without_limits_everybody_is_served_at_once() -> None:
    free = rates()
    assert {free.admit("L", "a", 0) for _ in range(10_000)} == {AT_ONCE}


def test_over_the_rate_of_the_node_nobody_is_served_for_a_while() -> None:
    limited = rates(2)
    assert [limited.admit("L", "a", 0) for _ in range(20)] == [AT_ONCE] * 20
    # 21 in the 10 s that a rate is taken over at least: half a second too many.
    assert limited.admit("L", "b", 0) == Admission(500, 0)
    assert limited.admit("L", "b", 20_000) == AT_ONCE


def test_a_listener_over_its_rate_does_not_hold_up_others() -> None:
    limited = rates(listener_limit=1)
    assert [limited.admit("L", "a", 0) for _ in range(10)] == [AT_ONCE] * 10
    assert limited.admit("L", "a", 0) == Admission(1000, 0)
    assert {limited.admit("ANOTHER", "a", 0) for _ in range(100)} == {AT_ONCE}


def test_of_two_rates_the_longer_pause_counts() -> None:
    limited = rates(2, listener_limit=1)
    for _ in range(10):
        limited.admit("L", "a", 0)
    assert limited.admit("L", "a", 0) == Admission(1000, 0)
    assert [limited.admit("ANOTHER", "a", 0) for _ in range(9)] == [AT_ONCE] * 9
    assert limited.admit("ANOTHER", "a", 0) == Admission(500, 0)


def test_an_address_over_its_rate_is_turned_away() -> None:
    limited = rates(a=1)
    assert [limited.admit("L", "a", 0) for _ in range(10)] == [AT_ONCE] * 10
    assert limited.admit("L", "a", 0) == Admission(0, 1000)
    assert limited.admit("L", "b", 0) == AT_ONCE
    assert limited.admit("L", "a", 11_000) == AT_ONCE


def test_who_is_turned_away_does_not_count() -> None:
    limited = rates(1, a=1)
    for _ in range(500):
        limited.admit("L", "a", 0)
    assert limited.admit("L", "a", 11_000) == AT_ONCE
    assert limited.admit("L", "b", 11_000) == AT_ONCE


def test_addresses_under_the_default_have_the_limit_each() -> None:
    limited = rates(default=1, a=100)
    for peer in ("b", "c"):
        assert [limited.admit("L", peer, 0) for _ in range(10)] == [AT_ONCE] * 10
        assert limited.admit("L", peer, 0).close_after_ms > 0
    assert {limited.admit("L", "a", 0) for _ in range(100)} == {AT_ONCE}


def test_an_address_counts_however_it_is_written() -> None:
    limited = rates(**{"0:0:0:0:0:0:0:1": 1})
    assert [limited.admit("L", "::1", 0) for _ in range(11)] == [AT_ONCE] * 10 + [Admission(0, 1000)]


def test_a_rate_of_nothing_lets_everybody_wait() -> None:
    assert rates(0).admit("L", "a", 0) == Admission(1000, 0)


def test_many_addresses_do_not_free_one_that_still_connects() -> None:
    limited = rates(default=1)
    for number in range(ADDRESSES_MAX - 1):
        limited.admit("L", f"early-{number}", 0)
    for _ in range(10):
        limited.admit("L", "busy", 12_000)
    for number in range(ADDRESSES_MAX // 4):
        limited.admit("L", f"late-{number}", 12_000)
    assert limited.admit("L", "busy", 12_000) == Admission(0, 1000)

"""Passwords can be tried a few times at once, then slowly, and nobody is kept out by what others try."""

import pytest

from ottla.broker.login.guesses import KEYS_MAX, OF_ADDRESS, OF_USER, WAIT_MS_MAX, Guesses

HOST, OTHER = "10.0.0.1", "10.0.0.2"
HOUR_MS = 3_600_000


def tries(guesses: Guesses, host: str, user: str, now_ms: int) -> int | None:
    """Try a wrong password. Returns when the answer comes, None if there is none."""
    wait_ms = guesses.find_wait_ms(host, user, now_ms)
    if wait_ms is None:
        return None
    guesses.was_wrong(host, user, now_ms)
    return now_ms + wait_ms


def test_a_few_are_answered_at_once_and_the_next_ones_later_and_later() -> None:
    guesses = Guesses()
    waits = [tries(guesses, HOST, "alice", 0) for _ in range(12)]
    assert waits == [0, 0, 0, 0, 0, 1000, 2000, 3000, 4000, 5000, None, None]


def test_however_many_try_at_once_few_are_answered_in_an_hour() -> None:
    guesses = Guesses()
    answered = sum(
        tries(guesses, HOST, "alice", now_ms) is not None for now_ms in range(0, HOUR_MS, 100) for _ in "ab"
    )
    assert HOUR_MS // OF_USER.cost_ms <= answered <= HOUR_MS // OF_USER.cost_ms + OF_USER.free + 5


def test_many_users_at_one_address_are_slowed_down_as_well() -> None:
    guesses = Guesses()
    answered = sum(
        tries(guesses, HOST, f"user-{now_ms}-{number}", now_ms) is not None
        for now_ms in range(0, 60_000, 50)
        for number in range(4)
    )
    assert 600 <= answered <= 600 + OF_ADDRESS.free + WAIT_MS_MAX // OF_ADDRESS.cost_ms


def test_the_right_password_waits_where_wrong_ones_do_and_only_there() -> None:
    guesses = Guesses()
    while tries(guesses, HOST, "alice", 0) is not None:
        pass
    assert guesses.find_wait_ms(HOST, "alice", 0) is None, "an answer would tell that it is the right one"
    assert guesses.find_wait_ms(OTHER, "alice", 0) == 0
    assert guesses.find_wait_ms(HOST, "bob", 0) == 0
    assert guesses.find_wait_ms(HOST, "alice", 6_000) == 0


def test_right_passwords_cost_nothing() -> None:
    guesses = Guesses()
    assert {guesses.find_wait_ms(HOST, "alice", 0) for _ in range(1_000)} == {0}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8:1:2:3::1", "2001:db8:1:2:4::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "10.0.0.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("not:an:address", "not:an:other", False),
    ],
)
def test_the_network_counts_for_the_newer_family(one: str, other: str, is_same: bool) -> None:
    guesses = Guesses()
    while tries(guesses, one, "alice", 0) is not None:
        pass
    assert (guesses.find_wait_ms(other, "alice", 0) is None) is is_same


def test_the_memory_for_strangers_is_bounded() -> None:
    guesses = Guesses()
    for number in range(2 * KEYS_MAX):
        guesses.was_wrong(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "x" * 1_000, 0)
    assert len(guesses._even_ms) <= KEYS_MAX
    assert max(len(user) for _, user in guesses._even_ms) < 100


def test_who_owes_much_is_not_forgotten_for_those_who_owe_nothing() -> None:
    guesses = Guesses()
    for number in range(KEYS_MAX // 2 - 2):
        guesses.was_wrong(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "", 0)
    for _ in range(40):
        guesses.was_wrong("192.0.2.1", "alice", 1_000)
    for number in range(KEYS_MAX // 2):
        guesses.was_wrong(f"11.{number >> 16}.{number >> 8 & 255}.{number & 255}", "", 1_000)
    assert guesses.find_wait_ms("192.0.2.1", "alice", 1_000) is None

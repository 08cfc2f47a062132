"""Passwords cannot be guessed quickly, and guessing keeps nobody else out."""

from ottla.satellite.guesses import Guesses


def _guess(guesses: Guesses, address: str, user: str, seconds: int) -> int:
    """Guess as often as possible. Returns how many passwords were looked at."""
    looked = 0
    for tenth in range(seconds * 10):
        if guesses.wait_s(address, user, tenth / 10) == 0:
            guesses.failed(address, user, tenth / 10)
            looked += 1
    return looked


def test_an_address_has_few_guesses() -> None:
    assert _guess(Guesses(), "10.0.0.1", "ann", 60) <= 22


def test_an_address_has_few_guesses_over_all_users() -> None:
    guesses = Guesses()
    looked = 0
    for tenth in range(600):
        user = f"user-{tenth}"
        if guesses.wait_s("10.0.0.1", user, tenth / 10) == 0:
            guesses.failed("10.0.0.1", user, tenth / 10)
            looked += 1
    assert looked <= 22


def test_a_user_is_guessed_slowly_from_many_addresses() -> None:
    guesses = Guesses()
    looked = 0
    for tenth in range(600):
        address = f"10.0.{tenth // 256}.{tenth % 256}"
        if guesses.wait_s(address, "ann", tenth / 10) == 0:
            guesses.failed(address, "ann", tenth / 10)
            looked += 1
    assert looked <= 160


def test_addresses_of_one_network_of_version_6_are_one() -> None:
    guesses = Guesses()
    for number in range(10):
        guesses.failed(f"2001:db8::{number:x}", "ann", 0)
    assert guesses.wait_s("2001:db8::ffff", "bob", 0) > 0
    assert guesses.wait_s("2001:db8:0:1::1", "bob", 0) == 0


def test_a_user_who_was_there_is_not_kept_out_by_others_who_guess() -> None:
    guesses = Guesses()
    guesses.succeeded("10.0.0.9", "ann")
    for number in range(200):
        guesses.failed(f"10.0.1.{number}", "ann", 0)
    assert guesses.wait_s("10.0.2.1", "ann", 0) > 0
    assert guesses.wait_s("10.0.0.9", "ann", 0) == 0


def test_who_was_there_cannot_guess_for_ever_either() -> None:
    guesses = Guesses()
    guesses.succeeded("10.0.0.9", "ann")
    assert _guess(guesses, "10.0.0.9", "ann", 60) <= 22


def test_waiting_helps() -> None:
    guesses = Guesses()
    for _ in range(10):
        guesses.failed("10.0.0.1", "ann", 0)
    wait_s = guesses.wait_s("10.0.0.1", "ann", 0)
    assert wait_s > 0
    assert guesses.wait_s("10.0.0.1", "ann", wait_s) == 0


def test_long_names_of_users_take_no_memory() -> None:
    guesses = Guesses()
    guesses.failed("10.0.0.1", "u" * 50_000, 0)
    kept = [user for _, user in guesses._budgets]
    assert max(map(len, kept)) == 64
    # They share a budget.
    for _ in range(9):
        guesses.failed("10.0.0.2", "u" * 40_000, 0)
    assert guesses.wait_s("10.0.0.2", "u" * 50_000, 0) == 0
    guesses.failed("10.0.0.2", "u" * 50_001, 0)
    assert guesses.wait_s("10.0.0.2", "u" * 50_000, 0) > 0

"""Sessions end, cannot be guessed, and belong to one visitor."""

from ottla.console.serving.login import is_own_path
from ottla.console.serving.sessions import Login, Sessions

ALICE = Login("PLAIN", "alice", "secret")


class Clock:
    """A clock that a test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def sessions() -> tuple[Sessions, Clock]:
    clock = Clock()
    return Sessions(100.0, 1_000.0, clock), clock


def test_a_session_ends_when_nobody_uses_it() -> None:
    all_of_them, clock = sessions()
    name, _ = all_of_them.log_in(Sessions.new_id(), "c", ALICE)
    clock.now_s = 99
    assert all_of_them.find(name) is not None
    clock.now_s = 198
    assert all_of_them.find(name) is not None
    clock.now_s = 299
    assert all_of_them.find(name) is None
    assert all_of_them.sweep() == [name]


def test_a_session_ends_after_a_time_however_much_it_is_used() -> None:
    all_of_them, clock = sessions()
    name, _ = all_of_them.log_in(Sessions.new_id(), "c", ALICE)
    for clock.now_s in range(0, 1_001, 50):
        assert all_of_them.find(name) is not None
    clock.now_s = 1_001
    assert all_of_them.find(name) is None


def test_a_login_gets_a_new_number() -> None:
    """Somebody else may have put the old one into this browser."""
    all_of_them, _ = sessions()
    first = Sessions.new_id()
    second, _ = all_of_them.log_in(first, "c", ALICE)
    third, ended = all_of_them.log_in(second, "d", ALICE)
    assert len({first, second, third}) == 3
    assert ended == [second]
    assert all_of_them.find(second) is None
    found = all_of_them.find(third)
    assert found is not None
    assert set(found.logins) == {"c", "d"}


def test_a_token_is_that_of_one_visitor_and_one_process() -> None:
    all_of_them, _ = sessions()
    one, two = Sessions.new_id(), Sessions.new_id()
    assert all_of_them.is_token(one, all_of_them.token(one))
    assert not all_of_them.is_token(one, all_of_them.token(two))
    assert not all_of_them.is_token(one, "")
    assert not all_of_them.is_token(one, "é")
    assert not sessions()[0].is_token(one, all_of_them.token(one))


def test_sessions_are_bounded() -> None:
    all_of_them, _ = sessions()
    names = [all_of_them.log_in(Sessions.new_id(), "c", ALICE)[0] for _ in range(1_001)]
    assert all_of_them.find(names[0]) is None
    assert all_of_them.find(names[1]) is not None


def test_a_login_shows_no_password() -> None:
    assert "secret" not in repr(ALICE)


def test_after_a_login_only_pages_of_ours_follow() -> None:
    assert is_own_path("/c/cluster/topics?q=a")
    for target in ("https://elsewhere", "//elsewhere", "/\\elsewhere", "/c/\\x", "", "/c/\r\nSet-Cookie: x"):
        assert not is_own_path(target), target

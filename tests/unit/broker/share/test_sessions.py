"""Share sessions are found by their member, are at most as many as allowed, and read partitions in turn."""

from typing import Any

import pytest

from ottla.broker.share.sessions import ShareSession, ShareSessions


def _session(member: str, group: str = "g") -> ShareSession:
    session = ShareSession.__new__(ShareSession)
    session.group_id, session.member_id, session.partitions = group, member, {}
    return session


def test_no_more_sessions_begin_than_there_may_be() -> None:
    sessions = ShareSessions()
    assert all(sessions.begin(_session(member), 2) for member in "ab")
    assert not sessions.begin(_session("c"), 2)
    assert sessions.find("g", "c") is None
    assert len(sessions) == 2
    # One that takes the place of its own older one is none more.
    again = _session("b")
    assert sessions.begin(again, 2)
    assert sessions.find("g", "b") is again
    assert len(sessions) == 2


def test_a_group_is_there_as_long_as_a_member_has_a_session() -> None:
    sessions = ShareSessions()
    for member in "ab":
        sessions.begin(_session(member), 9)
    sessions.begin(_session("a", "other"), 9)
    first = sessions.find("g", "a")
    assert sessions.end("g", "a") is first
    assert sessions.end("g", "a") is None
    assert sessions.has_group("g")
    sessions.end("g", "b")
    assert not sessions.has_group("g")
    assert sessions.has_group("other")
    sessions.begin(_session("a"), 9)
    assert sessions.has_group("g")


@pytest.mark.parametrize(("served", "order"), [((), "abc"), (("a",), "bca"), (("b", "a"), "cba")])
def test_what_was_served_comes_last_the_next_time(served: tuple[Any, ...], order: str) -> None:
    session: Any = _session("m")
    names: Any = "abc"
    session.update(names, ())
    session.move_to_end(served)
    assert list(session.partitions) == list(order)
    session.move_to_end("z")
    session.update("d", "b")
    assert set(session.partitions) == set("acd")

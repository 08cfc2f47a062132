"""The journal is bounded, also while nothing can be written."""

from types import SimpleNamespace
from typing import Any

from tests.support.quorum_node import START_MS, ManualClock

from ottla.broker.journal.journal import LOGINS_MAX, PENDING_MAX, Journal
from ottla.wire.error_code import ErrorCode


def test_events_that_cannot_be_written_do_not_pile_up() -> None:
    journal = Journal(ManualClock(START_MS))
    journal.is_on = True
    for number in range(PENDING_MAX + 5):
        journal.note(f"topic/{number}", "topic-created")
    for number in range(3):
        journal.put_back(journal.take())
        journal.note(f"topic/{number}", "topic-deleted")
    events = journal.take()
    assert len(events) == PENDING_MAX + 1
    assert (events[-1].kind, events[-1].facts) == ("lost", {"count": 8})


def test_who_cannot_log_in_is_kept_but_nobody_can_fill_the_journal_that_way() -> None:
    journal = Journal(ManualClock(START_MS))
    journal.is_on = True
    for number in range(100):
        client: Any = SimpleNamespace(client_id=f"client-{number}" + "x" * 500, peer_host="10.0.0.1")
        journal.login_refused(client, ErrorCode.SASL_AUTHENTICATION_FAILED)
    events = journal.take()
    assert len(events) == LOGINS_MAX + 1
    assert {event.facts["api"] for event in events} == {"sasl_authenticate"}
    assert sum(event.facts["count"] for event in events) == 100
    assert events[-1].subject == "client/@10.0.0.1"
    assert all(len(event.subject) < 150 for event in events)
    journal.is_on = False
    journal.login_refused(client, ErrorCode.SASL_AUTHENTICATION_FAILED)
    assert journal.take() == []

"""The journal is bounded, also while nothing can be written."""

from tests.support.quorum_node import START_MS, ManualClock

from ottla.broker.journal.journal import PENDING_MAX, Journal


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

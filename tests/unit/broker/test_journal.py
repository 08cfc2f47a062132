"""The journal is bounded, also while nothing can be written."""

from types import SimpleNamespace
from typing import Any

from tests.support.quorum_node import START_MS, ManualClock

from ottla.broker.journal.journal import LOGINS_MAX, OF_CLIENT_MAX, PENDING_MAX, Journal
from ottla.wire.apis import ApiKey
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


def _client(name: str, user: str) -> Any:
    where = {"peer_host": "10.0.0.1", "peer_port": 1, "fetched": None}
    return SimpleNamespace(client_id=name, principal=f"User:{user}", **where)


def test_one_event_has_a_part_of_the_long_texts_that_a_client_chose() -> None:
    journal = Journal(ManualClock(START_MS))
    journal.is_on = True
    client = _client("c" * 30_000, "mallory")

    journal.topics_unknown(client, [f"{number}" + "t" * 30_000 for number in range(100)])
    journal.join_refused(client, "g" * 30_000, ErrorCode.INVALID_GROUP_ID, ("a" * 30_000,) * 30)
    journal.producer_seen(client, 1, 0, "x" * 30_000)

    journal.refused(client, [(ApiKey.METADATA, ErrorCode.TOPIC_AUTHORIZATION_FAILED)])
    events = journal.take()
    assert len(events) == 4
    # What is written in a second is not more than a batch may have.
    assert sum(len(part) for event in events for part in event.encode(0)) < 60_000


def test_nobody_hides_what_happens_to_others() -> None:
    journal = Journal(ManualClock(START_MS))
    journal.is_on = True
    for number in range(PENDING_MAX + 5):
        journal.topics_unknown(_client(f"c{number}", "mallory"), ["t"])
        journal.refused(_client(f"d{number}", "mallory"), [(ApiKey.PRODUCE, ErrorCode.INVALID_RECORD)])
    journal.topics_unknown(_client("c", "ann"), ["t"])
    journal.refused(_client("d", "ann"), [(ApiKey.PRODUCE, ErrorCode.INVALID_RECORD)])
    events = journal.take()
    assert {"client/c@10.0.0.1", "client/d@10.0.0.1"} <= {event.subject for event in events}
    assert len(events) == OF_CLIENT_MAX + 3
    assert events[-1].facts == {"count": 2 * (PENDING_MAX + 5) - OF_CLIENT_MAX}
    # The next second is another one.
    journal.topics_unknown(_client("e", "mallory"), ["t"])
    assert len(journal.take()) == 1

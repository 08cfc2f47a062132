"""When the controller heard from which broker."""

from tests.support.deciding import registration

from ottla.quorum.controller.brokers.fencing import FENCE, registration_change
from ottla.quorum.controller.brokers.sessions import BrokerSessions, Incarnation
from ottla.wire.metadata_records.brokers import UnregisterBrokerRecord

ONE = registration(1)
TWO = registration(2)
BROKERS = {1: ONE, 2: TWO}


def incarnation(broker_id: int, epoch: int | None = None) -> Incarnation:
    return Incarnation(broker_id, 100 + broker_id if epoch is None else epoch)


def test_a_session_lasts_from_heartbeat_to_heartbeat() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    assert not sessions.has_session(incarnation(1), 0)
    sessions.heard(incarnation(1), 5, now_ms=0)
    assert sessions.has_session(incarnation(1), 10)
    assert not sessions.has_session(incarnation(1), 11)
    sessions.heard(incarnation(1), 5, now_ms=11)
    assert sessions.has_session(incarnation(1), 21)


def test_a_controller_that_takes_over_gives_fresh_sessions_to_brokers_that_are_up() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    fenced = registration(3, fenced=True)
    sessions.begin({**BROKERS, 3: fenced}, last_offset=7, now_ms=100)
    assert sessions.find_stale(110) is None
    assert sessions.has_session(incarnation(1), 110)
    assert not sessions.has_session(incarnation(3), 110)


def test_stale_brokers_are_found_one_after_the_other() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    sessions.begin(BROKERS, last_offset=7, now_ms=0)
    found = sessions.find_stale(11)
    assert found == incarnation(1)
    sessions.end(found)
    assert sessions.find_stale(11) == incarnation(2)
    sessions.end(incarnation(2))
    assert sessions.find_stale(11) is None


def test_the_broker_of_the_controllers_own_process_never_goes_stale() -> None:
    sessions = BrokerSessions(timeout_ms=10, own_id=1)
    sessions.begin(BROKERS, last_offset=7, now_ms=0)
    assert not sessions.has_session(incarnation(1), 0), "the one registered may be of the process before"
    sessions.heard(incarnation(1), 7, now_ms=0)
    sessions.heard(incarnation(2), 7, now_ms=1_000)
    assert sessions.find_stale(1_001) is None
    assert sessions.has_session(incarnation(1), 1_001)


def test_a_new_incarnation_begins_without_a_session() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    sessions.heard(incarnation(1), 7, now_ms=0)
    again = registration(1, broker_epoch=500, fenced=True)
    sessions.follow(BROKERS, [again], last_offset=500)
    assert not sessions.has_session(incarnation(1), 0)
    assert not sessions.has_session(incarnation(1, 500), 0)
    assert sessions.registered_at(again) == 500


def test_where_a_registration_lies_is_behind_what_it_brought_with_it() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    again = registration(1, broker_epoch=500)
    sessions.follow(BROKERS, [registration_change(TWO, fenced=FENCE), again], last_offset=501)
    assert sessions.registered_at(again) == 501
    assert sessions.registered_at(TWO) == TWO.broker_epoch, "it registered before this controller began"


def test_a_broker_that_is_unregistered_is_forgotten() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    sessions.heard(incarnation(1), 7, now_ms=0)
    sessions.follow(BROKERS, [UnregisterBrokerRecord(broker_id=1, broker_epoch=101)], last_offset=9)
    assert not sessions.has_session(incarnation(1), 0)


def test_a_broker_has_stopped_when_all_that_live_have_seen_it() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    stopping = registration(3, in_controlled_shutdown=True)
    brokers = {**BROKERS, 3: stopping, 4: registration(4, fenced=True)}
    sessions.follow(brokers, [registration_change(stopping, in_controlled_shutdown=1)], last_offset=50)
    assert not sessions.has_been_seen_to_stop(brokers, stopping)
    sessions.heard(incarnation(1), 50, now_ms=0)
    sessions.heard(incarnation(2), 49, now_ms=0)
    assert not sessions.has_been_seen_to_stop(brokers, stopping)
    sessions.heard(incarnation(2), 50, now_ms=0)
    assert sessions.has_been_seen_to_stop(brokers, stopping)


def test_what_the_node_of_the_controller_has_published_its_broker_has_applied() -> None:
    sessions = BrokerSessions(timeout_ms=10, own_id=1)
    stopping = registration(3, in_controlled_shutdown=True)
    brokers = {1: ONE, 3: stopping}
    sessions.follow(brokers, [registration_change(stopping, in_controlled_shutdown=1)], last_offset=50)
    assert not sessions.has_been_seen_to_stop(brokers, stopping)
    sessions.published(brokers, 50)
    assert sessions.has_been_seen_to_stop(brokers, stopping)


def test_after_a_change_of_controllers_a_shutdown_waits_until_all_have_caught_up() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    stopping = registration(3, in_controlled_shutdown=True)
    brokers = {1: ONE, 3: stopping}
    sessions.begin(brokers, last_offset=70, now_ms=0)
    sessions.heard(incarnation(1), 69, now_ms=0)
    assert not sessions.has_been_seen_to_stop(brokers, stopping)
    sessions.heard(incarnation(1), 70, now_ms=0)
    assert sessions.has_been_seen_to_stop(brokers, stopping)


def test_a_broker_has_left_when_it_was_away_for_long_enough() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    away = {1: ONE, 2: registration(2, fenced=True)}
    sessions.note_away(away, now_ms=100)
    assert sessions.find_left(leave_ms=50, now_ms=149) == []
    sessions.note_away(away, now_ms=140)
    assert sessions.find_left(leave_ms=50, now_ms=150) == [2], "it is away since the first look"
    assert sessions.find_left(leave_ms=0, now_ms=100) == [2]


def test_a_broker_that_comes_back_has_not_left() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    away = {1: ONE, 2: registration(2, fenced=True)}
    sessions.note_away(away, now_ms=100)
    sessions.note_away(BROKERS, now_ms=120)
    sessions.note_away(away, now_ms=140)
    assert sessions.find_left(leave_ms=50, now_ms=189) == []
    assert sessions.find_left(leave_ms=50, now_ms=190) == [2]


def test_a_controller_that_heard_nobody_for_a_while_counts_again() -> None:
    sessions = BrokerSessions(timeout_ms=10)
    away = {2: registration(2, fenced=True)}
    sessions.note_away(away, now_ms=100)
    sessions.renew(now_ms=200)
    assert sessions.find_left(leave_ms=50, now_ms=200) == []
    sessions.note_away(away, now_ms=200)
    assert sessions.find_left(leave_ms=50, now_ms=250) == [2]

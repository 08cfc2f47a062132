"""A fetch session says only what changed, and starts over when it is not sure."""

from ottla.client.consumer.fetch_session import Asked, FetchSession
from ottla.client.topology import TopicView, Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchResponse

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID, OTHER_ID = Uuid(b"a" * 16), Uuid(b"b" * 16)


def _topology(topic_id: Uuid = ID) -> Topology:
    return Topology(topics={"t": TopicView("t", topic_id, False, {}, ErrorCode.NONE)})


def _ask(session: FetchSession, *, topic_id: Uuid = ID, by_id: bool = True, **offsets: int) -> Asked:
    wanted = {
        TopicPartition("t", int(name[1:])): FetchPartition(
            partition=int(name[1:]), fetch_offset=offset, partition_max_bytes=1
        )
        for name, offset in offsets.items()
    }
    return session.next_request(wanted, _topology(topic_id), by_id)


def _answer(session_id: int, error_code: ErrorCode = ErrorCode.NONE) -> FetchResponse:
    return FetchResponse(session_id=session_id, error_code=error_code, responses=())


def _offsets(asked: Asked) -> dict[int, int]:
    return {part.partition: part.fetch_offset for topic in asked.topics for part in topic.partitions}


def _opened() -> FetchSession:
    session = FetchSession()
    _ask(session, p0=5, p1=7)
    assert session.accept(_answer(9))
    return session


def test_the_first_request_lists_everything_and_asks_for_a_session() -> None:
    asked = _ask(FetchSession(), p0=5, p1=7)
    assert (asked.session_id, asked.session_epoch) == (0, 0)
    assert _offsets(asked) == {0: 5, 1: 7}


def test_later_requests_list_only_what_changed() -> None:
    session = _opened()
    asked = _ask(session, p0=6, p1=7)
    assert (asked.session_id, asked.session_epoch) == (9, 1)
    assert _offsets(asked) == {0: 6}
    assert asked.forgotten == ()
    assert session.accept(_answer(9))
    assert _ask(session, p0=6, p1=7).session_epoch == 2


def test_what_is_not_wanted_any_more_is_forgotten() -> None:
    asked = _ask(_opened(), p1=7)
    assert _offsets(asked) == {}
    assert [(topic.topic_id, topic.partitions) for topic in asked.forgotten] == [(ID, (0,))]


def test_a_topic_made_again_is_forgotten_by_its_old_id() -> None:
    asked = _ask(_opened(), topic_id=OTHER_ID, p0=0)
    assert [topic.topic_id for topic in asked.topics] == [OTHER_ID]
    assert {topic.topic_id for topic in asked.forgotten} == {ID}


def test_an_unknown_session_starts_over_from_nothing() -> None:
    session = _opened()
    _ask(session, p0=6, p1=7)
    assert not session.accept(_answer(0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    asked = _ask(session, p0=6, p1=7)
    assert (asked.session_id, asked.session_epoch) == (0, 0)
    assert _offsets(asked) == {0: 6, 1: 7}


def test_a_wrong_epoch_closes_the_old_session_and_lists_everything() -> None:
    session = _opened()
    _ask(session, p0=6, p1=7)
    assert not session.accept(_answer(9, ErrorCode.INVALID_FETCH_SESSION_EPOCH))
    asked = _ask(session, p0=6, p1=7)
    assert (asked.session_id, asked.session_epoch) == (9, 0)
    assert _offsets(asked) == {0: 6, 1: 7}


def test_a_lost_request_starts_over() -> None:
    session = _opened()
    _ask(session, p0=6, p1=7)
    session.lost()
    asked = _ask(session, p0=6, p1=7)
    assert (asked.session_id, asked.session_epoch) == (9, 0)
    assert _offsets(asked) == {0: 6, 1: 7}


def test_a_broker_without_room_is_told_everything_every_time() -> None:
    session = FetchSession()
    _ask(session, p0=5)
    assert session.accept(_answer(0))
    asked = _ask(session, p0=6)
    assert (asked.session_id, asked.session_epoch) == (0, 0)


def test_a_session_that_the_broker_closes_is_opened_anew() -> None:
    session = _opened()
    _ask(session, p0=6, p1=7)
    assert session.accept(_answer(0)), "what it brought counts"
    asked = _ask(session, p0=6, p1=7)
    assert (asked.session_id, asked.session_epoch) == (0, 0)


def test_names_and_ids_are_not_mixed_in_one_session() -> None:
    session = _opened()
    asked = _ask(session, by_id=False, p0=6)
    assert asked.session_epoch == 0


def test_epochs_go_from_the_largest_to_one() -> None:
    session = _opened()
    session._epoch = 2**31 - 1
    _ask(session, p0=6)
    assert session.accept(_answer(9))
    assert _ask(session, p0=7).session_epoch == 1

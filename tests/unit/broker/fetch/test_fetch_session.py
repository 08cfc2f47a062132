"""Fetch sessions: what is asked once is followed, and only news are told."""

from itertools import count

import pytest

from ottla.broker.fetch.fetch_session import (
    EVICTION_MS,
    FetchPlan,
    FetchSession,
    FetchSessions,
    PartitionKey,
    SessionPartition,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

VERSION = 12


def request(
    session_id: int = 0,
    epoch: int = 0,
    partitions: dict[int, int] | None = None,
    forgotten: tuple[int, ...] = (),
) -> FetchRequest:
    """Ask for partitions of the topic `t`, by number and offset."""
    asked = tuple(
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1000)
        for number, offset in (partitions or {}).items()
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=(FetchTopic(topic="t", partitions=asked),) if asked else (),
        forgotten_topics_data=(ForgottenTopic(topic="t", partitions=forgotten),) if forgotten else (),
    )


def sessions(sessions_max: int = 10) -> FetchSessions:
    ids = count(1)
    return FetchSessions(sessions_max, lambda: next(ids))


def begin(
    cache: FetchSessions, partitions: dict[int, int], now_ms: int = 0, is_follower: bool = False
) -> FetchSession | None:
    plan = cache.plan(request(partitions=partitions), VERSION, now_ms)
    assert plan.begins_session
    return cache.begin(plan.partitions, VERSION, is_follower, now_ms)


def offsets(plan: FetchPlan) -> dict[int, int]:
    return {key[1]: partition.fetch_offset for key, partition in plan.partitions}


def answer(**changes: object) -> PartitionData:
    values: dict[str, object] = {
        "partition_index": 0,
        "high_watermark": 5,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "records": None,
    }
    return PartitionData(**{**values, **changes})  # type: ignore[arg-type]


def test_a_session_remembers_what_was_asked() -> None:
    cache = sessions()
    session = begin(cache, {0: 10, 1: 20})
    assert session is not None

    plan = cache.plan(request(session.id, 1, {1: 25, 2: 30}), VERSION, 0)
    assert offsets(plan) == {0: 10, 1: 25, 2: 30}
    plan = cache.plan(request(session.id, 2, forgotten=(0, 2)), VERSION, 0)
    assert offsets(plan) == {1: 25}


def test_an_epoch_may_neither_repeat_nor_skip() -> None:
    cache = sessions()
    session = begin(cache, {0: 10})
    assert session is not None
    assert cache.plan(request(session.id, 2), VERSION, 0).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.plan(request(session.id, 1), VERSION, 0).error is ErrorCode.NONE
    assert cache.plan(request(session.id, 1), VERSION, 0).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_epoch_after_the_largest_is_1() -> None:
    cache = sessions()
    session = begin(cache, {0: 10})
    assert session is not None
    session.epoch = 0x7FFFFFFF
    assert cache.plan(request(session.id, 0x7FFFFFFF), VERSION, 0).error is ErrorCode.NONE
    assert cache.plan(request(session.id, 1), VERSION, 0).error is ErrorCode.NONE


def test_an_unknown_session_is_refused() -> None:
    assert sessions().plan(request(99, 1), VERSION, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    cache = sessions()
    session = begin(cache, {0: 10})
    assert session is not None
    assert cache.plan(request(session.id, 1), 13, 0).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


@pytest.mark.parametrize(("epoch", "begins"), [(-1, False), (0, True)])
def test_a_full_request_ends_the_session_and_reads_what_it_lists(epoch: int, begins: bool) -> None:
    cache = sessions()
    session = begin(cache, {0: 10})
    assert session is not None
    plan = cache.plan(request(session.id, epoch, {7: 70}), VERSION, 0)
    assert (offsets(plan), plan.begins_session, plan.is_incremental) == ({7: 70}, begins, False)
    assert cache.plan(request(session.id, 1), VERSION, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_forgot_everything_ends() -> None:
    cache = sessions()
    session = begin(cache, {0: 10})
    assert session is not None
    plan = cache.plan(request(session.id, 1, forgotten=(0,)), VERSION, 0)
    assert (plan.error, offsets(plan), plan.session) == (ErrorCode.NONE, {}, None)
    assert len(cache) == 0


def test_partitions_that_had_their_turn_go_to_the_end() -> None:
    cache = sessions()
    session = begin(cache, {0: 0, 1: 0, 2: 0})
    assert session is not None
    session.move_to_end([("t", 0)])
    plan = cache.plan(request(session.id, 1), VERSION, 0)
    assert list(offsets(plan)) == [1, 2, 0]


@pytest.mark.parametrize(
    ("news", "is_news"),
    [
        (answer(), False),
        (answer(high_watermark=6), True),
        (answer(log_start_offset=1), True),
        (answer(records=memoryview(b"x")), True),
        (answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER), True),
        (answer(preferred_read_replica=3), True),
    ],
)
def test_only_news_are_told(news: PartitionData, is_news: bool) -> None:
    partition = SessionPartition(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1))
    assert partition.note(answer())
    assert partition.note(news) is is_news


def test_after_an_error_everything_is_news() -> None:
    partition = SessionPartition(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1))
    partition.note(answer())
    partition.note(answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert partition.note(answer())


def test_after_a_divergence_the_high_watermark_is_told_again() -> None:
    # A follower takes nothing from a diverging answer but where to cut its log.
    partition = SessionPartition(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1))
    assert partition.note(answer(diverging_epoch=EpochEndOffset(epoch=1, end_offset=5)))
    assert partition.note(answer())
    assert not partition.note(answer())


def test_a_reader_that_begins_again_in_another_leader_epoch_is_told_everything() -> None:
    session = begin(sessions(), {0: 0})
    assert session is not None
    session.partitions["t", 0].note(answer())
    renewed = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=3)
    session.update(
        FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(renewed,)),))
    )
    assert session.partitions["t", 0].note(answer())


def test_a_full_cache_keeps_its_young_sessions() -> None:
    cache = sessions(2)
    assert begin(cache, {0: 0}) is not None
    assert begin(cache, {0: 0}) is not None
    assert begin(cache, {0: 0, 1: 0, 2: 0}) is None


def test_an_unused_session_makes_room() -> None:
    cache = sessions(1)
    assert begin(cache, dict.fromkeys(range(9), 0)) is not None
    assert begin(cache, {0: 0}, now_ms=EVICTION_MS) is None
    assert begin(cache, {0: 0}, now_ms=EVICTION_MS + 1) is not None


def test_an_old_session_makes_room_for_a_larger_one_only() -> None:
    cache = sessions(1)
    session = begin(cache, {0: 0, 1: 0})
    assert session is not None
    assert cache.plan(request(session.id, 1), VERSION, EVICTION_MS).error is ErrorCode.NONE
    assert begin(cache, {0: 0, 1: 0}, now_ms=EVICTION_MS + 1) is None
    assert begin(cache, {0: 0, 1: 0, 2: 0}, now_ms=EVICTION_MS + 1) is not None


def test_a_follower_takes_the_place_of_a_young_consumer() -> None:
    cache = sessions(1)
    assert begin(cache, {0: 0, 1: 0}) is not None
    assert begin(cache, {0: 0}, is_follower=True) is not None
    assert begin(cache, {0: 0, 1: 0}, is_follower=True) is None


def test_keys_name_topics_as_the_request_does() -> None:
    cache = sessions()
    keys: list[PartitionKey] = [
        key for key, _ in cache.plan(request(partitions={3: 0}), VERSION, 0).partitions
    ]
    assert keys == [("t", 3)]

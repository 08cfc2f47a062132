"""A follower's log becomes a prefix of its leader's, whatever was in it, and says only what is on disk."""

import pytest
from tests.support.replicas import Replica, ReplicaPair
from tests.unit.storage.damages.test_healing import find_damage
from tests.unit.storage.loading.test_load import flip
from tests.unit.storage.logs import NOW_MS, append, batch, disk_of, offsets_of
from tests.unit.storage.manual_syncs import ManualSyncs

from ottla.model.ids import LeaderEpoch, Offset
from ottla.storage.config import LogConfig
from ottla.storage.damages.checking import plan_check
from ottla.storage.damages.gaps import note_checked
from ottla.storage.damages.splicing import plan_splice, put_back, write_over
from ottla.storage.errors import AppendError
from ottla.storage.log import Log
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.world.disk import Reason

NOT_SYNCED = LogConfig(verifies_transactions=False, acks_all_sync=False)


def epochs_of(replica: Replica) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in replica.log.leader_epochs.entries]


def write(replica: Replica, *written: tuple[int, int]) -> None:
    """Append batches of an epoch and a size, as if this replica had led."""
    for epoch, count in written:
        log = replica.log
        log.assign_leader_epoch(LeaderEpoch(epoch), log.log_end_offset)
        log.append_as_leader(batch(count), leader_epoch=LeaderEpoch(epoch), now_ms=NOW_MS)


def test_a_follower_copies_the_same_bytes_and_the_high_watermark() -> None:
    pair = ReplicaPair()
    for count in (1, 5, 2):
        pair.leader.append(batch(count))
    pair.run()
    assert pair.leader.ends == pair.follower.ends == (8, 8)
    assert pair.follower.content() == pair.leader.content()
    assert epochs_of(pair.follower) == epochs_of(pair.leader) == [(0, 0)]
    assert pair.follower.node.copied_bytes == len(pair.leader.content())


def test_a_session_names_only_what_has_changed() -> None:
    pair = ReplicaPair()
    pair.run()
    first, *others = pair.fetches
    assert (first.session_id, first.session_epoch, len(first.topics)) == (0, 0, 1)
    assert [one.topics for one in others] == [()] * len(others)
    assert [one.session_epoch for one in others] == list(range(1, len(others) + 1))
    seen = len(pair.fetches)
    pair.leader.append(batch())
    pair.run()
    named = [one.topics[0].partitions[0].fetch_offset for one in pair.fetches[seen:] if one.topics]
    assert named == [1]


def test_a_follower_that_knows_everything_is_not_answered_and_stays_in_sync() -> None:
    pair = ReplicaPair()
    pair.leader.append(batch())
    pair.run()
    assert pair.serving.answered[-1] == 0
    leading = pair.leader.partition.leading
    assert leading is not None
    pair.clock.advance(7)
    pair.run(3)
    assert pair.serving.answered[-1] == 0
    assert leading.followers[2].caught_up_ms == pair.leader.node.monotonic_ms()
    seen = len(pair.serving.answered)
    pair.leader.append(batch())
    pair.run()
    assert sum(pair.serving.answered[seen:]) == 2, "the records, and then the high watermark"
    assert pair.follower.ends == (2, 2)


def test_a_request_says_who_asks_and_what_it_has() -> None:
    pair = ReplicaPair()
    pair.leader.append(batch())
    pair.run()
    request = next(one for one in reversed(pair.fetches) if one.topics)
    asked = request.topics[0].partitions[0]
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 102)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10_485_760)
    assert (asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch) == (0, 1, 0)
    assert (asked.log_start_offset, asked.partition_max_bytes) == (0, 1_048_576)


def test_the_next_fetch_waits_until_what_was_copied_is_on_disk() -> None:
    pair = ReplicaPair()
    pair.follower.log.volume.syncs = syncs = ManualSyncs()
    pair.leader.append(batch(3))
    pair.run()
    assert pair.follower.log.log_end_offset == 3
    assert pair.leader.log.high_watermark == 0, "nobody has said that it is on the follower's disk"
    syncs.sync()
    pair.run()
    assert pair.leader.log.high_watermark == 3


def test_where_a_topic_does_not_ask_for_syncs_the_follower_fetches_on() -> None:
    pair = ReplicaPair(NOT_SYNCED)
    pair.follower.log.volume.syncs = syncs = ManualSyncs()
    pair.leader.append(batch(3))
    pair.run()
    assert pair.leader.log.high_watermark == 3
    assert syncs.waiting == []


def test_what_was_not_on_disk_at_a_start_is_synced_first() -> None:
    pair = ReplicaPair()
    pair.leader.append(batch(3))
    pair.run()
    pair.follower.log.recovery_point = Offset(0)
    pair.follower.log.volume.syncs = syncs = ManualSyncs()
    asked = len(pair.fetches)
    pair.elect(1)
    pair.run()
    assert len(pair.fetches) <= asked + 1
    syncs.sync()
    pair.run()
    assert len(pair.fetches) > asked + 1


def test_a_disk_that_fails_ends_the_copying() -> None:
    pair = ReplicaPair()
    pair.follower.log.volume.syncs = syncs = ManualSyncs()
    pair.leader.append(batch())
    pair.run()
    syncs.fail()
    pair.run()
    assert not pair.fetcher.partitions
    assert list(pair.fetcher.failed)


@pytest.mark.parametrize(
    ("leader", "follower", "expected"),
    [
        # KIP-101: the follower has what only the old leader had.
        ([(0, 1), (0, 1)], [(0, 1), (0, 1), (0, 1)], [(0, 0), (1, 1)]),
        # KIP-279: fast failovers, and both have epochs that the other does not know.
        ([(0, 2), (3, 1)], [(0, 2), (1, 1), (2, 1)], [(0, 1), (2, 2)]),
        ([(0, 1), (2, 2), (4, 1)], [(0, 1), (1, 3), (3, 2)], [(0, 0), (1, 2), (3, 3)]),
        # One is a prefix of the other.
        ([(0, 1), (1, 1)], [(0, 1)], [(0, 0), (1, 1)]),
        # Nothing in common at all.
        ([(2, 2)], [(0, 1), (1, 1)], [(0, 1)]),
    ],
)
def test_logs_that_diverge_become_the_same(
    leader: list[tuple[int, int]], follower: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    pair = ReplicaPair()
    write(pair.leader, *leader)
    write(pair.follower, *follower)
    pair.elect(9)
    pair.run(100)
    assert offsets_of(pair.follower.log) == expected
    assert pair.follower.content() == pair.leader.content()
    assert pair.leader.ends == pair.follower.ends


def test_two_empty_epochs_at_the_end_agree() -> None:
    """KAFKA-10706: an epoch without records is no part of the leader's history."""
    pair = ReplicaPair()
    write(pair.leader, (0, 2))
    write(pair.follower, (0, 2))
    for epoch in (1, 2):
        pair.follower.log.assign_leader_epoch(LeaderEpoch(epoch), Offset(2))
    pair.elect(3)
    pair.run()
    pair.leader.append(batch())
    pair.run()
    assert epochs_of(pair.follower) == [(0, 0), (3, 2)]
    assert pair.follower.ends == (3, 3)


def test_a_diverging_answer_moves_nothing_else() -> None:
    """KAFKA-14704: the high watermark must not rise over records that are about to be cut off."""
    pair = ReplicaPair()
    write(pair.leader, (0, 1), (2, 4))
    pair.leader.log.update_high_watermark(Offset(5))
    write(pair.follower, (0, 1), (1, 3))
    pair.elect(3)
    high = [pair.follower.log.high_watermark]
    for _ in range(60):
        pair.scheduler.run_once()
        high.append(pair.follower.log.high_watermark)
    assert high == sorted(high)
    assert pair.follower.content() == pair.leader.content()


def flip_in_second_batch(log: Log) -> None:
    """Flip a bit of the second of four batches of the same size."""
    segment = log.active_segment
    flip(disk_of(log), segment.file.path, segment.size // 4 + 70)


@pytest.mark.parametrize("is_out_of_range", [False, True])
def test_a_cut_waits_if_it_would_take_damage_that_lies_below(is_out_of_range: bool) -> None:
    """Whether the leader says where the two depart, or only that the follower asks for what is not there."""
    pair = ReplicaPair()
    if is_out_of_range:
        pair.serving.instead.append(answer(ErrorCode.OFFSET_OUT_OF_RANGE))
    write(pair.leader, (0, 1), (0, 1), (0, 1))
    write(pair.follower, (0, 1), (0, 1), (0, 1), (1, 1))
    log = pair.follower.log
    log.flush()
    flip_in_second_batch(log)
    log.unhealed = tuple(find_damage(log))
    assert [one.first_offset for one in log.unhealed] == [1]
    pair.elect(6)
    pair.run(100)
    assert log.log_end_offset == 4

    flip_in_second_batch(log)
    log.unhealed = ()
    pair.clock.advance(1000)
    pair.run(100)
    assert offsets_of(log) == [(0, 0), (1, 1), (2, 2)]


def test_a_follower_that_is_ahead_of_the_leaders_end_is_cut_there() -> None:
    pair = ReplicaPair()
    write(pair.leader, (5, 2))
    write(pair.follower, (0, 1), (1, 4))
    pair.leader.log.log_start_offset = Offset(1)
    pair.elect(6)
    pair.run(100)
    assert pair.follower.log.log_end_offset == 2


def test_a_follower_that_is_behind_the_leaders_start_begins_again_there() -> None:
    pair = ReplicaPair()
    write(pair.leader, (0, 2), (0, 2), (0, 2))
    pair.leader.log.update_high_watermark(Offset(6))
    pair.leader.log.increment_log_start_offset(Offset(4))
    write(pair.follower, (0, 2))
    pair.elect(1)
    pair.run(100)
    assert offsets_of(pair.follower.log) == [(4, 5)]
    assert pair.follower.log.log_start_offset == 4
    assert pair.follower.ends == (6, 6)


def test_a_log_that_starts_within_a_batch_is_copied_with_the_whole_batch() -> None:
    """KAFKA-6975."""
    pair = ReplicaPair()
    write(pair.leader, (0, 10))
    pair.leader.log.update_high_watermark(Offset(10))
    pair.leader.log.increment_log_start_offset(Offset(7))
    pair.elect(1)
    pair.run(100)
    assert offsets_of(pair.follower.log) == [(0, 9)]
    assert pair.follower.log.log_start_offset == 7


def test_the_log_start_follows_the_leaders() -> None:
    pair = ReplicaPair()
    for _ in range(3):
        pair.leader.append(batch())
    pair.run()
    pair.leader.log.increment_log_start_offset(Offset(2))
    pair.run()
    assert pair.follower.log.log_start_offset == 2
    follower = pair.leader.partition.leading
    assert follower is not None
    assert follower.followers[2].log_start_offset == 2
    assert pair.leader.node.low_moved


def answer(error_code: ErrorCode) -> FetchResponse:
    data = PartitionData(
        partition_index=0, error_code=error_code, high_watermark=-1, aborted_transactions=None, records=None
    )
    topic = FetchableTopicResponse(topic_id=ReplicaPair().leader.partition.topic_id, partitions=(data,))
    return FetchResponse(session_id=7, responses=(topic,))


def test_a_partition_rests_longer_each_time_its_leader_refuses_it() -> None:
    pair = ReplicaPair()
    pair.run()
    rests = []
    for _ in range(8):
        pair.serving.instead.append(answer(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        while pair.serving.instead:
            pair.clock.advance(10)
            pair.run(5)
        followed = next(iter(pair.fetcher.partitions.values()))
        rests.append(followed.backoff_ms)
        pair.clock.advance(1000)
    assert rests == [20, 40, 80, 160, 320, 640, 1000, 1000]
    pair.leader.append(batch())
    pair.run()
    assert pair.follower.ends == (1, 1)


def test_an_older_epoch_waits_for_the_metadata() -> None:
    pair = ReplicaPair()
    pair.serving.instead.append(answer(ErrorCode.FENCED_LEADER_EPOCH))
    pair.run()
    assert not pair.fetcher.partitions
    pair.elect(1)
    pair.leader.append(batch())
    pair.run()
    assert pair.follower.ends == (1, 1)


def test_a_lost_session_begins_again_with_everything() -> None:
    pair = ReplicaPair()
    pair.run()
    for error_code in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
        pair.serving.instead.append(FetchResponse(error_code=error_code, responses=()))
        seen = len(pair.fetches)
        pair.run()
        again = next(one for one in pair.fetches[seen + 1 :] if one.session_epoch == 0)
        assert len(again.topics) == 1


def test_a_session_that_broke_is_ended_by_the_next_request() -> None:
    pair = ReplicaPair()
    pair.run()
    session_id = pair.fetches[-1].session_id
    for error_code in (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR):
        pair.serving.instead.append(FetchResponse(error_code=error_code, responses=()))
        seen = len(pair.fetches)
        pair.run()
        pair.clock.advance(1000)
        pair.run()
        again = next(one for one in pair.fetches[seen:] if one.session_epoch == 0)
        assert again.session_id == session_id
        session_id = pair.fetches[-1].session_id


def test_a_follower_that_asks_within_a_batch_has_nothing_of_it() -> None:
    """Apache Kafka's log may end within a batch after a truncation, without the batch."""
    pair = ReplicaPair()
    for count in (5, 5):
        pair.leader.append(batch(count))
    wanted = FetchPartition(
        partition=0, fetch_offset=7, last_fetched_epoch=0, log_start_offset=0, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=102),
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=0,
        topics=(FetchTopic(topic_id=pair.leader.partition.topic_id, partitions=(wanted,)),),
    )
    pair.serving.ask(request, lambda _: None)
    pair.leader.node.scheduler.run_once()
    assert pair.leader.log.high_watermark == 5


def test_a_leader_that_is_down_is_asked_again_later() -> None:
    pair = ReplicaPair()
    pair.run()
    pair.serving.is_down = True
    pair.run()
    asked = len(pair.serving.requests)
    pair.run()
    assert len(pair.serving.requests) == asked, "it rests"
    pair.serving.is_down = False
    pair.leader.append(batch())
    pair.clock.advance(1000)
    pair.run()
    assert pair.follower.ends == (1, 1)


def test_damaged_records_are_never_passed_over() -> None:
    pair = ReplicaPair()
    pair.leader.append(batch(value=b"a" * 100))
    damaged = bytearray(pair.leader.content())
    damaged[-5] ^= 1
    data = PartitionData(
        partition_index=0,
        high_watermark=1,
        log_start_offset=0,
        aborted_transactions=None,
        records=memoryview(damaged),
    )
    topic = FetchableTopicResponse(topic_id=pair.leader.partition.topic_id, partitions=(data,))
    pair.serving.instead.append(FetchResponse(session_id=0, responses=(topic,)))
    pair.run()
    assert pair.follower.ends == (0, 0)
    pair.clock.advance(1000)
    pair.run()
    assert pair.follower.content() == pair.leader.content()


def rot_base_offset(log: Log, position: int) -> None:
    """Let the batch at `position` of the first segment seem to begin at a far higher offset."""
    flip(disk_of(log), log.segments[0].file.path, position + 3)


def heal_base_offset(log: Log) -> None:
    """Do what healing does when a check has found a batch that is not where it should be."""
    (found,) = find_damage(log, 0)
    splice = plan_splice(log, found, put_back(log, found))
    assert splice is not None
    write_over(log.volume.disk, splice)
    log.unhealed = ()


@pytest.mark.parametrize("count_before", [0, 2])
def test_a_base_offset_that_changed_on_the_leaders_disk_is_not_copied(count_before: int) -> None:
    pair = ReplicaPair()
    for _ in range(count_before):
        pair.leader.append(batch())
    position = pair.leader.log.size_bytes
    pair.leader.append(batch(3))
    pair.leader.append(batch(2))
    rot_base_offset(pair.leader.log, position)
    pair.run()
    assert pair.follower.log.log_end_offset == count_before
    assert pair.leader.node.suspected[0] == count_before, "the leader has its log checked"
    heal_base_offset(pair.leader.log)
    pair.clock.advance(1000)
    pair.run()
    assert pair.follower.ends == (count_before + 5, count_before + 5)
    assert pair.follower.content() == pair.leader.content()


def test_a_gap_that_is_right_is_copied_when_the_leader_has_checked_it() -> None:
    pair = ReplicaPair()
    for base_offset in (0, 20, 30, 40):
        pair.leader.log.append_as_follower(batch(base_offset=base_offset), LeaderEpoch(0))
    pair.run()
    assert pair.follower.log.log_end_offset == 1
    assert set(pair.leader.node.suspected) == {1}
    assert find_damage(pair.leader.log, 1) == []
    note_checked(pair.leader.log, plan_check(pair.leader.log, Offset(1)).segments)
    pair.clock.advance(1000)
    pair.run()
    assert pair.follower.ends == (41, 41)
    assert pair.follower.content() == pair.leader.content()


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(is_mirror=True, acks_all_sync=False),
        LogConfig(is_compacted=True, acks_all_sync=False),
    ],
)
def test_gaps_that_the_settings_explain_take_no_further_fetch(config: LogConfig) -> None:
    pair = ReplicaPair(config, in_sync=(1,))
    for base_offset in (0, 20, 30):
        pair.leader.log.append_as_follower(batch(base_offset=base_offset), LeaderEpoch(0))
    if config.is_compacted:
        pair.leader.log.update_high_watermark(Offset(30))
    pair.run(3)
    assert pair.follower.log.log_end_offset == 31
    assert pair.leader.node.suspected == []


def test_a_throttled_partition_is_left_out_for_a_while() -> None:
    pair = ReplicaPair()
    pair.run()
    pair.follower.node.throttled.add(pair.follower.partition)
    pair.run()
    pair.leader.append(batch())
    pair.run()
    assert pair.follower.log.log_end_offset == 0
    pair.follower.node.throttled.clear()
    pair.clock.advance(1000)
    pair.run()
    assert pair.follower.log.log_end_offset == 1


def test_a_log_without_epochs_is_cut_to_what_is_committed() -> None:
    pair = ReplicaPair()
    append(pair.follower.log)
    append(pair.follower.log)
    pair.follower.log.high_watermark = Offset(1)
    pair.follower.log.leader_epochs.truncate_from_end(Offset(0))
    pair.elect(1)
    assert pair.follower.log.log_end_offset == 1


def test_a_follower_does_not_ask_in_circles_if_its_leader_knows_nothing_of_its_epoch() -> None:
    pair = ReplicaPair()
    write(pair.leader, (0, 3))
    pair.elect(1)
    pair.run()
    # As if the leader had lost all that it knew of epochs. Whatever it answers, nothing changes by it.
    pair.leader.log.leader_epochs.truncate_from_end(Offset(0))
    asked = len(pair.serving.requests)
    pair.run(rounds=200)
    assert len(pair.serving.requests) - asked < 10, "it rests"


def test_a_follower_that_cannot_append_stops_and_counts_as_failed_until_it_is_told_anew() -> None:
    pair = ReplicaPair()
    pair.run()
    disk_of(pair.follower.log).fail("write", Reason.IO_ERROR)
    pair.leader.append(batch())
    pair.run()
    assert not pair.fetcher.partitions, "it must not ask for the same records for ever"
    assert list(pair.fetcher.failed) == [(pair.leader.partition.topic_id, 0)]
    assert pair.follower.ends == (0, 0)


def test_what_fails_once_is_copied_later(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = ReplicaPair()
    write(pair.leader, (0, 3))

    def fail(*_args: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as broken:
        broken.setattr(type(pair.follower.log), "append_as_follower", fail)
        pair.run()
    assert pair.follower.log.log_end_offset == 0
    pair.clock.advance(1_000)
    pair.run()
    assert pair.follower.log.log_end_offset == 3


@pytest.mark.parametrize(
    ("code", "is_given_up"), [(ErrorCode.CORRUPT_MESSAGE, False), (ErrorCode.INVALID_TIMESTAMP, True)]
)
def test_records_that_the_log_refuses_for_good_end_the_copying_and_damaged_ones_do_not(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, is_given_up: bool
) -> None:
    pair = ReplicaPair()
    write(pair.leader, (0, 3))

    def refuse(*_args: object, **_settings: object) -> None:
        raise AppendError(code, "the log does not take them")

    monkeypatch.setattr(type(pair.follower.log), "append_as_follower", refuse)
    pair.run()
    assert bool(pair.fetcher.failed) is is_given_up
    assert (not pair.fetcher.partitions) is is_given_up
    monkeypatch.undo()
    pair.clock.advance(60_000)
    pair.run()
    assert pair.follower.log.log_end_offset == (0 if is_given_up else 3)

"""Which epoch started where, and what a follower learns from it."""

from ottla.model.ids import LeaderEpoch, Offset
from ottla.storage.leader_epochs import UNKNOWN, LeaderEpochs
from ottla.storage.log_dirs.checkpoints import EpochEntry


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in entries])


def entries_of(known: LeaderEpochs) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in known.entries]


def end_of(known: LeaderEpochs, epoch: int, log_end: int = 100) -> tuple[int, int]:
    found = known.end_offset_for(LeaderEpoch(epoch), Offset(log_end))
    return found.epoch, found.start_offset


def test_epoch_zero_is_remembered() -> None:
    assert entries_of(epochs((0, 0))) == [(0, 0)]


def test_the_same_epoch_is_assigned_once() -> None:
    known = epochs((1, 10))
    assert not known.assign(LeaderEpoch(1), Offset(20))
    assert entries_of(known) == [(1, 10)]


def test_an_earlier_start_of_the_latest_epoch_replaces_it() -> None:
    known = epochs((1, 10))
    assert known.assign(LeaderEpoch(1), Offset(5))
    assert entries_of(known) == [(1, 5)]


def test_entries_that_contradict_a_new_one_are_dropped() -> None:
    known = epochs((1, 0), (3, 30), (5, 50))
    known.assign(LeaderEpoch(4), Offset(30))
    assert entries_of(known) == [(1, 0), (4, 30)]


def test_an_earlier_start_of_an_older_epoch_stays_when_a_later_epoch_is_dropped() -> None:
    epochs = LeaderEpochs([EpochEntry(LeaderEpoch(1), Offset(0)), EpochEntry(LeaderEpoch(2), Offset(82))])
    assert epochs.assign(LeaderEpoch(1), Offset(82))
    assert epochs.entries == [EpochEntry(LeaderEpoch(1), Offset(0))]
    assert epochs.latest == 1


def test_no_epoch_is_not_assigned() -> None:
    known = epochs()
    assert not known.assign(LeaderEpoch(-1), Offset(0))
    assert known.latest == -1


def test_the_latest_epoch_ends_at_the_log_end() -> None:
    assert end_of(epochs((1, 0), (3, 30)), 3) == (3, 100)


def test_an_epoch_in_between_ends_where_the_next_starts() -> None:
    known = epochs((1, 0), (3, 30), (6, 60))
    assert end_of(known, 1) == (1, 30)
    assert end_of(known, 5) == (3, 60)


def test_an_epoch_before_all_others_ends_where_they_begin() -> None:
    assert end_of(epochs((3, 30), (6, 60)), 1) == (1, 30)


def test_an_unknown_or_later_epoch_has_no_end() -> None:
    known = epochs((3, 30))
    assert known.end_offset_for(LeaderEpoch(-1), Offset(100)) == UNKNOWN
    assert known.end_offset_for(LeaderEpoch(4), Offset(100)) == UNKNOWN
    assert epochs().end_offset_for(LeaderEpoch(0), Offset(100)) == UNKNOWN


def test_an_offset_has_the_epoch_under_which_it_was_appended() -> None:
    known = epochs((1, 10), (3, 30))
    assert [known.epoch_for(Offset(at)) for at in (9, 10, 29, 30, 99)] == [-1, 1, 1, 3, 3]


def test_truncation_of_the_end_forgets_epochs_that_start_there() -> None:
    known = epochs((1, 0), (3, 30), (6, 60))
    assert known.truncate_from_end(Offset(30))
    assert entries_of(known) == [(1, 0)]
    assert known.latest == 1
    assert not known.truncate_from_end(Offset(30))


def test_truncation_of_the_start_keeps_the_epoch_of_the_first_record() -> None:
    known = epochs((1, 0), (3, 30), (6, 60))
    assert known.truncate_from_start(Offset(40))
    assert entries_of(known) == [(3, 40), (6, 60)]
    assert not known.truncate_from_start(Offset(40))


def test_truncation_of_the_start_before_all_entries_changes_nothing() -> None:
    known = epochs((1, 10))
    assert not known.truncate_from_start(Offset(5))
    assert entries_of(known) == [(1, 10)]


def test_one_batch_with_another_epoch_than_the_file_has_is_not_believed_but_two_are() -> None:
    known = epochs((0, 0))
    known.believe_up_to(Offset(14))
    known.assign_recovered(LeaderEpoch(65536), Offset(7), Offset(7))
    assert entries_of(known) == [(0, 0)]
    known.assign_recovered(LeaderEpoch(2), Offset(9), Offset(9))
    known.assign_recovered(LeaderEpoch(2), Offset(10), Offset(10))
    assert entries_of(known) == [(0, 0), (2, 9)]


def test_a_batch_above_what_was_synced_and_one_of_a_log_without_a_file_are_believed() -> None:
    for known, base_offset in ((epochs((0, 0)), 14), (epochs(), 3)):
        before = entries_of(known)
        known.believe_up_to(Offset(14))
        known.assign_recovered(LeaderEpoch(1), Offset(base_offset), Offset(base_offset))
        assert entries_of(known) == [*before, (1, base_offset)]

"""Who shares a sync with whom, and what those who wait are told."""

from tests.unit.storage.logs import append, batch, disk_of, new_log

from ottla.model.ids import Offset
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.syncing.group_commit import GroupCommit, Outcome
from ottla.world.disk import DiskError, Reason


def request(
    commit: GroupCommit[str], log: Log, offset: Offset | None = None, waiter: str | None = None
) -> Outcome[str]:
    return start(commit, commit.request(log, offset, waiter))


def finished(commit: GroupCommit[str], *logs: Log) -> Outcome[str]:
    return start(commit, commit.finished(*logs))


def failed(commit: GroupCommit[str], log: Log, error: DiskError) -> Outcome[str]:
    return start(commit, commit.failed(log, error))


def start(commit: GroupCommit[str], outcome: Outcome[str]) -> Outcome[str]:
    """Start at once what is wanted after `outcome`, and tell of both."""
    more = commit.start()
    return Outcome(more.starts, outcome.done + more.done, outcome.failed + more.failed)


def wait(commit: GroupCommit[str], log: Log, waiter: str) -> Outcome[str]:
    """Append a batch and have it synced."""
    append(log)
    return request(commit, log, log.log_end_offset, waiter)


def test_appends_before_a_start_share_a_sync() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    for waiter in "ab":
        append(log)
        assert not commit.request(log, log.log_end_offset, waiter).starts
    assert commit.may_start
    ((_, ticket),) = commit.start().starts
    assert ticket.offset == 2
    assert commit.finished(log).done == ["a", "b"]


def test_the_first_append_starts_a_sync() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    outcome = wait(commit, log, "a")
    ((started, ticket),) = outcome.starts
    assert (started, ticket.offset) == (log, 1)
    assert not outcome.done
    assert not commit.is_idle


def test_appends_during_a_sync_share_the_next_one() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    wait(commit, log, "a")
    for waiter in "bcd":
        assert not wait(commit, log, waiter).starts
    outcome = finished(commit, log)
    assert outcome.done == ["a"]
    ((_, ticket),) = outcome.starts
    assert ticket.offset == 4
    assert finished(commit, log).done == ["b", "c", "d"]
    assert commit.is_idle


def test_an_append_that_is_safe_already_does_not_wait() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    wait(commit, log, "a")
    finished(commit, log)
    outcome = request(commit, log, Offset(1), "duplicate")
    assert outcome.done == ["duplicate"]
    assert not outcome.starts


def test_nobody_has_to_wait_for_a_flush() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    append(log)
    assert request(commit, log).starts
    assert not finished(commit, log).done
    assert log.recovery_point == 1
    assert not request(commit, log).starts
    assert commit.is_idle


def test_only_so_many_run_at_once_and_the_others_get_their_turn() -> None:
    commit: GroupCommit[str] = GroupCommit(2)
    logs = [new_log() for _ in range(4)]
    starts = [len(wait(commit, log, str(number)).starts) for number, log in enumerate(logs)]
    assert starts == [1, 1, 0, 0]
    first = finished(commit, logs[0])
    assert (first.done, [log for log, _ in first.starts]) == (["0"], [logs[2]])
    second = finished(commit, logs[1])
    assert (second.done, [log for log, _ in second.starts]) == (["1"], [logs[3]])


def test_a_busy_log_does_not_keep_others_from_their_turn() -> None:
    commit: GroupCommit[str] = GroupCommit(1)
    busy, other = new_log(), new_log()
    wait(commit, busy, "a")
    wait(commit, busy, "b")
    wait(commit, other, "c")
    wait(commit, busy, "d")
    order = []
    running = busy
    for _ in range(3):
        outcome = finished(commit, running)
        order += outcome.done
        if outcome.starts:
            running = outcome.starts[0][0]
    assert order == ["a", "c", "b", "d"]
    assert commit.is_idle


def test_many_logs_are_started_together() -> None:
    commit: GroupCommit[str] = GroupCommit(1, together_min=3)
    logs = [new_log() for _ in range(5)]
    for number, log in enumerate(logs):
        wait(commit, log, str(number))
    outcome = finished(commit, logs[0])
    assert [log for log, _ in outcome.starts] == logs[1:]
    wait(commit, logs[0], "again")
    outcome = finished(commit, *logs[1:])
    assert outcome.done == ["1", "2", "3", "4"]
    assert [log for log, _ in outcome.starts] == [logs[0]]


def test_few_logs_are_started_one_by_one() -> None:
    commit: GroupCommit[str] = GroupCommit(1, together_min=3)
    logs = [new_log() for _ in range(3)]
    for number, log in enumerate(logs):
        wait(commit, log, str(number))
    assert [log for log, _ in finished(commit, logs[0]).starts] == [logs[1]]


def test_a_flush_that_is_asked_for_during_a_sync_comes_after_it() -> None:
    commit: GroupCommit[str] = GroupCommit(4)
    log = new_log()
    wait(commit, log, "a")
    append(log)
    assert not request(commit, log).starts
    ((started, ticket),) = finished(commit, log).starts
    assert (started, ticket.offset) == (log, 2)


def test_a_failed_sync_is_told_to_all_who_wait_and_never_tried_again() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    wait(commit, log, "a")
    wait(commit, log, "b")
    outcome = failed(commit, log, DiskError(log.path, "sync", Reason.IO_ERROR))
    assert [waiter for waiter, _ in outcome.failed] == ["a", "b"]
    assert not outcome.starts
    assert log.volume.error is not None
    assert commit.is_idle
    late = request(commit, log, Offset(2), "late")
    assert [waiter for waiter, _ in late.failed] == ["late"]


def test_a_file_that_was_renamed_meanwhile_is_tried_under_its_new_name() -> None:
    size = len(batch())
    log = new_log(LogConfig(segment_bytes=2 * size))
    for _ in range(4):
        append(log)
    commit: GroupCommit[str] = GroupCommit(4)
    wait(commit, log, "a")
    log.increment_log_start_offset(Offset(2))
    log.delete_old_segments(0)
    outcome = failed(commit, log, DiskError(log.path, "sync", Reason.NOT_FOUND))
    assert not outcome.failed
    assert [started for started, _ in outcome.starts] == [log]
    assert finished(commit, log).done == ["a"]
    assert disk_of(log) is not None


def test_a_log_that_is_let_go_of_leaves_nobody_waiting_unknown() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    wait(commit, log, "a")
    wait(commit, log, "b")
    assert commit.forget(log) == ["a", "b"]
    assert not finished(commit, log).done
    assert commit.is_idle


def test_a_log_that_is_gone_is_not_synced_again_when_its_sync_fails() -> None:
    log = new_log()
    commit: GroupCommit[str] = GroupCommit(4)
    wait(commit, log, "a")
    # The topic is deleted during the sync, and `file.delete.delay.ms` is short.
    assert commit.forget(log) == ["a"]
    log.move_to(f"{log.path}.0123456789abcdef0123456789abcdef-delete", syncs=False)
    disk_of(log).remove_tree(log.path)
    outcome = finished(commit, log)
    assert not outcome.starts
    assert commit.is_idle
    log.volume.check()

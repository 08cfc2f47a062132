"""A shard decides, appends, replays, and answers when what it answers with is committed."""

from collections.abc import Callable, Iterable, Iterator

import pytest

from ottla.coordination.runtime.decision import Decision, ProducerIdentity, Records
from ottla.coordination.runtime.shard import (
    READ_TICKS,
    WRITE_TICKS,
    CannotAppend,
    LoggedBatch,
    Shard,
    ShardStatus,
)
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

PRODUCER = ProducerIdentity(7, 1)


def record(name: str) -> CoordinatorRecord:
    return CoordinatorRecord(name, name.upper(), 0)


class Names:
    """A state that is the list of names it was told."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.events: list[object] = []

    def replay(self, records: Iterable[CoordinatorRecord], producer: ProducerIdentity | None) -> None:
        for record in records:
            self.names.append(record.key)
            self.events.append((record.key, producer))

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        self.events.append((producer, committed))

    def activate(self, now_ms: int) -> None:
        self.events.append(now_ms)

    def deactivate(self) -> None:
        self.events.append("deactivated")


class Log:
    """A log that is a list, and may refuse."""

    def __init__(self, *stored: LoggedBatch) -> None:
        self.stored = list(stored)
        self.end = 0
        self.refusal: ErrorCode | None = None
        self.atomic: list[bool] = []

    def append(self, records: Records, producer: ProducerIdentity | None, is_atomic: bool) -> int:
        if self.refusal is not None:
            raise CannotAppend(self.refusal)
        self.atomic.append(is_atomic)
        self.end += len(records)
        self.stored.append(LoggedBatch(self.end - 1, tuple(records), producer))
        return self.end - 1

    def write_out(self) -> None:
        """Nothing is held back."""

    def leave_out(self, error: Exception) -> None:
        raise AssertionError("all that is in memory can be replayed") from error

    def batches(self) -> Iterator[LoggedBatch]:
        return iter(self.stored)


def active(*stored: LoggedBatch) -> tuple[Shard[Names], Log]:
    log = Log(*stored)
    shard = Shard(3, 1, Names(), log)
    for _ in shard.load():
        pass
    shard.activate(0)
    return shard, log


def add(*names: str) -> Callable[[Names], Decision[str]]:
    return lambda _: Decision(tuple(map(record, names)), "added")


def fail(code: ErrorCode) -> None:
    raise AssertionError(code)


def test_state_changes_at_once_and_the_answer_waits_for_the_commit() -> None:
    shard, _ = active()
    answers: list[str] = []
    shard.write(add("a", "b"), answers.append, fail)
    assert shard.state.names == ["a", "b"]
    assert answers == []
    shard.commit_up_to(0)
    assert answers == [], "half of the batch is not enough"
    shard.commit_up_to(1)
    assert answers == ["added"]


def test_a_decision_without_records_waits_for_what_it_rests_on() -> None:
    shard, _ = active()
    answers: list[str] = []
    shard.write(add("a"), answers.append, fail)
    shard.write(lambda state: Decision(reply=f"saw {state.names}"), answers.append, fail)
    shard.read(lambda state: f"read {state.names}", answers.append, fail)
    assert answers == []
    shard.commit_up_to(0)
    assert answers == ["added", "saw ['a']", "read ['a']"]


def test_a_reader_is_answered_at_once_when_everything_is_committed() -> None:
    shard, _ = active()
    answers: list[list[str]] = []
    shard.read(lambda state: list(state.names), answers.append, fail)
    assert answers == [[]]


def test_a_refused_append_changes_nothing() -> None:
    shard, log = active()
    log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    refusals: list[ErrorCode] = []
    shard.write(add("a"), lambda _: fail(ErrorCode.NONE), refusals.append)
    assert refusals == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert shard.state.names == []


@pytest.mark.parametrize(
    ("appended", "told"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_clients_are_told_of_a_refused_append_in_their_terms(appended: ErrorCode, told: ErrorCode) -> None:
    shard, log = active()
    log.refusal = appended
    refusals: list[ErrorCode] = []
    shard.write(add("a"), lambda _: fail(ErrorCode.NONE), refusals.append)
    assert refusals == [told]


def test_effects_come_after_the_replay() -> None:
    shard, _ = active()
    seen: list[list[str]] = []
    shard.write(
        lambda state: Decision((record("a"),), after_append=lambda: seen.append(list(state.names))),
        lambda _: fail(ErrorCode.NONE),
        fail,
    )
    assert seen == [["a"]]


def test_a_refused_append_has_no_effects() -> None:
    shard, log = active()
    log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    refusals: list[ErrorCode] = []
    shard.write(
        lambda _: Decision((record("a"),), after_append=lambda: fail(ErrorCode.NONE)),
        lambda _: fail(ErrorCode.NONE),
        refusals.append,
    )
    assert refusals == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_a_reply_waits_for_what_its_effects_wrote() -> None:
    shard, _ = active()
    answers: list[str] = []

    def write_more() -> None:
        shard.write(add("b"), answers.append, fail)

    shard.write(lambda _: Decision((record("a"),), "both", write_more), answers.append, fail)
    assert shard.state.names == ["a", "b"]
    shard.commit_up_to(0)
    assert answers == []
    shard.commit_up_to(1)
    assert answers == ["added", "both"]


def test_a_reply_is_refused_if_the_log_fails_while_its_effects_write() -> None:
    shard, _ = active()
    refusals: list[ErrorCode] = []
    shard.write(
        lambda _: Decision((record("a"),), "reply", shard.fail),
        lambda _: fail(ErrorCode.NONE),
        refusals.append,
    )
    assert refusals == [ErrorCode.NOT_COORDINATOR]


def test_what_is_not_atomic_is_said_to_be_so() -> None:
    shard, log = active()
    shard.write(lambda _: Decision((record("a"),), "x", is_atomic=False), lambda _: None, fail)
    shard.write(add("b"), lambda _: None, fail)
    assert log.atomic == [False, True]


def test_loading_replays_records_and_markers_in_order() -> None:
    shard, _ = active(
        LoggedBatch(0, [record("plain")]),
        LoggedBatch(2, [record("pending"), record("also")], PRODUCER),
        LoggedBatch(3, producer=PRODUCER, committed=False),
    )
    assert shard.state.events == [
        ("plain", None), ("pending", PRODUCER), ("also", PRODUCER), (PRODUCER, False), 0,
    ]  # fmt: skip
    assert shard.written_offset == shard.committed_offset == 3


def test_only_an_active_shard_serves() -> None:
    shard = Shard(0, 1, Names(), Log())
    refusals = [shard.refusal]
    shard.activate(0)
    refusals.append(shard.refusal)
    shard.resign()
    refusals.append(shard.refusal)
    assert refusals == [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NONE,
        ErrorCode.NOT_COORDINATOR,
    ]
    assert shard.status is ShardStatus.RESIGNED


def test_a_shard_that_cannot_be_loaded_refuses_and_was_never_active() -> None:
    shard = Shard(0, 1, Names(), Log())
    shard.fail()
    assert shard.refusal is ErrorCode.NOT_COORDINATOR
    assert shard.status is ShardStatus.FAILED
    assert shard.state.events == []


def test_resigning_refuses_whoever_waits() -> None:
    shard, _ = active()
    refusals: list[ErrorCode] = []
    shard.write(add("a"), lambda _: fail(ErrorCode.NONE), refusals.append)
    shard.read(lambda _: 1, lambda _: fail(ErrorCode.NONE), refusals.append)
    shard.resign()
    assert refusals == [ErrorCode.NOT_COORDINATOR] * 2
    assert shard.state.events[-1] == "deactivated"
    shard.commit_up_to(5)


def test_a_marker_ends_a_transaction_and_is_waited_for() -> None:
    shard, _ = active()
    answers: list[str] = []
    shard.write(add("a"), answers.append, fail, PRODUCER)
    shard.end_transaction(PRODUCER, True, 1)
    assert shard.state.events == [0, ("a", PRODUCER), (PRODUCER, True)]
    shard.commit_up_to(0)
    shard.read(lambda _: "read", answers.append, fail)
    assert answers == ["added"], "who sees the end of the transaction waits for its marker"
    shard.commit_up_to(1)
    assert answers == ["added", "read"]


def test_answers_that_wait_too_long_are_refused_and_those_who_read_have_less_patience() -> None:
    shard, _ = active()
    told: list[object] = []
    shard.write(add("a"), told.append, told.append)
    shard.read(lambda state: list(state.names), told.append, told.append)
    for _ in range(READ_TICKS - 1):
        assert shard.tick()
    assert told == []
    assert shard.tick(), "the write still waits"
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    for _ in range(WRITE_TICKS - READ_TICKS):
        shard.tick()
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert not shard.tick(), "nobody waits any more"
    shard.commit_up_to(0)
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert shard.state.names == ["a"], "what was appended stays"


def test_an_effect_comes_after_the_commit_however_long_that_takes() -> None:
    shard, _ = active()
    told: list[object] = []
    shard.write(add("a"), told.append, told.append)
    shard.after_commit(lambda: told.append("effect"))
    for _ in range(2 * WRITE_TICKS):
        shard.tick()
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    shard.commit_up_to(0)
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE, "effect"]

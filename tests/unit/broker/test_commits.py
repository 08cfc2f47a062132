"""An answer goes out when everything it acknowledges is on disk, and tells if it never will be."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ottla.broker.commits import Commits
from ottla.broker.handlers import EncodedResponse
from ottla.storage.errors import LogDirectoryOffline
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

ENCODED = EncodedResponse(b"encoded")


class Flusher:
    """Keeps who waits, for the test to call."""

    def __init__(self) -> None:
        self.waiters: list[Callable[[LogDirectoryOffline | None], None]] = []

    def request(self, _log: Any, _offset: int, waiter: Callable[[LogDirectoryOffline | None], None]) -> None:
        self.waiters.append(waiter)


class Clock:
    """A clock that stands still until it is told."""

    ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def monotonic_ns(self) -> int:
        return 1_000_000 * self.ms


class Log:
    """A log of which three of five records are safe."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.volume = SimpleNamespace(path="/disk")
        self.log_end_offset = 5
        self.recovery_point = 3


def make_log(path: str) -> Any:
    return Log(path)


def make_world() -> tuple[Commits, Flusher, Clock]:
    flusher, clock = Flusher(), Clock()
    return Commits(flusher, clock), flusher, clock  # type: ignore[arg-type]


def respond() -> ProduceResponse:
    answers = tuple(PartitionProduceResponse(partition_index=index, base_offset=4) for index in range(2))
    return ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=answers),))


def errors_of(response: Any) -> list[ErrorCode]:
    return [answer.error_code for answer in response.responses[0].partition_responses]


def test_an_encoded_answer_waits_for_all_logs() -> None:
    commits, flusher, _ = make_world()
    logs = (make_log("/disk/t-0"), make_log("/disk/t-1"))
    answer = commits.wait(logs, logs, 1000, respond, ENCODED)

    flusher.waiters[0](None)
    assert not answer.is_done

    flusher.waiters[1](None)
    assert answer.value() is ENCODED
    assert not commits.pending


def test_without_an_encoded_answer_one_is_made() -> None:
    commits, flusher, _ = make_world()
    logs = (make_log("/disk/t-0"),)
    answer = commits.wait(logs, logs, 1000, respond)
    flusher.waiters[0](None)
    assert answer.value() == respond()


def test_a_log_that_is_gone_spoils_its_own_partition_only() -> None:
    commits, flusher, _ = make_world()
    logs = (make_log("/disk/t-0"), make_log("/disk/t-1"))
    answer = commits.wait(logs, logs, 1000, respond, ENCODED)
    flusher.waiters[0](None)
    flusher.waiters[1](LogDirectoryOffline("/disk/t-1", "deleted"))
    assert errors_of(answer.value()) == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_log_whose_new_directory_failed_is_not_said_to_be_safe() -> None:
    commits, flusher, _ = make_world()
    logs = (make_log("/disk/t-0"), make_log("/disk/t-1"))
    answer = commits.wait(logs, logs[:1], 1000, respond, ENCODED)
    flusher.waiters[0](LogDirectoryOffline("/other-disk", "a sync failed"))
    assert errors_of(answer.value()) == [ErrorCode.KAFKA_STORAGE_ERROR] * 2


def test_who_waits_for_too_long_is_told_so() -> None:
    commits, flusher, clock = make_world()
    safe, unsafe = make_log("/disk/t-0"), make_log("/disk/t-1")
    safe.recovery_point = 5
    answer = commits.wait((safe, unsafe), (safe, unsafe), 1000, respond, ENCODED)
    clock.ms = 1001
    commits.sweep()
    assert errors_of(answer.value()) == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    for waiter in flusher.waiters:
        waiter(None)

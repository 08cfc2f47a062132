"""`ottla consume` goes on when a leader moves, and says what it cannot read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.failure import Failure
from ottla.cli.records import reading
from ottla.cli.records.reading import Reading, Wish
from ottla.client.errors import BrokerError, ClientError, NoBrokerReached
from ottla.client.fetching import FetchedPartition, IsolationLevel
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.wire.error_code import ErrorCode

P0 = TopicPartition("t", 0)


class Cluster:
    """A cluster whose leaders answer what the test says."""

    def __init__(self, *answers: ErrorCode | ClientError) -> None:
        self.answers = list(answers)
        self.refreshed: list[set[str]] = []
        self.said: list[str] = []
        self.tries = 0

    async def refresh(self, topics: Any) -> Any:
        self.refreshed.append(set(topics))

    async def retry(self, once: Callable[[], Awaitable[Any]]) -> Any:
        """Try again once, as a client does for a while."""
        try:
            return await once()
        except ClientError as error:
            if not error.retriable:
                raise
        return await once()

    async def fetch_once(self, _cluster: Any, positions: Mapping[TopicPartition, int], **_more: Any) -> Any:
        self.tries += 1
        answer = self.answers.pop(0)
        if isinstance(answer, ClientError):
            raise answer
        return {where: _fetched(where, offset, answer) for where, offset in positions.items()}


def _fetched(where: TopicPartition, offset: int, code: ErrorCode) -> FetchedPartition:
    return FetchedPartition(where, offset, code, 0, 0, 0, (), memoryview(b""), -1)


def _fetch(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, *, follows: bool = False, start: int = 0, end: int = 9
) -> Any:
    monkeypatch.setattr(reading, "fetch_once", cluster.fetch_once)

    async def list_offsets(_cluster: Any, times: Any, _isolation: IsolationLevel) -> Any:
        return {where: SimpleNamespace(offset=start if time == -2 else end) for where, time in times.items()}

    monkeypatch.setattr(reading, "list_offsets", list_offsets)
    client: Any = cluster
    read = Reading(client, Wish(("t",), follows=follows), cluster.said.append)
    read._positions[P0] = 5
    found = asyncio.run(read._fetch({P0: 5}))
    return found, read._positions[P0]


def test_a_leader_that_moved_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    found, _ = _fetch(monkeypatch, cluster)
    assert list(found) == [P0]
    assert cluster.refreshed == [{"t"}]


def test_an_error_that_says_nothing_of_leaders_asks_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError, match="cannot read t-0 from offset 5"):
        _fetch(monkeypatch, cluster)
    assert cluster.refreshed == []


def test_a_leader_that_is_gone_is_looked_for_and_the_wait_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = NoBrokerReached("nobody answers")
    cluster = Cluster(gone, gone, gone, ErrorCode.NONE)
    _fetch(monkeypatch, cluster, follows=True)
    assert cluster.said == ["nobody answers; waiting", "the connection is back"]
    assert cluster.refreshed == [{"t"}] * 3
    cluster = Cluster(gone, gone)
    with pytest.raises(NoBrokerReached):
        _fetch(monkeypatch, cluster)
    assert cluster.said == []


def test_records_that_were_deleted_are_told_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(ErrorCode.OFFSET_OUT_OF_RANGE)
    found, position = _fetch(monkeypatch, cluster, start=7)
    assert (found, position) == ({}, 7)
    assert cluster.said == ["records 5 to 6 of t-0 were deleted before they could be read"]


@pytest.mark.parametrize("start", [0, 5])
def test_a_log_that_ends_before_what_was_read_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    with pytest.raises(Failure, match="t-0 ends at 3 now, before offset 5"):
        _fetch(monkeypatch, Cluster(ErrorCode.OFFSET_OUT_OF_RANGE), start=start, end=3)


def test_nothing_is_asked_for_by_default_but_committed_records_up_to_now() -> None:
    wish = Wish(("t",))
    assert (wish.follows, wish.skips_damaged) == (False, False)
    assert wish.isolation is IsolationLevel.READ_COMMITTED
    assert Wish(("t",), read_uncommitted=True).isolation is IsolationLevel.READ_UNCOMMITTED


class Growing:
    """A topic that gets a second partition after its first one was read. Each has one record."""

    def __init__(self) -> None:
        self.partitions = 1
        self.looks = 0

    async def refresh(self, _topics: object) -> Any:
        self.looks += 1
        view = SimpleNamespace(partitions=dict.fromkeys(range(self.partitions)), is_internal=False)
        return SimpleNamespace(topics={"t": view})

    async def retry(self, once: Callable[[], Awaitable[Any]]) -> Any:
        return await once()

    async def fetch_once(self, _cluster: Any, positions: Mapping[TopicPartition, int], **_more: Any) -> Any:
        found = {}
        for where, offset in positions.items():
            batch = build_batch([(0, 1, None, b"of %d" % where.partition, ())]) if not offset else b""
            found[where] = _fetched(where, offset, ErrorCode.NONE)._replace(
                records=memoryview(batch), high_watermark=1
            )
        self.partitions = 2
        # A broker would make the reader wait, too.
        await asyncio.sleep(0)
        return found


def _first_values(monkeypatch: pytest.MonkeyPatch, wish: Wish, count: int) -> tuple[list[Any], Growing]:
    topic = Growing()
    monkeypatch.setattr(reading, "fetch_once", topic.fetch_once)

    async def list_offsets(_cluster: Any, times: Any, _isolation: IsolationLevel) -> Any:
        return {where: SimpleNamespace(offset=0 if time == -2 else 1) for where, time in times.items()}

    monkeypatch.setattr(reading, "list_offsets", list_offsets)

    async def read() -> list[Any]:
        client: Any = topic
        found: list[Any] = []
        records = Reading(client, wish, lambda _sentence: None).records()
        async for record in records:
            found.append(record.value)
            if len(found) == count:
                break
        await records.aclose()
        return found

    return asyncio.run(read()), topic


def test_who_follows_a_topic_gets_what_is_written_to_partitions_that_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, _ = _first_values(monkeypatch, Wish(("t",), follows=True), 2)
    assert found == [b"of 0", b"of 1"]


def test_who_reads_up_to_now_does_not_wait_for_other_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    found, topic = _first_values(monkeypatch, Wish(("t",)), 2)
    assert found == [b"of 0"]
    assert topic.looks == 1

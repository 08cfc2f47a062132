"""What Spark tells of its batches becomes consumer groups and lag, without Spark."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.pipelines.spark import progress as module
from ottla.pipelines.spark.progress import (
    BatchProgress,
    ProgressGroups,
    ProgressListener,
    ProgressWatch,
    new_progress,
    read_progress,
)

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


def told(batch_id: int, **facts: Any) -> str:
    """Return what Spark tells of a batch that was done."""
    done = {"addBatch": 5, "triggerExecution": 40}
    source = {"endOffset": json.dumps({"t": {"0": batch_id + 1}}), "latestOffset": {"t": {"0": 9, "1": 7}}}
    return json.dumps({"batchId": batch_id, "durationMs": done, "sources": [source], **facts})


def waits(batch_id: int) -> str:
    """Return what Spark tells of a query that waits for the batch of this number."""
    return told(batch_id, durationMs={"latestOffset": 3, "triggerExecution": 3})


# One batch


def test_all_that_is_told_of_a_batch_is_read() -> None:
    content = {
        "batchId": 4,
        "numInputRows": 12,
        "processedRowsPerSecond": 2.5,
        "durationMs": {"triggerExecution": 1_200},
        "sources": [
            {"endOffset": '{"t": {"0": 3}}', "latestOffset": '{"t": {"0": 5}}'},
            {"endOffset": {"t": {"1": 4}}, "latestOffset": {"t": {"1": 4}}},
        ],
        "stateOperators": [
            {"numRowsTotal": 2, "memoryUsedBytes": 300, "numRowsDroppedByWatermark": 1},
            {"numRowsTotal": 5, "memoryUsedBytes": 40, "numRowsDroppedByWatermark": 6},
        ],
    }
    assert read_progress("q", content) == BatchProgress(
        "q", 4, 12, 2.5, 1_200, {ONE: 3, TWO: 4}, {ONE: 5, TWO: 4}, 7, 340, 7
    )


def test_what_is_not_told_is_nothing() -> None:
    nothing = BatchProgress("q", 0, 0, 0.0, 0)
    assert read_progress("q", {"batchId": 0}) == nothing
    empty = {"batchId": 0, "processedRowsPerSecond": None, "durationMs": None, "stateOperators": None}
    assert read_progress("q", empty) == nothing
    operators = {"batchId": 0, "sources": [{}], "stateOperators": [{}]}
    assert read_progress("q", operators) == nothing
    assert (nothing.offsets, nothing.latest, nothing.lag) == ({}, {}, 0)


@pytest.mark.parametrize(
    "offsets", ["rate source 7", "7", 7, None, [1], {"t": 3}, {"t": {"zero": 3}}, {"t": {"0": None}}]
)
def test_offsets_of_other_kinds_of_sources_are_none_of_ours(offsets: Any) -> None:
    sources = [{"endOffset": offsets}, {"endOffset": {"t": {"0": 1}}}]
    assert read_progress("q", {"batchId": 0, "sources": sources}).offsets == {ONE: 1}


def test_lag_is_what_was_there_when_the_batch_began_and_is_not_read() -> None:
    batch = BatchProgress("q", 0, 0, 0.0, 0, offsets={ONE: 3}, latest={ONE: 10, TWO: 5})
    # Of a partition that the query knows nothing of, nothing can be said.
    assert batch.lag == 7
    # A topic that was made anew is no negative lag.
    assert BatchProgress("q", 0, 0, 0.0, 0, offsets={ONE: 3, TWO: 9}, latest={ONE: 4, TWO: 5}).lag == 1


# Which batches are new


class _JavaProgress:
    def __init__(self, content: str) -> None:
        self._content = content

    def batchId(self) -> int:  # noqa: N802 - Spark's names, here and below
        found: int = json.loads(self._content)["batchId"]
        return found

    def json(self) -> str:
        return self._content


class Java:
    """A query of a session in this process, as Java tells of it."""

    def __init__(self, *contents: str) -> None:
        self.contents = contents
        self.asked_all = 0
        self._jsq = self

    def _items(self) -> list[Any]:
        return [_JavaProgress(each) for each in self.contents]

    def lastProgress(self) -> Any:  # noqa: N802
        return self._items()[-1] if self.contents else None

    def recentProgress(self) -> Any:  # noqa: N802
        self.asked_all += 1
        return self._items()


class Remote:
    """A query behind Spark Connect."""

    def __init__(self, *contents: str) -> None:
        self.recentProgress = [SimpleNamespace(json=each) for each in contents]


Remote.__module__ = "pyspark.sql.connect.streaming.query"


@pytest.mark.parametrize("kind", [Java, Remote])
def test_each_batch_is_told_once_and_waiting_is_no_batch(kind: Any) -> None:
    assert new_progress(kind(), None) == []
    query = kind(told(0), told(1), waits(2))
    assert new_progress(query, None) == [told(0), told(1)]
    assert new_progress(query, 0) == [told(1)]
    assert new_progress(query, 1) == []
    assert new_progress(query, 2) == []


def test_all_that_spark_remembers_is_fetched_only_where_a_batch_was_missed() -> None:
    query = Java(told(0), told(1))
    assert new_progress(query, 0) == [told(1)]
    assert query.asked_all == 0
    assert new_progress(query, None) == [told(0), told(1)]
    assert query.asked_all == 1
    assert new_progress(query, 1) == []
    assert query.asked_all == 1
    query.contents = (told(1), told(2), told(3))
    assert new_progress(query, 1) == [told(2), told(3)]
    assert query.asked_all == 2


# Groups


class Committing:
    """A link that only takes note of what is committed."""

    def __init__(self) -> None:
        self.committed: list[tuple[str, dict[TopicPartition, int]]] = []
        self.error: ClientError | None = None
        self.closed = 0
        self.group_offsets = SimpleNamespace(alter=lambda group, offsets: (group, offsets))

    def run(self, work: Any) -> Any:
        if self.error is not None:
            raise self.error
        self.committed.append(work)
        return SimpleNamespace(check=lambda: None)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Committing:
    link = Committing()
    opened: list[Any] = []

    def open_link(properties: dict[str, str], retry_timeout_ms: int) -> Any:
        opened.append((properties, retry_timeout_ms))
        assert opened == [({"bootstrap.servers": "b:1"}, 10_000)], "one connection serves all queries"
        return link

    monkeypatch.setattr(module, "Link", open_link)
    return link


PROPERTIES = {"bootstrap.servers": "b:1"}


def test_where_a_batch_ended_is_committed_to_the_group_of_the_query(link: Committing) -> None:
    heard: list[BatchProgress] = []
    groups = ProgressGroups(PROPERTIES, tell=heard.append)
    groups.take("q", told(0))
    groups.take("q", told(1))
    assert link.committed == [("q", {ONE: 1}), ("q", {ONE: 2})]
    assert [batch.batch_id for batch in heard] == [0, 1]
    groups.close()
    groups.close()
    assert link.closed == 1


def test_a_query_without_a_group_or_without_offsets_commits_nothing(link: Committing) -> None:
    heard: list[BatchProgress] = []
    groups = ProgressGroups(PROPERTIES, {"q": None, "r": "group-of-r"}.get, heard.append)
    groups.take("q", told(0))
    groups.take("r", told(0, sources=[]))
    assert (link.committed, len(heard)) == ([], 2)
    groups.take("r", told(0))
    assert link.committed == [("group-of-r", {ONE: 1})]
    ProgressGroups(PROPERTIES).close()
    assert link.closed == 0


def test_a_broker_that_is_away_stops_no_query(link: Committing, caplog: pytest.LogCaptureFixture) -> None:
    link.error = ClientError("nobody answers")
    ProgressGroups(PROPERTIES).take("q", told(0))
    assert caplog.messages == ["cannot store the progress of q as a group: nobody answers"]


def test_a_listener_takes_queries_that_have_a_name(link: Committing) -> None:
    heard: list[BatchProgress] = []
    listener = ProgressListener(PROPERTIES, lambda query: f"group-of-{query}", heard.append)
    for name in (None, "q"):
        event: Any = SimpleNamespace(progress=SimpleNamespace(name=name, json=told(0)))
        listener.onQueryProgress(event)
    assert link.committed == [("group-of-q", {ONE: 1})]
    assert [batch.query for batch in heard] == ["q"]


# The watch


def watch(groups: Any, queries: dict[str, Any], inputs: Any = (), lags: Any = None) -> ProgressWatch:
    return ProgressWatch(groups, queries, dict(inputs), lambda name, lag: lags.append((name, lag)))


class Taken:
    """Takes note of what a watch hands on."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, int]] = []
        self.link = object()
        self.closed = False

    def take(self, name: str, content: str) -> None:
        self.batches.append((name, json.loads(content)["batchId"]))

    def close(self) -> None:
        self.closed = True


def test_a_watch_goes_on_where_each_query_was() -> None:
    taken = Taken()
    queries: dict[str, Any] = {"p": Java(told(3)), "q": Java(told(0), told(1))}
    looking = watch(taken, queries)
    looking.look()
    looking.look()
    assert taken.batches == [("p", 3), ("q", 0), ("q", 1)]
    queries["p"] = Java(told(3), told(4))
    looking.look()
    assert taken.batches[3:] == [("p", 4)]


def test_a_watch_takes_what_was_told_last_before_it_ends() -> None:
    taken = Taken()
    queries: dict[str, Any] = {}
    looking = watch(taken, queries)
    looking.start()
    queries["q"] = Java(told(0))
    looking.stop()
    assert (taken.batches, taken.closed, looking.is_alive()) == ([("q", 0)], True, False)


def test_a_query_that_is_ending_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Taken()
    looked = threading.Event()

    class Ending:
        @property
        def _jsq(self) -> Any:
            if looked.is_set():
                return Java(told(0))
            looked.set()
            raise RuntimeError("the query has ended")

    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.001)
    looking = watch(taken, {"q": Ending()})
    looking.start()
    looked.wait()
    looking.stop()
    assert taken.batches == [("q", 0)]


def test_the_lag_of_each_query_is_measured_and_unknown_where_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken, lags = Taken(), []  # type: ignore[var-annotated]
    measured = {"p": 5, "q": None}

    def measure(link: Any, name: str, inputs: Any) -> int | None:
        assert link is taken.link
        assert inputs == {"t": "earliest"}
        if name == "r":
            raise ClientError("nobody answers")
        return measured[name]

    monkeypatch.setattr(module, "measure_lag", measure)
    watch(taken, {}, {name: {"t": "earliest"} for name in "pqr"}, lags)._measure()
    assert lags == [("p", 5), ("q", None), ("r", None)]


def test_lag_is_measured_at_once_and_then_once_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [50.0, 50.0, 50.999, 51.0, 51.0, 51.5]
    times = iter(now)
    looks: list[str] = []
    looking = watch(Taken(), {})
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(looking, "look", lambda: looks.append("look"))
    monkeypatch.setattr(looking, "_measure", lambda: looks.append("measure"))
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) == 5

    monkeypatch.setattr(looking, "_stopping", SimpleNamespace(wait=wait))
    looking.run()
    assert looks == ["look", "measure", "look", "look", "measure", "look"]
    assert set(waited) == {0.2}

"""The progress of streaming queries as consumer groups, so that every lag tool sees them.

Spark keeps its offsets in a checkpoint, where nobody but Spark looks. At the end of each batch they are
committed to a group named after the query as well. They are for people and tools only: nothing reads them
to go on. (A source's own `commit` would be one batch late.)
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.errors import ClientError
from ottla.pipelines.lag import measure_lag
from ottla.pipelines.link import Link
from ottla.pipelines.source.plan import Offsets, from_json
from ottla.pipelines.spark.session import is_remote

_LOOK_EVERY_S: Final = 0.2
_MEASURE_EVERY_S: Final = 1.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """What a batch of a query has done, as far as people ask."""

    query: str
    batch_id: int
    input_rows: int
    rows_per_second: float
    duration_ms: int
    offsets: Offsets = field(default_factory=dict)
    """How far the query has read."""
    latest: Offsets = field(default_factory=dict)
    """How far it could have read when the batch began."""
    state_rows: int = 0
    state_bytes: int = 0
    dropped_rows: int = 0
    """Rows that this batch found too late for the watermark."""

    @property
    def lag(self) -> int:
        """Return how many offsets are still to be read."""
        return sum(max(0, end - self.offsets.get(where, end)) for where, end in self.latest.items())


def read_progress(query: str, content: Mapping[str, Any]) -> BatchProgress:
    """Read the progress of a batch from Spark's JSON."""
    offsets: Offsets = {}
    latest: Offsets = {}
    for source in content.get("sources", ()):
        offsets |= _offsets(source.get("endOffset"))
        latest |= _offsets(source.get("latestOffset"))
    operators = content.get("stateOperators") or ()
    return BatchProgress(
        query,
        int(content["batchId"]),
        int(content.get("numInputRows", 0)),
        float(content.get("processedRowsPerSecond") or 0.0),
        int((content.get("durationMs") or {}).get("triggerExecution", 0)),
        offsets,
        latest,
        sum(int(operator.get("numRowsTotal", 0)) for operator in operators),
        sum(int(operator.get("memoryUsedBytes", 0)) for operator in operators),
        sum(int(operator.get("numRowsDroppedByWatermark", 0)) for operator in operators),
    )


def _offsets(content: Any) -> Offsets:
    """Read the offsets of a source, or nothing if it is another kind of source."""
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except json.JSONDecodeError:
            return {}
    if not isinstance(content, dict):
        return {}
    try:
        return from_json(content)
    except (AttributeError, TypeError, ValueError):
        return {}


class ProgressGroups:
    """Commits what queries have read to groups of their names.

    A broker that is away is reported in the log: progress that nobody saw is no reason to stop a query.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group_of: Callable[[str], str | None] = lambda query: query,
        tell: Callable[[BatchProgress], None] = lambda _: None,
    ) -> None:
        self._properties = dict(properties)
        self._group_of = group_of
        self._tell = tell
        self._link: Link | None = None

    @property
    def link(self) -> Link:
        """The way to the cluster. One thread may use it."""
        if self._link is None:
            self._link = Link(self._properties, retry_timeout_ms=10_000)
        return self._link

    def take(self, name: str, content: str) -> None:
        """Commit where a batch ended, by Spark's JSON. Taking the same batch twice does no harm."""
        progress = read_progress(name, json.loads(content))
        self._tell(progress)
        group = self._group_of(name)
        if group is None or not progress.offsets:
            return
        try:
            self.link.run(self.link.group_offsets.alter(group, progress.offsets)).check()
        except ClientError as error:
            _logger.warning("cannot store the progress of %s as a group: %s", name, error)

    def close(self) -> None:
        """Close the connections."""
        if self._link is not None:
            self._link.close()
            self._link = None


class ProgressListener(StreamingQueryListener):
    """Makes the progress of queries that have a name visible. Add it by `spark.streams.addListener`.

    Spark hands each event to Python field by field: 150 ms of CPU for each batch. Where batches are short it
    is cheaper to ask for their progress now and then, by `ProgressWatch`.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group_of: Callable[[str], str | None] = lambda query: query,
        tell: Callable[[BatchProgress], None] = lambda _: None,
    ) -> None:
        self._groups = ProgressGroups(properties, group_of, tell)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names, here and below
        """Nothing was read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing was read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The last batch has told its end."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Commit where a batch ended."""
        if event.progress.name is not None:
            self.take(event.progress.name, event.progress.json)

    def take(self, name: str, content: str) -> None:
        """Commit where a batch ended, by Spark's JSON."""
        self._groups.take(name, content)


def new_progress(query: Any, after_batch: int | None) -> list[str]:
    """Return what a query reports about the batches after one, as JSON. Spark remembers the last twenty.

    A query that waits tells so under the number of the batch that it waits for. That is no batch.
    """
    if is_remote(query):
        recent = [progress.json for progress in query.recentProgress]
    else:
        # The properties of PySpark's own object would take a hundred calls to Java.
        last = query._jsq.lastProgress()
        if last is None or not _is_after(last.batchId(), after_batch):
            return []
        is_next = after_batch is not None and last.batchId() == after_batch + 1
        recent = [str(item.json()) for item in ((last,) if is_next else query._jsq.recentProgress())]
    return [content for content in recent if _is_batch(json.loads(content), after_batch)]


def _is_batch(progress: Mapping[str, Any], after_batch: int | None) -> bool:
    return "addBatch" in progress["durationMs"] and _is_after(progress["batchId"], after_batch)


def _is_after(batch_id: int, other: int | None) -> bool:
    return other is None or batch_id > other


class ProgressWatch(threading.Thread):
    """Asks queries for their progress, commits it to their groups, and measures how far they are behind.

    `queries` is what runs now, by name: it may change while the watch looks. `inputs` says what each reads.
    """

    def __init__(
        self,
        groups: ProgressGroups,
        queries: Mapping[str, Any],
        inputs: Mapping[str, Mapping[str, str]],
        tell_lag: Callable[[str, int | None], None],
    ) -> None:
        super().__init__(name="progress of pipelines", daemon=True)
        self._groups = groups
        self._queries = queries
        self._inputs = inputs
        self._tell_lag = tell_lag
        self._batches: dict[str, int] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look until it is stopped."""
        measured_s = 0.0
        while not self._stopping.wait(_LOOK_EVERY_S):
            try:
                self.look()
                if time.monotonic() - measured_s >= _MEASURE_EVERY_S:
                    measured_s = time.monotonic()
                    self._measure()
            # Whatever Spark raises about a query that is ending: the next look may be better.
            except Exception:
                _logger.debug("cannot read the progress of pipelines", exc_info=True)

    def stop(self) -> None:
        """Stop, and take what queries have told last."""
        self._stopping.set()
        self.join()
        try:
            self.look()
        finally:
            self._groups.close()

    def look(self) -> None:
        """Take what is new."""
        for name, query in list(self._queries.items()):
            for content in new_progress(query, self._batches.get(name)):
                self._groups.take(name, content)
                self._batches[name] = int(json.loads(content)["batchId"])

    def _measure(self) -> None:
        for name, inputs in self._inputs.items():
            try:
                lag = measure_lag(self._groups.link, name, inputs)
            except ClientError as error:
                # What was known is old now, and nothing is better than a wrong number.
                lag = None
                _logger.debug("cannot measure the lag of %s: %s", name, error)
            self._tell_lag(name, lag)

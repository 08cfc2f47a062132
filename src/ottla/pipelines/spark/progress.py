"""The progress of streaming queries as consumer groups, so that every lag tool sees them.

Spark keeps its offsets in a checkpoint, where nobody but Spark looks. At the end of each batch this listener
commits them to a group named after the query as well. They are for people and tools only: nothing reads them
to go on. (A source's own `commit` would be one batch late.)
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.errors import ClientError
from ottla.pipelines.link import Link
from ottla.pipelines.source.plan import Offsets, from_json

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


class ProgressListener(StreamingQueryListener):
    """Commits what queries have read to groups of their names. Add it by `spark.streams.addListener`.

    Queries without a name have no group. A broker that is away is told in the log: progress that nobody saw
    is no reason to stop a query.
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
        """Commit where a batch ended, by Spark's JSON. Taking the same batch twice does no harm."""
        progress = read_progress(name, json.loads(content))
        self._tell(progress)
        group = self._group_of(name)
        if group is None or not progress.offsets:
            return
        if self._link is None:
            self._link = Link(self._properties, retry_timeout_ms=10_000)
        try:
            self._link.run(self._link.group_offsets.alter(group, progress.offsets)).check()
        except ClientError as error:
            _logger.warning("the progress of %s cannot be shown as a group: %s", name, error)

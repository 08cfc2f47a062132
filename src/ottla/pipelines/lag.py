"""How far queries are behind the ends of their topics now.

What Spark says of its lag is as old as its last batch, and a query that died says nothing more. So lag is
always asked from the cluster: where topics end, and what the query's group has committed.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.client.errors import ClientError
from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.model.ids import TopicPartition
from ottla.pipelines.link import Link
from ottla.pipelines.source.offsets import find_offsets
from ottla.pipelines.source.plan import Offsets

EARLIEST_POSITION: Final = "earliest"
_MEASURE_EVERY_S: Final = 1.0
_logger = logging.getLogger(__name__)


def measure_lag(link: Link, query: str, inputs: Mapping[str, str]) -> int | None:
    """Return how many offsets a query has still to read; None if nobody can say yet.

    The inputs are topics with the places where a new query begins. A query that has committed nothing has all
    before it if it begins at the earliest offset. Where it begins otherwise, its first batch will tell.
    """
    if not inputs:
        return None
    return link.run(_measure(link, query, inputs))


async def _measure(link: Link, query: str, inputs: Mapping[str, str]) -> int | None:
    topology = await link.cluster.refresh(inputs)
    places = [
        TopicPartition(name, number)
        for name in inputs
        if name in topology.topics
        for number in topology.topics[name].partitions
    ]
    if not places:
        return None
    ends = await find_offsets(link.cluster, places, LATEST, IsolationLevel.READ_COMMITTED)
    done = {where: item.offset for where, item in (await link.group_offsets.list(query)).items()}
    new = [where for where in places if where not in done]
    if any(inputs[where.topic] != EARLIEST_POSITION and not _has_begun(where, done) for where in new):
        return None
    # Partitions that came later are read from their beginning.
    done |= await find_offsets(link.cluster, new, EARLIEST, IsolationLevel.READ_COMMITTED) if new else {}
    return sum(max(0, ends[where] - done[where]) for where in places)


def _has_begun(where: TopicPartition, done: Offsets) -> bool:
    return any(other.topic == where.topic for other in done)


class LagMeter(threading.Thread):
    """Measures the lag of queries again and again, beside whatever else the process does."""

    def __init__(self, properties: Mapping[str, str], queries: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(name="lag of pipelines", daemon=True)
        self.lags: dict[str, int | None] = {}
        self._properties = dict(properties)
        self._queries = queries
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End it soon."""
        self._stopping.set()

    def run(self) -> None:
        """Measure until it is stopped."""
        link = Link(self._properties, retry_timeout_ms=5_000)
        try:
            while not self._stopping.wait(_MEASURE_EVERY_S):
                self._measure(link, self._queries)
        finally:
            link.close()

    def _measure(self, link: Link, queries: Mapping[str, Mapping[str, str]]) -> None:
        for name, inputs in queries.items():
            try:
                self.lags[name] = measure_lag(link, name, inputs)
            except ClientError as error:
                # What was known is old now, and nothing is better than a wrong number.
                self.lags[name] = None
                _logger.debug("the lag of %s is not known: %s", name, error)


def check_cluster(properties: Mapping[str, str], topics: Iterable[str] = ()) -> None:
    """Raise what a client raises when no broker can be reached, soon."""
    link = Link(properties, retry_timeout_ms=2_000)
    try:
        link.run(link.cluster.refresh(tuple(topics)))
    finally:
        link.close()

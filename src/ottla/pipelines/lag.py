"""How far queries are behind the ends of their topics now.

What Spark says of its lag is as old as its last batch, and a query that died says nothing more. So lag is
always asked from the cluster: where topics end, and what the query's group has committed.
"""

from collections.abc import Mapping
from typing import Final

from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.model.ids import TopicPartition
from ottla.pipelines.link import Link
from ottla.pipelines.source.offsets import find_offsets
from ottla.pipelines.source.plan import Offsets

EARLIEST_POSITION: Final = "earliest"


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

"""The topics that a mirror keeps for itself."""

import asyncio
from collections.abc import Collection

from ottla.client.cluster import Cluster
from ottla.client.topology import PartitionView, TopicView, Topology
from ottla.mirror.maker.own_topics import made_partitions, partitions_of
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode

PARTITION = PartitionView(0, 0, 0, (0,), (0,), ErrorCode.NONE)


class BehindAtFirst(Cluster):
    """A cluster whose first answers are those of a broker that has not heard of a topic yet."""

    def __init__(self, answers_behind: int) -> None:
        super().__init__([])
        self._answers_behind = answers_behind

    async def refresh(self, topics: Collection[str] | None = ()) -> Topology:
        self._answers_behind -= 1
        is_behind = self._answers_behind >= 0
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_behind else ErrorCode.NONE
        partitions = {} if is_behind else {0: PARTITION}
        views = {name: TopicView(name, ZERO_UUID, False, partitions, code) for name in topics or ()}
        return Topology(topics=views)


def test_a_topic_that_exists_is_never_taken_for_an_empty_one() -> None:
    # Without the positions in it, everything would be copied again.
    assert asyncio.run(made_partitions(BehindAtFirst(2), "positions")) == (TopicPartition("positions", 0),)


def test_a_topic_that_may_be_missing_has_no_partitions() -> None:
    assert asyncio.run(partitions_of(BehindAtFirst(1), "syncs")) == ()

"""Whatever members of streams groups do, our group coordinator decides what Apache Kafka's decides."""

import pytest
from tests.differential.streams_fuzz import StreamsFuzz
from tests.differential.streams_twins import StreamsTwins
from tests.java.group_shards import GroupShards
from tests.java.oracle import Oracle
from tests.java.rounds import rounds
from tests.support.consumer_world import ChangingTopics

from ottla.coordination.group.settings import StreamsIntervals

STEPS = 150


@pytest.fixture
def shards(oracle: Oracle) -> GroupShards:
    return GroupShards(oracle)


def _twins(shards: GroupShards, patch: pytest.MonkeyPatch, intervals: StreamsIntervals) -> StreamsTwins:
    return StreamsTwins(shards, ChangingTopics(apples=4, pears=3, plums=3), intervals, patch)


@pytest.mark.parametrize("seed", rounds(10, 20))
def test_tasks_are_handed_over_alike(shards: GroupShards, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    intervals = StreamsIntervals(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
    StreamsFuzz(seed, _twins(shards, monkeypatch, intervals)).run(STEPS)


@pytest.mark.parametrize("seed", rounds(10, 20))
def test_copies_and_delays_are_handled_alike(
    shards: GroupShards, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    intervals = StreamsIntervals(standby_replicas=1)
    StreamsFuzz(seed, _twins(shards, monkeypatch, intervals)).run(STEPS)


@pytest.mark.parametrize("seed", rounds(5, 10))
def test_endpoints_are_told_alike(shards: GroupShards, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    intervals = StreamsIntervals(assignment_interval_ms=0, standby_replicas=1)
    StreamsFuzz(seed, _twins(shards, monkeypatch, intervals), with_endpoints=True).run(STEPS)

"""Whatever members do, our group coordinator decides what Apache Kafka's decides."""

from collections.abc import Iterator

import pytest
from tests.differential.group_fuzz import Fuzz
from tests.differential.group_twins import Twins
from tests.java.group_shards import GroupShards
from tests.support.consumer_world import ChangingTopics

STEPS = 150


@pytest.fixture(scope="module")
def shards() -> Iterator[GroupShards]:
    """A Java process that is shared: shards begin anew in it."""
    running = GroupShards()
    yield running
    running.close()


def _topics() -> ChangingTopics:
    return ChangingTopics(apples=4, pears=3, plums=2)


@pytest.mark.parametrize("seed", range(30))
def test_members_of_the_new_protocol_are_served_alike(shards: GroupShards, seed: int) -> None:
    Fuzz(seed, Twins(shards, _topics(), 1000), names_min=1).run(STEPS)


@pytest.mark.parametrize("seed", range(30))
def test_regular_expressions_are_served_alike(shards: GroupShards, seed: int) -> None:
    Fuzz(seed, Twins(shards, _topics(), 0), with_regex=True).run(STEPS)


@pytest.mark.parametrize("seed", range(30))
def test_members_of_both_protocols_are_served_alike(shards: GroupShards, seed: int) -> None:
    Fuzz(seed, Twins(shards, _topics(), 0), with_classic=True, with_regex=True).run(STEPS)

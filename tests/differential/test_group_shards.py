"""Whatever members do, our group coordinator decides what Apache Kafka's decides."""

import random

import pytest
from tests.differential.group_fuzz import Fuzz
from tests.differential.group_twins import Twins
from tests.java.group_shards import GroupShards
from tests.java.oracle import Oracle
from tests.java.rounds import rounds
from tests.support.consumer_world import ChangingTopics

from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

STEPS = 150


@pytest.fixture
def shards(oracle: Oracle) -> GroupShards:
    return GroupShards(oracle)


def _topics() -> ChangingTopics:
    return ChangingTopics(apples=4, pears=3, plums=2)


@pytest.mark.parametrize("seed", rounds(10, 30))
def test_members_of_the_new_protocol_are_served_alike(shards: GroupShards, seed: int) -> None:
    Fuzz(seed, Twins(shards, _topics(), 1000), names_min=1).run(STEPS)


@pytest.mark.parametrize("seed", rounds(10, 30))
def test_regular_expressions_are_served_alike(shards: GroupShards, seed: int) -> None:
    Fuzz(seed, Twins(shards, _topics(), 0), with_regex=True).run(STEPS)


@pytest.mark.parametrize("seed", rounds(10, 30))
def test_members_of_both_protocols_are_served_alike(shards: GroupShards, seed: int) -> None:
    Fuzz(seed, Twins(shards, _topics(), 0), with_classic=True, with_regex=True).run(STEPS)


@pytest.mark.parametrize("seed", rounds(10, 20))
def test_members_of_share_groups_are_served_alike(shards: GroupShards, seed: int) -> None:
    """With one partition, so that nothing depends on the order in which Kafka's hash tables give members."""
    rng = random.Random(seed)
    topics = ChangingTopics(apples=1)
    twins = Twins(shards, topics, 0, {"group.share.assignment.interval.ms": "1000"})
    epochs: dict[tuple[str, str], int] = {}
    for _ in range(STEPS):
        group, member = rng.choice("gh"), rng.choice("abcd")
        epoch = epochs.get((group, member), 0)
        match rng.choice(["beat", "beat", "beat", "beat", "odd", "leave", "time", "grow", "classic"]):
            case "odd":
                epoch = rng.choice((0, epoch - 1, epoch + 1))
            case "leave":
                epoch = -1
            case "time":
                twins.advance(rng.choice((10, 1100, 30_000)))
                continue
            case "grow":
                name = rng.choice(("pears", "plums"))
                if name in topics.facts:
                    topics.delete(name)
                else:
                    topics.create(name, 1)
                twins.change_topics(name, has_new=name in topics.facts)
                continue
            case "classic" if rng.random() < 0.2:
                twins.ask(ConsumerGroupHeartbeatRequest(
                    group_id=group, member_id="x", member_epoch=0, rebalance_timeout_ms=1000,
                    subscribed_topic_names=("apples",), topic_partitions=(),
                ), 1, "client")  # fmt: skip
                continue
        says = epoch == 0 or rng.random() < 0.2
        names = rng.choice((("apples",), ("apples", "ghost"))) if says else None
        answer = twins.ask(
            ShareGroupHeartbeatRequest(
                group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=names
            ),
            1,
            f"client-{member}",
        )
        epochs[group, member] = max(answer.member_epoch, 0)

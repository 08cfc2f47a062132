"""How a consumer is: the sentence follows from the facts, and no broker is asked."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.health import CLOSED, ConsumerHealth, GroupHealth, PartitionHealth
from ottla.model.ids import TopicPartition

GROUP = GroupHealth(
    group_id="g",
    member_id="m",
    is_member=True,
    is_rebalancing=False,
    heard_s_ago=1.0,
    error=None,
    silence_s=0.5,
    session_timeout_s=45.0,
    max_poll_interval_s=300.0,
)
P0 = PartitionHealth("t", 0, position=5, end=8, fetched_s_ago=2.0, waiting_s=0.1, is_paused=False)
P1 = PartitionHealth("t", 1, position=1, end=1, fetched_s_ago=0.2, waiting_s=None, is_paused=True)
WELL = ConsumerHealth(
    is_open=True,
    group=GROUP,
    partitions=(P0, P1),
    polled_s_ago=0.5,
    last_error="it was dark",
    last_error_s_ago=100.0,
    failure=None,
    fetch_timeout_s=30.5,
)


@pytest.mark.parametrize(
    ("health", "is_healthy", "sentence"),
    [
        (WELL, True, "it reads 2 partitions as a member of group 'g', 3 offsets behind"),
        (replace(WELL, group=None, partitions=(P1,)), True, "it reads 1 partition, 0 offsets behind"),
        (
            replace(WELL, group=None, partitions=(P0, replace(P1, end=None))),
            True,
            "it reads 2 partitions, how far it is behind is not known yet",
        ),
        (replace(WELL, partitions=()), True, "it is a member of group 'g', which gave it no partitions"),
        (
            replace(WELL, partitions=(), group=None),
            True,
            "it reads nothing: neither subscribe nor assign named partitions",
        ),
        (replace(WELL, group=replace(GROUP, is_member=False)), True, "it is joining group 'g'"),
        # Members send no heartbeats while they wait for the others.
        (
            replace(WELL, group=replace(GROUP, is_rebalancing=True, heard_s_ago=200.0)),
            True,
            "group 'g' is rebalancing",
        ),
        (CLOSED, False, "the consumer is not open"),
        (replace(WELL, failure="no right"), False, "the next poll raises an error: no right"),
        (
            replace(WELL, group=replace(GROUP, is_member=False, error="no broker")),
            False,
            "it cannot join group 'g': no broker",
        ),
        (
            replace(WELL, group=replace(GROUP, silence_s=301.0)),
            False,
            (
                "poll was not called for 301 s, longer than max.poll.interval.ms (300 s): "
                "group 'g' gives its partitions to others"
            ),
        ),
        (
            replace(WELL, group=replace(GROUP, heard_s_ago=46.0, error="no broker")),
            False,
            (
                "the coordinator of group 'g' has not answered for 46 s, longer than session.timeout.ms "
                "(45 s): others may have its partitions; the last error: no broker"
            ),
        ),
        (
            replace(WELL, partitions=(replace(P0, waiting_s=31.0), replace(P1, waiting_s=32.0))),
            False,
            "no broker has answered a fetch of t-1 and 1 more for 32 s; the last error: it was dark",
        ),
    ],
)
def test_the_sentence_follows_from_the_facts(health: ConsumerHealth, is_healthy: bool, sentence: str) -> None:
    assert (health.is_healthy, health.sentence) == (is_healthy, sentence)


def test_all_of_it_can_be_written_as_json() -> None:
    told = json.loads(json.dumps(WELL.as_json()))
    assert told["is_healthy"]
    assert told["is_member"]
    assert (told["lag"], told["fetched_s_ago"]) == (3, 0.2)
    assert [part["lag"] for part in told["partitions"]] == [3, 0]
    assert told["group"]["member_id"] == "m"


def test_what_was_taken_and_not_handed_over_counts_as_lag() -> None:
    assert WELL.read_again_from({TopicPartition("t", 0): 2}).lag == 6


def test_a_consumer_that_is_not_open_says_so() -> None:
    async def scene() -> ConsumerHealth:
        return Consumer("nowhere:1").health()

    health = asyncio.run(scene())
    assert (health.is_healthy, health.sentence) == (False, "the consumer is not open")


def test_who_waits_long_for_records_goes_on_asking() -> None:
    class Member:
        """Stands for a membership that counts how often it is asked for records."""

        needs_work = False

        def __init__(self) -> None:
            self.times = 0
            self.was_asked_again = asyncio.Event()

        def polled(self, _now_s: float) -> None:
            self.times += 1
            if self.times == 3:
                self.was_asked_again.set()

        async def is_free(self, _deadline_s: float) -> bool:
            return True

    class NoFetcher:
        """Stands for a fetcher to which nothing comes."""

        failure = None

    async def scene() -> None:
        settings: dict[str, Any] = {"group_protocol": "consumer", "max_poll_interval_ms": 30}
        consumer = Consumer("nowhere:1", group_id="g", enable_auto_commit=False, **settings)
        member = Member()
        doors: Any = consumer
        doors._membership, doors._fetcher = member, NoFetcher()
        polling = asyncio.create_task(consumer.poll(timeout_ms=3_600_000))
        try:
            async with asyncio.timeout(30):
                await member.was_asked_again.wait()
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    asyncio.run(scene())

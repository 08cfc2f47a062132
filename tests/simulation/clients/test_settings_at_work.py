"""What settings do while a broker is away, or nothing else happens."""

import asyncio
from typing import Any

import pytest
from tests.simulation.clients.cutting import Stage
from tests.simulation.clients.test_hard_times import cut_off, let_in, tell

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError, RequestTimedOut
from ottla.model.ids import TopicPartition


@pytest.mark.parametrize(
    "call", ["commit", "committed", "end_offsets", "offsets_for_times", "partitions_for"]
)
def test_a_call_of_a_consumer_takes_no_longer_than_it_may(call: str) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        where = TopicPartition(topic, 0)
        async with Consumer(stage.bootstrap, group_id="g", default_api_timeout_ms=3_000) as consumer:
            arguments: dict[str, Any] = {
                "commit": {where: 1},
                "committed": [where],
                "end_offsets": [where],
                "offsets_for_times": {where: 0},
                "partitions_for": topic,
            }
            await getattr(consumer, call)(arguments[call])
            stage.network.cut(stage.node.machine.host, stage.loop.machine.host)
            began_s = stage.loop.time()
            with pytest.raises(RequestTimedOut, match=r"default\.api\.timeout\.ms"):
                await getattr(consumer, call)(arguments[call])
            assert stage.loop.time() - began_s == pytest.approx(3, abs=0.1)
            stage.network.mend_all()
            await getattr(consumer, call)(arguments[call])

    tell(story)


def test_a_client_pauses_between_tries_as_it_is_set() -> None:
    async def story(stage: Stage) -> None:
        tries = 0
        settings: dict[str, Any] = {"retry_backoff_ms": 4_000, "retry_backoff_max_ms": 4_000}
        async with Admin(stage.bootstrap, default_api_timeout_ms=20_000, **settings) as admin:
            open_now = admin._cluster._open

            async def count(address: Any) -> Any:
                nonlocal tries
                tries += 1
                return await open_now(address)

            admin._cluster._open = count  # type: ignore[method-assign]
            cut_off(stage)
            stage.network.reset(stage.loop.machine.host)
            await asyncio.sleep(1)
            with pytest.raises(ClientError):
                await admin.topics.list()
            let_in(stage)
        # Each try asks the node that is known, and the address that was given.
        assert 2 <= tries <= 2 * 6

    tell(story)


def test_an_admin_client_learns_where_the_brokers_are_from_time_to_time() -> None:
    async def story(stage: Stage) -> None:
        for age_ms, is_asked in ((300_000, False), (2_000, True)):
            async with Admin(stage.bootstrap, metadata_max_age_ms=age_ms) as admin:
                await admin.groups.list()
                asked = False

                async def look(_connection: object) -> None:
                    nonlocal asked
                    asked = True

                admin._cluster._look_around_from = look  # type: ignore[method-assign,assignment]
                await asyncio.sleep(3)
                await admin.cluster.describe()
                await asyncio.sleep(1)
                assert asked is is_asked

    tell(story)

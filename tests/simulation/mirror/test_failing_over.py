"""Copies become writable by one command, which says what was not copied."""

import json
from collections.abc import Collection
from typing import Any

import pytest
from tests.simulation.mirror.world import (
    Clients,
    TwoClusters,
    are_equal,
    open_transaction,
    until,
    values,
    write,
    write_transaction,
)

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.mirror import failing_over
from ottla.mirror.copies import find_copies, read_statuses
from ottla.mirror.failing_over import FailedOver, UnknownLoss
from ottla.mirror.halting import ALL_CONFIGS, NoMirror, mirrored_topics
from ottla.mirror.mirroring import STATUS_TOPIC
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ConfigSource, ResourceType

PAYMENTS = TopicPartition("payments", 0)
SECOND = TopicPartition("payments", 1)
ORDERS = TopicPartition("orders", 0)


async def fail_over(
    admin: Admin, topics: list[str], statuses: list[dict[str, Any]], accepted: Collection[str] = ()
) -> list[FailedOver]:
    return await failing_over.fail_over(admin, topics, statuses, surroundings.now_ms(), accepted)


def test_copies_of_topics_that_were_made_again_or_are_gone_do_not_become_writable_unasked() -> None:
    async def story(clients: Clients) -> None:
        names = ("payments", "orders", "fine")
        for name in names:
            await clients.source.topics.create(name)
            await write(clients.source_bootstrap, TopicPartition(name, 0), [b"a", b"b"])
        async with clients.mirroring(clients.link()):
            for name in names:
                await until(lambda name=name: are_equal(clients, TopicPartition(name, 0)))  # type: ignore[misc]
        for name in ("payments", "orders"):
            await clients.source.topics.delete(name)
        await clients.source.topics.create("payments")
        async with clients.mirroring(clients.link()):
            await until(lambda: are_unknown(clients, {"payments", "orders"}))
            statuses = await read_statuses({"bootstrap.servers": clients.target_bootstrap})
        with pytest.raises(UnknownLoss, match=r"orders-0: .* any more.*payments-0: .*made again"):
            await fail_over(clients.target, [], statuses)
        with pytest.raises(UnknownLoss, match=r"--accept-unknown orders$"):
            await fail_over(clients.target, [], statuses, ["payments"])
        assert set(await mirrored_topics(clients.target)) == set(names), "all of them or none"
        failed_over = await fail_over(clients.target, [], statuses, ["payments", "orders"])
        assert {item.where.topic: item.lost for item in failed_over} == {
            "fine": 0,
            "orders": None,
            "payments": None,
        }
        assert await mirrored_topics(clients.target) == {}
        # Nothing is left that would say how the topic was mirrored.
        described = await clients.target.configs.describe(ResourceType.TOPIC, "payments")
        set_on_it = {name for name, item in described.items() if item.source is ConfigSource.TOPIC}
        assert not set_on_it & set(ALL_CONFIGS)

    async def are_unknown(clients: Clients, topics: set[str]) -> bool:
        statuses = await read_statuses({"bootstrap.servers": clients.target_bootstrap})
        copies = await find_copies(clients.target, statuses, surroundings.now_ms())
        return {copy.topic for copy in copies if copy.lag is None} == topics

    TwoClusters().run(story)


def test_a_copy_becomes_writable_and_what_is_open_in_it_is_aborted() -> None:
    async def story(clients: Clients) -> None:
        target = clients.target_bootstrap
        await clients.source.topics.create("payments", partitions=2)
        await clients.source.topics.create("orders")
        await clients.target.topics.create("own")
        await write(clients.source_bootstrap, PAYMENTS, [b"a", b"b"])
        await write_transaction(clients.source_bootstrap, SECOND, [b"c"], commits=True)
        async with (
            open_transaction(clients.source_bootstrap, PAYMENTS, b"open"),
            clients.mirroring(clients.link()) as mirroring,
        ):
            for where in (PAYMENTS, SECOND, ORDERS):
                await until(lambda where=where: are_equal(clients, where))  # type: ignore[misc]
            await until(lambda: tells(clients, 3))
            mirrors = {"payments": "there", "orders": "there"}
            assert await mirrored_topics(clients.target) == mirrors
            (status,) = await read_statuses({"bootstrap.servers": target})
            assert status["source"] == "there"
            assert {part["topic"]: part["lag"] for part in status["partitions"]} == dict.fromkeys(mirrors, 0)
            failed_over = await fail_over(clients.target, ["payments"], [status])
            assert [(item.where, item.end_offset, item.lost, item.aborted) for item in failed_over] == [
                # The marker that aborts is one more in the copy, and nothing is lost.
                (PAYMENTS, 4, 0, 1),
                (SECOND, 2, 0, 0),
            ]
            assert all((item.source_silent_s or 0) < 10 for item in failed_over)
            assert await mirrored_topics(clients.target) == {"orders": "there"}
            await write(target, PAYMENTS, [b"mine"])
            assert await values(target, PAYMENTS) == [b"a", b"b", b"mine"]
            with pytest.raises(NoMirror, match="topic 'payments' is not a mirror"):
                await fail_over(clients.target, ["payments"], [status])
            assert mirroring.progress.partitions[ORDERS].error is None
            # Without names, all that are mirrors.
            with pytest.raises(UnknownLoss, match="nothing was made writable"):
                await fail_over(clients.target, [], [])
            assert [item.where for item in await fail_over(clients.target, [], [status])] == [ORDERS]

    async def tells(clients: Clients, partitions: int) -> bool:
        statuses = await read_statuses({"bootstrap.servers": clients.target_bootstrap})
        return any(
            len(status["partitions"]) == partitions and all(part["lag"] == 0 for part in status["partitions"])
            for status in statuses
        )

    TwoClusters().run(story)


@pytest.mark.parametrize(("source_end", "lost"), [(9, 4), (5, 0), (4, 0), (0, 0), (-1, None), (None, None)])
def test_what_was_not_copied_is_counted_or_has_to_be_accepted(
    source_end: int | None, lost: int | None
) -> None:
    async def story(clients: Clients) -> None:
        await clients.target.topics.create("payments")
        await write(clients.target_bootstrap, PAYMENTS, [b"%d" % number for number in range(5)])
        await clients.target.topics.create("orders", configs={"ottla.mirror.source": "there"})
        mark = {"ottla.mirror.source": "there"}
        await clients.target.configs.alter(ResourceType.TOPIC, "payments", mark)
        now_ms = surroundings.now_ms()
        parts = []
        if source_end is not None:
            known = {"source_end": source_end, "lag": None if lost is None else lost, "seen_at_ms": now_ms}
            parts.append({"topic": "payments", "partition": 0, **known})
        status = {"source": "there", "at_ms": now_ms, "partitions": parts}
        if lost is None:
            with pytest.raises(UnknownLoss, match=r"payments-0: .*--accept-unknown payments$"):
                await fail_over(clients.target, ["payments"], [status], ["orders"])
            assert set(await mirrored_topics(clients.target)) == {"payments", "orders"}
        failed_over = await fail_over(
            clients.target, ["payments"], [status], ["payments"] if lost is None else []
        )
        assert [(item.where, item.end_offset, item.lost) for item in failed_over] == [(PAYMENTS, 5, lost)]
        # What was not named stays a mirror.
        assert await mirrored_topics(clients.target) == {"orders": "there"}

    TwoClusters().run(story)


def test_the_last_status_of_each_source_counts() -> None:
    async def story(clients: Clients) -> None:
        bootstrap = clients.target_bootstrap
        properties = {"bootstrap.servers": bootstrap}
        assert await read_statuses(properties) == []
        assert [item.name for item in await clients.target.topics.list()] == [], "looking makes no topic"
        assert await mirrored_topics(clients.target) == {}
        await clients.target.topics.create(STATUS_TOPIC)
        assert await read_statuses(properties) == []
        async with Producer(bootstrap) as producer:
            for source, number in (("b", 1), ("a", 2), ("b", 3)):
                value = json.dumps({"source": source, "number": number}).encode()
                await producer.send(STATUS_TOPIC, value, key=source)
            await producer.send(STATUS_TOPIC, None, key="a")
        assert await read_statuses(properties) == [
            {"source": "a", "number": 2},
            {"source": "b", "number": 3},
        ]

    TwoClusters().run(story)

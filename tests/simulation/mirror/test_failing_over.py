"""Copies become writable by one command, which says what was not copied."""

import json

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

from ottla.client.producer import Producer
from ottla.mirror.failing_over import FailedOver, NoMirror, fail_over, mirrored_topics, read_statuses
from ottla.mirror.mirroring import STATUS_TOPIC
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType

PAYMENTS = TopicPartition("payments", 0)
SECOND = TopicPartition("payments", 1)
ORDERS = TopicPartition("orders", 0)


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
            assert failed_over == [
                # The marker that aborts is one more in the copy, and nothing is lost.
                FailedOver(PAYMENTS, 4, 0, 1),
                FailedOver(SECOND, 2, 0, 0),
            ]
            assert await mirrored_topics(clients.target) == {"orders": "there"}
            await write(target, PAYMENTS, [b"mine"])
            assert await values(target, PAYMENTS) == [b"a", b"b", b"mine"]
            with pytest.raises(NoMirror, match="topic 'payments' is not a mirror"):
                await fail_over(clients.target, ["payments"], [status])
            assert mirroring.progress.partitions[ORDERS].error is None
            # Without names, all that are mirrors.
            assert [item.where for item in await fail_over(clients.target, [], [])] == [ORDERS]

    async def tells(clients: Clients, partitions: int) -> bool:
        statuses = await read_statuses({"bootstrap.servers": clients.target_bootstrap})
        return any(
            len(status["partitions"]) == partitions and all(part["lag"] == 0 for part in status["partitions"])
            for status in statuses
        )

    TwoClusters().run(story)


@pytest.mark.parametrize(("source_end", "lost"), [(9, 4), (5, 0), (4, 0), (0, 0), (-1, None), (None, None)])
def test_what_was_not_copied_is_counted(source_end: int | None, lost: int | None) -> None:
    async def story(clients: Clients) -> None:
        await clients.target.topics.create("payments")
        await write(clients.target_bootstrap, PAYMENTS, [b"%d" % number for number in range(5)])
        await clients.target.topics.create("orders", configs={"ottla.mirror.source": "there"})
        mark = {"ottla.mirror.source": "there"}
        await clients.target.configs.alter(ResourceType.TOPIC, "payments", mark)
        parts = [{"topic": "payments", "partition": 1, "source_end": 77}]
        if source_end is not None:
            parts.append({"topic": "payments", "partition": 0, "source_end": source_end})
        failed_over = await fail_over(clients.target, ["payments"], [{"partitions": parts}])
        assert failed_over == [FailedOver(PAYMENTS, 5, lost, 0)]
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

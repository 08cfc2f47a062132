"""Exact copies: the same offsets and batches, whatever moves, breaks or is removed meanwhile."""

import asyncio
from typing import Any

import pytest
from tests.simulation.mirror.world import (
    Clients,
    TwoClusters,
    are_equal,
    content,
    open_transaction,
    until,
    values,
    write,
    write_transaction,
)

from ottla.client.admin.topics import NewTopic
from ottla.client.errors import BrokerError
from ottla.client.fetching import FetchedPartition, fetch_from
from ottla.client.producer import Producer
from ottla.mirror import copying, halting
from ottla.mirror.copies import read_statuses
from ottla.mirror.mirroring import Mirroring
from ottla.mirror.progress import PartitionProgress
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

PAYMENTS = TopicPartition("payments", 0)
SECOND = TopicPartition("payments", 1)


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


async def progress_with(mirroring: Mirroring, where: TopicPartition, error: str) -> PartitionProgress:
    """Wait until a partition has an error."""

    async def has_error() -> bool:
        part = mirroring.progress.partitions.get(where)
        return part is not None and error in (part.error or "")

    await until(has_error, lambda: mirroring.progress)
    return mirroring.progress.partitions[where]


def test_plain_and_compressed_batches_and_transactions_of_all_ends_have_the_same_offsets() -> None:
    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.source.topics.create("payments", partitions=2)
        await write(source, PAYMENTS, numbered(0, 20), compression_type="lz4")
        await write_transaction(source, PAYMENTS, [b"a", b"b"], commits=False)
        await write_transaction(source, PAYMENTS, [b"c", b"d"], commits=True)
        await write(source, SECOND, [b"other"])
        async with (
            open_transaction(source, PAYMENTS, b"open"),
            clients.mirroring(clients.link()) as mirroring,
        ):
            await until(lambda: are_equal(clients, PAYMENTS))
            await until(lambda: are_equal(clients, SECOND))
            await write(source, SECOND, [b"later"])
            await until(lambda: are_equal(clients, SECOND))
            part, (_, end, batches) = (
                mirroring.progress.partitions[PAYMENTS],
                await content(source, PAYMENTS),
            )
            assert (part.copied_to, part.source_start, part.source_end) == (end, 0, end)
            assert (part.lag, part.records_skipped, part.error) == (0, 0, None)
            # Of each batch the leader epoch is left out.
            assert len(batches) < part.bytes_copied < 2 * len(batches)
            assert (mirroring.progress.error, mirroring.progress.errors) == (None, 0)
        assert await values(clients.target_bootstrap, PAYMENTS) == [*numbered(0, 20), b"c", b"d"]

    TwoClusters().run(story)


def test_a_mirror_that_starts_again_goes_on_at_the_end_of_the_copy() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        for first in (0, 5):
            await write(clients.source_bootstrap, PAYMENTS, numbered(first, 5))
            async with clients.mirroring(clients.link()) as mirroring:
                await until(lambda: are_equal(clients, PAYMENTS))
                await until(lambda first=first: is_told(clients, first + 5))  # type: ignore[misc]
        part = mirroring.progress.partitions[PAYMENTS]
        assert (part.copied_to, part.records_skipped, part.error) == (10, 0, None)

    async def is_told(clients: Clients, copied_to: int) -> bool:
        statuses = await read_statuses({"bootstrap.servers": clients.target_bootstrap})
        return [part["copied_to"] for status in statuses for part in status["partitions"]] == [copied_to]

    TwoClusters().run(story)


def test_what_the_source_removed_before_it_was_copied_is_skipped_and_counted() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 10))
        (await clients.source.records.delete({PAYMENTS: 4})).check()
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            part = mirroring.progress.partitions[PAYMENTS]
            assert (part.records_skipped, part.error, part.copied_to) == (4, None, 10)
        assert (await content(clients.target_bootstrap, PAYMENTS))[:2] == (4, 10)

    TwoClusters().run(story)


def test_a_copy_that_is_ahead_of_its_source_waits_for_an_operator_whoever_mirrors() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 6))
        async with clients.mirroring(clients.link()):
            await until(lambda: are_equal(clients, PAYMENTS))
        await make_again(clients, 5)
        # Its end alone tells, if nobody knows which topic was copied.
        await clients.target.configs.alter(ResourceType.TOPIC, "payments", {halting.TOPIC_ID_CONFIG: None})
        async with clients.mirroring(clients.link()) as mirroring:
            part = await progress_with(mirroring, PAYMENTS, "the source has lost records")
            assert "ends at 6, but the source at 5" in (part.error or "")
            assert (part.records_skipped, part.lag) == (0, None)
            # That the source is as far as the copy again does not mean that it has the same records.
            await write(clients.source_bootstrap, PAYMENTS, numbered(5, 3))
            await asyncio.sleep(3)
            assert mirroring.progress.partitions[PAYMENTS].lag is None
        async with clients.mirroring(clients.link()) as mirroring:
            await progress_with(mirroring, PAYMENTS, "the source has lost records")
            await asyncio.sleep(3)
            assert await end_of_copy(clients) == 6
            await halting.resume(clients.target, ["payments"])
            await until(lambda: is_copied_to(clients, 8), lambda: mirroring.progress)
            assert mirroring.progress.partitions[PAYMENTS].error is None

    TwoClusters().run(story)


def test_records_of_a_topic_that_was_made_again_are_not_appended_to_the_copy_of_another_one() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 6))
        async with clients.mirroring(clients.link()):
            await until(lambda: are_equal(clients, PAYMENTS))
        await make_again(clients, 9)
        for _ in range(2):
            async with clients.mirroring(clients.link()) as mirroring:
                part = await progress_with(mirroring, PAYMENTS, "was deleted and made again")
                await asyncio.sleep(3)
                assert (part.lag, part.error is None) == (None, False)
        assert await end_of_copy(clients) == 6
        async with clients.mirroring(clients.link()) as mirroring:
            await progress_with(mirroring, PAYMENTS, "was deleted and made again")
            # Whoever deletes the copy gets the other topic from its beginning.
            await clients.target.topics.delete("payments")
            await until(lambda: are_equal(clients, PAYMENTS), lambda: mirroring.progress)

    TwoClusters().run(story)


def test_a_topic_that_is_made_again_between_two_looks_is_noticed_before_anything_is_copied() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 6))
        async with clients.mirroring(clients.link(refresh_s=600)) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            await make_again(clients, 9)
            await progress_with(mirroring, PAYMENTS, "was deleted and made again")
            await asyncio.sleep(3)
        assert await end_of_copy(clients) == 6

    TwoClusters().run(story)


def test_a_copy_whose_topic_is_gone_is_not_said_to_have_everything() -> None:
    async def story(clients: Clients) -> None:
        for name in ("payments", "orders"):
            await clients.source.topics.create(name)
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 6))
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            await clients.source.topics.delete("payments")
            part = await progress_with(mirroring, PAYMENTS, "the source has no topic 'payments' any more")
            assert part.lag is None
            assert mirroring.progress.partitions[TopicPartition("orders", 0)].error is None

    TwoClusters().run(story)


def test_a_copy_that_is_deleted_meanwhile_is_made_again_from_its_beginning() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 6))
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            await clients.target.topics.delete("payments")
            await until(lambda: is_there(clients))
            await write(clients.source_bootstrap, PAYMENTS, numbered(6, 1))
            await until(lambda: are_equal(clients, PAYMENTS), lambda: mirroring.progress)

    async def is_there(clients: Clients) -> bool:
        return "payments" in {item.name for item in await clients.target.topics.list()}

    TwoClusters().run(story)


async def make_again(clients: Clients, count: int) -> None:
    """Have another topic of the same name in the source, with as many records."""
    await clients.source.topics.delete("payments")
    await clients.source.topics.create("payments")
    await write(clients.source_bootstrap, PAYMENTS, [b"other"] * count)


async def end_of_copy(clients: Clients) -> int:
    return (await content(clients.target_bootstrap, PAYMENTS))[1]


async def is_copied_to(clients: Clients, end: int) -> bool:
    return await end_of_copy(clients) == end


@pytest.mark.parametrize("moved", ["source", "target"])
def test_copying_goes_on_when_a_leader_moves(moved: str) -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create_many([on(clients, "source", 0)])
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        # The link makes the copy where it likes. To have it on one node, it is made beforehand.
        mark = {"ottla.mirror.source": "there"}
        await clients.target.topics.create_many([on(clients, "target", 0, mark)])
        async with clients.mirroring(clients.link(refresh_s=600)) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            admin = clients.source if moved == "source" else clients.target
            other = node_ids(clients, moved)[1]
            (await admin.replicas.reassign({PAYMENTS: [other]})).check()
            await until(lambda: is_led_by(admin, other))
            await write(clients.source_bootstrap, PAYMENTS, numbered(5, 5))
            await until(lambda: are_equal(clients, PAYMENTS), lambda: mirroring.progress)
            part = mirroring.progress.partitions[PAYMENTS]
            assert (part.error, part.records_skipped, part.copied_to) == (None, 0, 10)

    async def is_led_by(admin: Any, node_id: int) -> bool:
        (partition,) = (await admin.topics.describe("payments")).partitions
        return partition.leader == node_id and len(partition.replicas) == 1

    def node_ids(clients: Clients, which: str) -> list[int]:
        cluster = clients.clusters.source if which == "source" else clients.clusters.target
        return [node.node_id for node in cluster]

    def on(clients: Clients, which: str, place: int, configs: dict[str, str] | None = None) -> NewTopic:
        return NewTopic("payments", assignment={0: [node_ids(clients, which)[place]]}, configs=configs or {})

    nodes = (2, 1) if moved == "source" else (1, 2)
    TwoClusters(*nodes).run(story)


def test_while_a_cluster_is_away_the_mirror_waits_for_it() -> None:
    clusters = TwoClusters()

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        async with clients.mirroring(clients.link()) as mirroring:
            for number, cluster in enumerate((clusters.target, clusters.source)):
                await until(lambda: are_equal(clients, PAYMENTS), lambda: mirroring.progress)
                cluster.nodes[0].kill()
                await until(lambda: has_error(mirroring), lambda: mirroring.progress)
                cluster.nodes[0].switch_on()
                await until(lambda cluster=cluster: serves(cluster))  # type: ignore[misc]
                await write(clients.source_bootstrap, PAYMENTS, numbered(5 + number, 1))
            await until(lambda: are_equal(clients, PAYMENTS), lambda: mirroring.progress)
            await until(lambda: works(mirroring), lambda: mirroring.progress)
            assert mirroring.progress.last_error is not None
            assert mirroring.progress.partitions[PAYMENTS].copied_to == 7

    async def serves(cluster: SimulatedCluster) -> bool:
        return len(cluster.serving) == 1

    async def has_error(mirroring: Mirroring) -> bool:
        return mirroring.progress.error is not None

    async def works(mirroring: Mirroring) -> bool:
        return mirroring.progress.error is None

    clusters.run(story)


def test_a_mirror_begins_when_the_clusters_are_there_and_ends_also_without_them() -> None:
    clusters = TwoClusters()

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        clusters.target.nodes[0].kill()
        async with clients.mirroring(clients.link()):
            await asyncio.sleep(3)
        async with clients.mirroring(clients.link()) as mirroring:
            await asyncio.sleep(3)
            assert mirroring.progress.partitions == {}
            clusters.target.nodes[0].switch_on()
            await until(lambda: are_equal(clients, PAYMENTS))

    clusters.run(story)


def test_a_copy_that_was_made_writable_is_left_alone() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        async with clients.mirroring(clients.link(refresh_s=600)) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            change = {"ottla.mirror.source": None}
            await clients.target.configs.alter(ResourceType.TOPIC, "payments", change)
            await write(clients.source_bootstrap, PAYMENTS, [b"late"])
            await progress_with(mirroring, PAYMENTS, "is not a mirror any more")
        assert await values(clients.target_bootstrap, PAYMENTS) == numbered(0, 5)
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: is_refused(mirroring))
            assert mirroring.progress.partitions == {}

    async def is_refused(mirroring: Mirroring) -> bool:
        return "it is not a mirror of there" in mirroring.progress.topic_errors.get("payments", "")

    TwoClusters().run(story)


def test_a_producer_cannot_write_to_a_copy() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, [b"theirs"])
        async with clients.mirroring(clients.link()):
            await until(lambda: are_equal(clients, PAYMENTS))
        async with Producer(clients.target_bootstrap) as producer:
            with pytest.raises(BrokerError) as refused:
                await (await producer.send("payments", b"mine", partition=0))
        assert refused.value.error_code is ErrorCode.POLICY_VIOLATION

    TwoClusters().run(story)


class Answers:
    """What the source answers: changed by a test, or as it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: dict[TopicPartition, dict[str, Any]] = {}
        monkeypatch.setattr(copying, "fetch_from", self._fetch_from)

    async def _fetch_from(self, *args: Any, **options: Any) -> list[FetchedPartition]:
        found = await fetch_from(*args, **options)
        return [item._replace(**self.changes.get(item.where, {})) for item in found]


def test_damaged_bytes_stop_one_partition_and_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    answers.changes[PAYMENTS] = {"records": memoryview(bytes(100))}

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments", partitions=2)
        for where in (PAYMENTS, SECOND):
            await write(clients.source_bootstrap, where, numbered(0, 5))
        async with clients.mirroring(clients.link()) as mirroring:
            await progress_with(mirroring, PAYMENTS, "payments-0 has damaged bytes at or after 0")
            await until(lambda: are_equal(clients, SECOND))
            assert (await content(clients.target_bootstrap, PAYMENTS))[1] == 0
            answers.changes.clear()
            await until(lambda: are_equal(clients, PAYMENTS))

    TwoClusters().run(story)


def test_a_source_that_refuses_one_partition_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers(monkeypatch)
    answers.changes[PAYMENTS] = {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments", partitions=2)
        for where in (PAYMENTS, SECOND):
            await write(clients.source_bootstrap, where, numbered(0, 5))
        async with clients.mirroring(clients.link()) as mirroring:
            part = await progress_with(mirroring, PAYMENTS, "TOPIC_AUTHORIZATION_FAILED")
            assert part.error == "the source refuses payments-0: TOPIC_AUTHORIZATION_FAILED"
            await until(lambda: are_equal(clients, SECOND))
            answers.changes.clear()
            await until(lambda: are_equal(clients, PAYMENTS))

    TwoClusters().run(story)


def test_an_error_of_one_partition_leaves_no_hole_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    answers.changes[SECOND] = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments", partitions=2)
        for where in (PAYMENTS, SECOND):
            await write(clients.source_bootstrap, where, numbered(0, 5))
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS), lambda: mirroring.progress)
            answers.changes.clear()
            await write(clients.source_bootstrap, PAYMENTS, numbered(5, 5))
            for where in (PAYMENTS, SECOND):
                await until(lambda where=where: are_equal(clients, where), lambda: mirroring.progress)  # type: ignore[misc]

    TwoClusters().run(story)

"""MirrorMaker 2's way: each committed record once, positions beside them, and offsets translated."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.simulation.mirror.test_exact_copies import PAYMENTS, SECOND, numbered, progress_with
from tests.simulation.mirror.world import (
    Clients,
    TwoClusters,
    client_of,
    commit,
    committed,
    until,
    values,
    write,
    write_transaction,
)

from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.fetching import FetchedPartition, IsolationLevel, fetch_from
from ottla.client.producer import Producer
from ottla.mirror.maker import forwarding
from ottla.mirror.maker.formats import (
    Checkpoint,
    OffsetSync,
    decode_checkpoint,
    decode_offset_sync,
    encode_checkpoint,
    encode_source_offset,
)
from ottla.mirror.maker.own_topics import KeptRecord, partitions_of, read_committed, read_positions
from ottla.mirror.mirroring import Mirroring
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

COPY = TopicPartition("A.payments", 0)
SECOND_COPY = TopicPartition("A.payments", 1)
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


async def has(clients: Clients, copy: TopicPartition, expected: Sequence[bytes | None]) -> bool:
    return await values(clients.target_bootstrap, copy) == expected


async def reaches(clients: Clients, copy: TopicPartition, expected: Sequence[bytes | None]) -> None:
    """Wait until a copy has so many records. They have to be these."""

    async def has_so_many() -> bool:
        return len(await values(clients.target_bootstrap, copy)) >= len(expected)

    await until(has_so_many)
    assert await values(clients.target_bootstrap, copy) == expected


async def kept(bootstrap: str, topic: str) -> list[KeptRecord]:
    async with client_of(bootstrap) as cluster:
        return [record async for record in read_committed(cluster, await partitions_of(cluster, topic))]


async def positions(clients: Clients) -> dict[TopicPartition, int]:
    async with client_of(clients.target_bootstrap) as cluster:
        return await read_positions(cluster, await partitions_of(cluster, "mm2-offsets.A.internal"))


def test_committed_records_come_once_with_positions_syncs_and_heartbeats() -> None:
    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.source.topics.create("payments", partitions=2)
        await write(source, PAYMENTS, numbered(0, 5), compression_type="zstd")
        await write_transaction(source, PAYMENTS, [b"x", b"y"], commits=False)
        await write_transaction(source, PAYMENTS, [b"c", b"d"], commits=True)
        await write(source, SECOND, [b"other"])
        (link,) = clients.makers_links({"topics": "payments", "offset.storage.partitions": "3"})
        expected = [*numbered(0, 5), b"c", b"d"]
        async with clients.mirroring(link) as mirroring:
            await reaches(clients, COPY, expected)
            await reaches(clients, SECOND_COPY, [b"other"])
            await write(source, PAYMENTS, [b"later"])
            await reaches(clients, COPY, [*expected, b"later"])
            await until(lambda: positions_are(clients, {PAYMENTS: 12, SECOND: 1}))
            part = mirroring.progress.partitions[COPY]
            assert (part.copied_to, part.source_end, part.source_start, part.lag) == (12, 12, 0, 0)
            assert (part.error, part.records_skipped, mirroring.progress.error) == (None, 0, None)
            assert part.bytes_copied > 200
            await until(lambda: beats(clients))
        # The positions have as many partitions as was said, and are compacted.
        topic = await clients.target.topics.describe("mm2-offsets.A.internal")
        assert len(topic.partitions) == 3
        configs = await clients.target.configs.describe(ResourceType.TOPIC, "mm2-offsets.A.internal")
        assert configs["cleanup.policy"].value == "compact"
        syncs = [
            decode_offset_sync(*record[:2]) for record in await kept(source, "mm2-offset-syncs.B.internal")
        ]
        # Its marker lies between what was copied at once and what came later.
        assert OffsetSync(PAYMENTS, 0, 0) in syncs
        assert OffsetSync(PAYMENTS, 11, 8) in syncs
        assert OffsetSync(SECOND, 0, 0) in syncs

    async def positions_are(clients: Clients, expected: dict[TopicPartition, int]) -> bool:
        found = await positions(clients)
        return {where: offset for where, offset in found.items() if where.topic == "payments"} == expected

    async def beats(clients: Clients) -> bool:
        there = await values(clients.target_bootstrap, TopicPartition("heartbeats", 0))
        back = await values(clients.source_bootstrap, TopicPartition("heartbeats", 0))
        # Mirrored, they show the way that topics come.
        came = await values(clients.target_bootstrap, TopicPartition("A.heartbeats", 0))
        return len(there) > 1 and len(back) > 1 and len(came) > 1

    TwoClusters().run(story)


def test_aborted_records_are_copied_only_where_it_is_asked_for() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write_transaction(clients.source_bootstrap, PAYMENTS, [b"x", b"y"], commits=False)
        (link,) = clients.makers_links(
            {"topics": "payments", "A.consumer.isolation.level": "read_uncommitted"}
        )
        assert link.maker is not None
        assert link.maker.isolation is IsolationLevel.READ_UNCOMMITTED
        async with clients.mirroring(link):
            await reaches(clients, COPY, [b"x", b"y"])

    TwoClusters().run(story)


def test_a_mirror_that_starts_again_repeats_nothing_and_knows_what_lies_where() -> None:
    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.source.topics.create("payments")
        await write(source, PAYMENTS, numbered(0, 5))
        await write_transaction(source, PAYMENTS, [b"x", b"y"], commits=False)
        await write(source, PAYMENTS, numbered(5, 5))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link):
            await reaches(clients, COPY, numbered(0, 10))
            await until(lambda: syncs_reach(clients, 12))
        await commit(clients.source, "readers", PAYMENTS, 9)
        await write(source, PAYMENTS, numbered(10, 2))
        async with clients.mirroring(link):
            await reaches(clients, COPY, numbered(0, 12))
            await until(lambda: is_committed(clients, "readers"))
        # Exact within a run: the records 5 to 9 lie at 8 to 12 in the source.
        assert await committed(clients.target, "readers", (COPY,)) == [6]
        left = await values(clients.target_bootstrap, COPY, 6)
        assert left == await values(source, PAYMENTS, 9) == numbered(6, 6)

    async def syncs_reach(clients: Clients, upstream: int) -> bool:
        found = await kept(clients.source_bootstrap, "mm2-offset-syncs.B.internal")
        return any(decode_offset_sync(*record[:2]).upstream == upstream for record in found)

    TwoClusters().run(story)


async def is_committed(clients: Clients, group: str, where: TopicPartition = COPY) -> bool:
    return await committed(clients.target, group, (where,)) != [None]


def test_offsets_of_groups_are_translated_and_never_go_backwards() -> None:
    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.source.topics.create("payments")
        await write(source, PAYMENTS, numbered(0, 10))
        for group in ("readers", "quiet", "console-consumer-1"):
            await commit(clients.source, group, PAYMENTS, 4)
        (link,) = clients.makers_links({"topics": "payments", "groups.exclude": "console-consumer-.*"})
        async with clients.mirroring(link):
            await until(lambda: is_committed(clients, "readers"))
            await until(lambda: is_committed(clients, "quiet"))
            assert await committed(clients.target, "readers", (COPY,)) == [4]
            # Set back in the source, it is told so, and the target stays.
            await commit(clients.source, "readers", PAYMENTS, 2)
            await until(lambda: tells(clients, Checkpoint("readers", COPY, 2, 2)))
            await commit(clients.source, "quiet", PAYMENTS, 8)
            await until(lambda: goes_on_at(clients, "quiet", 8))
            # It stays back: nothing is set that was set before.
            assert await committed(clients.target, "readers", (COPY,)) == [4]
        assert await committed(clients.target, "console-consumer-1", (COPY,)) == [None]

    async def goes_on_at(clients: Clients, group: str, offset: int) -> bool:
        return await committed(clients.target, group, (COPY,)) == [offset]

    async def tells(clients: Clients, checkpoint: Checkpoint) -> bool:
        found = await kept(clients.target_bootstrap, "A.checkpoints.internal")
        return checkpoint in [decode_checkpoint(*record[:2]) for record in found]

    TwoClusters().run(story)


def test_a_checkpoint_is_written_once() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 10))
        await commit(clients.source, "readers", PAYMENTS, 4)
        (link,) = clients.makers_links({"topics": "payments", "sync.group.offsets.enabled": "false"})
        for _ in range(2):
            async with clients.mirroring(link):
                await reaches(clients, COPY, numbered(0, 10))
                await until(lambda: is_told(clients))
                # Two more rounds.
                await asyncio.sleep(2.5)
        assert len(await kept(clients.target_bootstrap, "A.checkpoints.internal")) == 1
        for admin, topic in (
            (clients.target, "A.checkpoints.internal"),
            (clients.target, "heartbeats"),
            (clients.source, "mm2-offset-syncs.B.internal"),
        ):
            configs = await admin.configs.describe(ResourceType.TOPIC, topic)
            assert configs["cleanup.policy"].value == "compact"
            assert len((await admin.topics.describe(topic)).partitions) == 1
        assert await committed(clients.target, "readers", (COPY,)) == [None], "nobody asked for it"

    async def is_told(clients: Clients) -> bool:
        key_and_value = encode_checkpoint(Checkpoint("readers", COPY, 4, 4))
        found = await kept(clients.target_bootstrap, "A.checkpoints.internal")
        return key_and_value in [record[:2] for record in found]

    TwoClusters().run(story)


def test_positions_are_those_of_the_last_records_and_others_are_passed_over() -> None:
    topic = TopicPartition("positions", 0)

    async def story(clients: Clients) -> None:
        bootstrap = clients.target_bootstrap
        await clients.target.topics.create(topic.topic)
        other = b'["MirrorCheckpointConnector",{"cluster":"A"}]'
        gone = encode_source_offset("A", SECOND, 7)[0]
        records: list[tuple[bytes | None, bytes | None]] = [
            encode_source_offset("A", PAYMENTS, 3),
            encode_source_offset("A", SECOND, 7),
            (other, b'{"offset":9}'),
            (b"nonsense", b"nonsense"),
            (None, None),
            encode_source_offset("A", PAYMENTS, 5),
            (gone, None),
        ]
        async with Producer(bootstrap) as producer:
            for key, value in records:
                await (await producer.send(topic.topic, value, key=key, partition=0))
        async with client_of(bootstrap) as cluster:
            assert await read_positions(cluster, [topic]) == {PAYMENTS: 6}

    TwoClusters().run(story)


def test_one_may_begin_with_what_comes() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        (link,) = clients.makers_links({"topics": "payments", "A.consumer.auto.offset.reset": "latest"})
        async with clients.mirroring(link) as mirroring:
            await until(lambda: begins_at(mirroring, 5))
            await write(clients.source_bootstrap, PAYMENTS, [b"new"])
            await reaches(clients, COPY, [b"new"])

    async def begins_at(mirroring: Mirroring, offset: int) -> bool:
        part = mirroring.progress.partitions.get(COPY)
        return part is not None and part.copied_to == offset

    TwoClusters().run(story)


def test_what_the_source_removed_meanwhile_is_skipped_and_counted() -> None:
    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.source.topics.create("payments")
        await write(source, PAYMENTS, numbered(0, 5))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link):
            await reaches(clients, COPY, numbered(0, 5))
        await write(source, PAYMENTS, numbered(5, 5))
        (await clients.source.records.delete({PAYMENTS: 8})).check()
        async with clients.mirroring(link) as mirroring:
            await reaches(clients, COPY, [*numbered(0, 5), b"8", b"9"])
            part = mirroring.progress.partitions[COPY]
            assert (part.records_skipped, part.copied_to) == (3, 10)

    TwoClusters().run(story)


def test_a_topic_that_was_made_again_is_copied_from_its_start() -> None:
    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.source.topics.create("payments")
        await write(source, PAYMENTS, numbered(0, 5))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link):
            await reaches(clients, COPY, numbered(0, 5))
        await clients.source.topics.delete("payments")
        await clients.source.topics.create("payments")
        await write(source, PAYMENTS, [b"again"])
        async with clients.mirroring(link) as mirroring:
            await reaches(clients, COPY, [*numbered(0, 5), b"again"])
            assert mirroring.progress.partitions[COPY].records_skipped == 0

    TwoClusters().run(story)


def test_a_partition_that_is_refused_does_not_stop_the_others() -> None:
    second = TopicPartition("A.small", 0)

    async def story(clients: Clients) -> None:
        source = clients.source_bootstrap
        await clients.target.topics.create("A.small", configs={"max.message.bytes": "100"})
        for topic in ("payments", "small"):
            await clients.source.topics.create(topic)
            await write(source, TopicPartition(topic, 0), numbered(0, 5))
        (link,) = clients.makers_links({"topics": "payments,small", "sync.topic.configs.enabled": "false"})
        async with clients.mirroring(link) as mirroring:
            part = await progress_with(mirroring, second, "MESSAGE_TOO_LARGE")
            assert mirroring.progress.last_error == part.error
            await reaches(clients, COPY, numbered(0, 5))
            await write(source, PAYMENTS, [b"more"])
            await reaches(clients, COPY, [*numbered(0, 5), b"more"])
            # It rests: the others are not disturbed by it again and again.
            errors = mirroring.progress.errors
            await asyncio.sleep(5)
            assert mirroring.progress.errors == errors
            more = {"max.message.bytes": "1000000"}
            await clients.target.configs.alter(ResourceType.TOPIC, "A.small", more)
            await reaches(clients, second, numbered(0, 5))
            assert mirroring.progress.partitions[second].error is None

    TwoClusters().run(story)


@pytest.mark.parametrize("moved", ["source", "target"])
def test_copying_goes_on_when_a_leader_moves(moved: str) -> None:
    nodes = (2, 1) if moved == "source" else (1, 2)
    clusters = TwoClusters(*nodes)
    first, second = [node.node_id for node in (clusters.source if moved == "source" else clusters.target)]

    async def story(clients: Clients) -> None:
        admin = clients.source if moved == "source" else clients.target
        name = "payments" if moved == "source" else "A.payments"
        if moved == "target":
            await clients.source.topics.create("payments")
        await admin.topics.create_many([NewTopic(name, assignment={0: [first]})])
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        (link,) = clients.makers_links({"topics": "payments", "refresh.topics.interval.seconds": "600"})
        async with clients.mirroring(link) as mirroring:
            await reaches(clients, COPY, numbered(0, 5))
            (await admin.replicas.reassign({TopicPartition(name, 0): [second]})).check()
            await until(lambda: is_led_by(admin, name))
            await write(clients.source_bootstrap, PAYMENTS, numbered(5, 5))
            await reaches(clients, COPY, numbered(0, 10))
            assert mirroring.progress.partitions[COPY].error is None

    async def is_led_by(admin: Admin, name: str) -> bool:
        (partition,) = (await admin.topics.describe(name)).partitions
        return partition.leader == second and len(partition.replicas) == 1

    clusters.run(story)


def test_whichever_cluster_is_away_every_record_comes_once() -> None:
    clusters = TwoClusters()

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link) as mirroring:
            for number, cluster in enumerate((clusters.target, clusters.source)):
                await reaches(clients, COPY, numbered(0, 5 + number))
                cluster.nodes[0].kill()
                await until(lambda: has_error(mirroring))
                cluster.nodes[0].switch_on()
                await until(lambda cluster=cluster: serves(cluster))  # type: ignore[misc]
                await write(clients.source_bootstrap, PAYMENTS, numbered(5 + number, 1))
            await reaches(clients, COPY, numbered(0, 7))

    async def serves(cluster: Any) -> bool:
        return len(cluster.serving) == 1

    async def has_error(mirroring: Mirroring) -> bool:
        return mirroring.progress.error is not None

    clusters.run(story)


def test_two_clusters_mirror_each_other_without_loops() -> None:
    async def story(clients: Clients) -> None:
        for admin, bootstrap, first in (
            (clients.source, clients.source_bootstrap, 0),
            (clients.target, clients.target_bootstrap, 100),
        ):
            await admin.topics.create("payments")
            await write(bootstrap, PAYMENTS, numbered(first, 3))
        there, back = clients.makers_links({"B->A.enabled": "true", "topics": ".*payments"})
        async with clients.mirroring(there), clients.mirroring(back):
            await reaches(clients, COPY, numbered(0, 3))
            await until(lambda: came_back(clients))
            await write(clients.source_bootstrap, PAYMENTS, [b"3"])
            await reaches(clients, COPY, numbered(0, 4))
        for admin, other in ((clients.source, "B"), (clients.target, "A")):
            names = {item.name for item in await admin.topics.list() if "payments" in item.name}
            assert names == {"payments", f"{other}.payments"}

    async def came_back(clients: Clients) -> bool:
        found = await values(clients.source_bootstrap, TopicPartition("B.payments", 0))
        return found == numbered(100, 3)

    TwoClusters().run(story)


def test_names_may_stay() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 5))
        await commit(clients.source, "readers", PAYMENTS, 3)
        (link,) = clients.makers_links(
            {
                "topics": "payments",
                "replication.policy.class": IDENTITY,
                "offset-syncs.topic.location": "target",
            }
        )
        async with clients.mirroring(link):
            await reaches(clients, PAYMENTS, numbered(0, 5))
            await until(lambda: is_committed(clients, "readers", PAYMENTS))
            assert await committed(clients.target, "readers", (PAYMENTS,)) == [3]
            assert await kept(clients.target_bootstrap, "mm2-offset-syncs.A.internal")

    TwoClusters().run(story)


class Answers:
    """What the source answers to fetches: changed by a test, or as it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: dict[TopicPartition, dict[str, Any]] = {}
        monkeypatch.setattr(forwarding, "fetch_from", self._fetch_from)

    async def _fetch_from(self, *args: Any) -> list[FetchedPartition]:
        found = await fetch_from(*args)
        return [item._replace(**self.changes.get(item.where, {})) for item in found]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"records": memoryview(bytes(100))}, "payments-0 has damaged bytes at or after 0"),
        ({"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}, "the source refuses payments-0: TOPIC_AUTH"),
    ],
)
def test_a_partition_that_cannot_be_read_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], error: str
) -> None:
    answers = Answers(monkeypatch)
    answers.changes[PAYMENTS] = change

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments", partitions=2)
        for where in (PAYMENTS, SECOND):
            await write(clients.source_bootstrap, where, numbered(0, 3))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link) as mirroring:
            await progress_with(mirroring, COPY, error)
            await reaches(clients, SECOND_COPY, numbered(0, 3))
            assert not await values(clients.target_bootstrap, COPY)
            answers.changes.clear()
            await reaches(clients, COPY, numbered(0, 3))

    TwoClusters().run(story)


def test_an_error_that_passes_is_no_error_of_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    answers.changes[PAYMENTS] = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, numbered(0, 3))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link) as mirroring:
            await until(lambda: has_errors(mirroring, 3))
            assert mirroring.progress.partitions[COPY].error is None
            assert "cannot read payments-0" in (mirroring.progress.last_error or "")
            answers.changes.clear()
            await reaches(clients, COPY, numbered(0, 3))

    async def has_errors(mirroring: Mirroring, count: int) -> bool:
        return mirroring.progress.errors >= count

    TwoClusters().run(story)


def test_records_beside_an_error_of_another_partition_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    # The answer about the first partition comes before the one about the second.
    answers.changes[SECOND] = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}

    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments", partitions=2)
        for where in (PAYMENTS, SECOND):
            await write(clients.source_bootstrap, where, numbered(0, 3))
        (link,) = clients.makers_links({"topics": "payments"})
        async with clients.mirroring(link):
            # Nothing is written later that would make the mirror look again.
            await reaches(clients, COPY, numbered(0, 3))
            assert not await values(clients.target_bootstrap, SECOND_COPY)
            answers.changes.clear()
            await reaches(clients, SECOND_COPY, numbered(0, 3))

    TwoClusters().run(story)

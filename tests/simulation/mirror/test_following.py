"""What follows the records of an exact copy: topics, partitions, configs, rules, offsets and log starts."""

import asyncio
from typing import Any

import pytest
from tests.simulation.mirror.world import (
    Clients,
    TwoClusters,
    are_equal,
    commit,
    committed,
    content,
    until,
    write,
)

from ottla.client.admin import Admin
from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource, Rule
from ottla.client.admin.offsets import FoundOffset
from ottla.client.admin.results import Results
from ottla.client.consumer import Consumer
from ottla.client.errors import BrokerError
from ottla.mirror import following as following_module
from ottla.mirror import halting
from ottla.mirror.copying import Copying
from ottla.mirror.following import Following, NotAnOttla
from ottla.mirror.halting import TOPIC_ID_CONFIG
from ottla.mirror.link import Link
from ottla.mirror.progress import PartitionProgress, Progress
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ConfigSource, ResourceType
from ottla.wire.error_code import ErrorCode

PAYMENTS = TopicPartition("payments", 0)
MARK = {"ottla.mirror.source": "there"}


def following(clients: Clients, link: Link | None = None) -> tuple[Following, Progress]:
    progress = Progress("there")
    return Following(link or clients.link(), clients.source, clients.target, progress), progress


async def own_configs(admin: Admin, topic: str) -> dict[str, str | None]:
    described = await admin.configs.describe(ResourceType.TOPIC, topic)
    return {
        name: item.value
        for name, item in described.items()
        if item.source is ConfigSource.TOPIC and name != TOPIC_ID_CONFIG
    }


async def partitions_of(admin: Admin) -> dict[str, int]:
    return {item.name: item.partitions for item in await admin.topics.list()}


def test_topics_partitions_and_configs_follow() -> None:
    async def story(clients: Clients) -> None:
        mine = {"retention.ms": "7777", "min.insync.replicas": "1", "cleanup.policy": "compact"}
        await clients.source.topics.create("payments", partitions=2, configs=mine)
        await clients.source.topics.create("orders")
        await clients.source.topics.create("else")
        link = clients.link(topics="payments|orders", prefix="b.")
        it, progress = following(clients, link)
        partitions = await it.topics()
        assert partitions == {
            TopicPartition("b.payments", 0): TopicPartition("payments", 0),
            TopicPartition("b.payments", 1): TopicPartition("payments", 1),
            TopicPartition("b.orders", 0): TopicPartition("orders", 0),
        }
        assert await partitions_of(clients.target) == {"b.payments": 2, "b.orders": 1}
        # What depends on the brokers of a cluster stays there.
        followed = {"retention.ms": "7777", "cleanup.policy": "compact"}
        assert await own_configs(clients.target, "b.payments") == {**followed, **MARK}
        assert await own_configs(clients.target, "b.orders") == MARK

        await clients.source.topics.add_partitions("payments", 3)
        change = {"retention.ms": "6666", "cleanup.policy": None, "segment.ms": "5555"}
        await clients.source.configs.alter(ResourceType.TOPIC, "payments", change)
        await clients.target.configs.alter(
            ResourceType.TOPIC, "b.payments", {"min.insync.replicas": "1", "max.message.bytes": "999"}
        )
        assert len(await it.topics()) == 4
        assert await partitions_of(clients.target) == {"b.payments": 3, "b.orders": 1}
        now = {"retention.ms": "6666", "segment.ms": "5555", "min.insync.replicas": "1"}
        assert await own_configs(clients.target, "b.payments") == {**now, **MARK}
        assert progress.topic_errors == {}

    TwoClusters().run(story)


def test_topics_of_others_are_left_alone_and_named() -> None:
    async def story(clients: Clients) -> None:
        for name in ("payments", "orders", "fine"):
            await clients.source.topics.create(name)
        await clients.target.topics.create("payments")
        await clients.target.topics.create("orders", configs={"ottla.mirror.source": "elsewhere"})
        it, progress = following(clients)
        assert list(await it.topics()) == [TopicPartition("fine", 0)]
        assert progress.topic_errors == dict.fromkeys(
            ("payments", "orders"),
            "it is not a mirror of there: it was there before, or was made writable. Delete it to mirror "
            "again",
        )
        # An operator has done so.
        await clients.target.topics.delete("payments")
        await it.topics()
        assert list(progress.topic_errors) == ["orders"]

    TwoClusters().run(story)


def test_a_topic_that_the_target_cannot_have_does_not_stop_the_others() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await clients.source.topics.create("long")
        it, progress = following(clients, clients.link(replication_factor=1))
        assert len(await it.topics()) == 2
        more, progress = following(clients, clients.link(prefix="more.", replication_factor=2))
        assert await more.topics() == {}
        assert sorted(progress.topic_errors) == ["more.long", "more.payments"]
        assert "INVALID_REPLICATION_FACTOR" in progress.topic_errors["more.long"]

    TwoClusters().run(story)


class OtherKafka:
    """What Apache Kafka says to a config that it does not know."""

    def __init__(self, admin: Admin) -> None:
        self.configs = admin.configs
        self.topics = self
        self._topics = admin.topics

    async def list(self) -> Any:
        return await self._topics.list()

    async def create_many(self, topics: Any) -> Results[str, Any]:
        unknown = BrokerError(
            ErrorCode.INVALID_CONFIG,
            "cannot create topic 'payments'",
            f"Unknown topic config name: {next(iter(topics[0].configs))}",
        )
        return Results({topics[0].name: unknown})


def test_a_target_that_is_not_ottla_is_told_so() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        target: Any = OtherKafka(clients.target)
        it = Following(clients.link(), clients.source, target, Progress("there"))
        with pytest.raises(NotAnOttla, match="--way mirror-maker"):
            await it.topics()

    TwoClusters().run(story)


def rule(operation: int, name: str = "payments", **more: Any) -> Rule:
    return Rule("User:alice", operation, Resource.TOPIC, name, **more)


async def rules(admin: Admin) -> set[Rule]:
    return set(await admin.access_rules.list(resource=Resource.TOPIC))


def test_who_may_read_follows_and_who_may_write_does_not() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.access_rules.create(
            [
                rule(Operation.READ),
                rule(Operation.ALL, "orders"),
                rule(Operation.WRITE),
                rule(Operation.WRITE, permission=Permission.DENY),
                rule(Operation.DESCRIBE, "pay", pattern=Pattern.PREFIXED),
                rule(Operation.READ, "*"),
                rule(Operation.READ, "unmirrored"),
            ]
        )
        own = [
            rule(Operation.READ, "b.payments", host="gone"),
            rule(Operation.READ, "mine"),
            rule(Operation.WRITE, "b.payments", host="kept"),
            rule(Operation.READ, "b.payments", pattern=Pattern.PREFIXED),
            rule(Operation.READ, "b.payments", permission=Permission.DENY),
        ]
        await clients.target.access_rules.create(own)
        it, progress = following(clients, clients.link(prefix="b."))
        for name in ("payments", "orders"):
            copy = TopicPartition(f"b.{name}", 0)
            progress.partitions[copy] = PartitionProgress(TopicPartition(name, 0))
        await it.access_rules()
        mirrored = {
            rule(Operation.READ, "b.payments"),
            rule(Operation.READ, "b.orders"),
            rule(Operation.WRITE, "b.payments", permission=Permission.DENY),
            rule(Operation.DESCRIBE, "b.pay", pattern=Pattern.PREFIXED),
            rule(Operation.READ, "*"),
        }
        assert await rules(clients.target) == mirrored | set(own[1:])
        # Nothing changes in the next round, and what is taken away goes.
        await it.access_rules()
        assert await rules(clients.target) == mirrored | set(own[1:])
        await clients.source.access_rules.delete([rule(Operation.READ)])
        await it.access_rules()
        assert await rules(clients.target) == (mirrored | set(own[1:])) - {rule(Operation.READ, "b.payments")}

    TwoClusters().run(story)


def test_in_mirror_makers_way_only_rules_of_single_topics_follow_and_none_is_removed() -> None:
    async def story(clients: Clients) -> None:
        given = [
            rule(Operation.READ),
            rule(Operation.ALL),
            rule(Operation.READ, "pay", pattern=Pattern.PREFIXED),
            rule(Operation.WRITE),
        ]
        await clients.source.access_rules.create(given)
        own = rule(Operation.READ, "A.payments", host="own")
        await clients.target.access_rules.create([own])
        for synced in ("false", "true"):
            (link,) = clients.makers_links({"sync.topic.acls.enabled": synced})
            it, progress = following(clients, link)
            progress.partitions[TopicPartition("A.payments", 0)] = PartitionProgress(PAYMENTS)
            await it.access_rules()
            expected = {own} | ({rule(Operation.READ, "A.payments")} if synced == "true" else set())
            assert await rules(clients.target) == expected

    TwoClusters().run(story)


class WithoutRules:
    """A cluster that has no authorizer, or refuses to tell."""

    def __init__(self, error_code: ErrorCode) -> None:
        self.access_rules = self
        self._error_code = error_code

    async def list(self, **options: Any) -> Any:
        raise BrokerError(self._error_code, "cannot list access rules")


def test_without_an_authorizer_there_are_no_rules_to_follow() -> None:
    async def story(clients: Clients) -> None:
        without: Any = WithoutRules(ErrorCode.SECURITY_DISABLED)
        await Following(clients.link(), without, clients.target, Progress("there")).access_rules()
        refuses: Any = WithoutRules(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await Following(clients.link(), clients.source, refuses, Progress("there")).access_rules()

    TwoClusters().run(story)


def test_committed_offsets_follow_as_far_as_their_records_are_copied() -> None:
    second = TopicPartition("payments", 1)

    async def story(clients: Clients) -> None:
        for admin, bootstrap in (
            (clients.source, clients.source_bootstrap),
            (clients.target, clients.target_bootstrap),
        ):
            await admin.topics.create("payments", partitions=2)
            await write(bootstrap, PAYMENTS, [b"%d" % number for number in range(10)])
        await commit(clients.source, "readers", PAYMENTS, 4)
        await commit(clients.source, "readers", second, 0)
        await commit(clients.source, "ahead", PAYMENTS, 9)
        await commit(clients.source, "other", PAYMENTS, 3)
        it, progress = following(clients, clients.link(groups="readers|ahead"))
        # Of the second partition it is not known yet how far the copy is.
        progress.partitions[second] = PartitionProgress(second)
        part = progress.partitions[PAYMENTS] = PartitionProgress(PAYMENTS, copied_to=0)
        await it.groups()
        assert await committed(clients.target, "readers", (PAYMENTS, second)) == [0, None]
        part.copied_to = 6
        await it.groups()
        assert await committed(clients.target, "readers", (PAYMENTS, second)) == [4, None]
        assert await committed(clients.target, "ahead", (PAYMENTS,)) == [6]
        assert await committed(clients.target, "other", (PAYMENTS,)) == [None]

        # Backwards as well: an operator has set the group back.
        await commit(clients.source, "readers", PAYMENTS, 2)
        part.copied_to = 10
        await it.groups()
        assert await committed(clients.target, "readers", (PAYMENTS,)) == [2]
        assert await committed(clients.target, "ahead", (PAYMENTS,)) == [9]

        # A group that has members in the target keeps its offsets.
        async with Consumer(clients.target_bootstrap, group_id="readers") as consumer:
            consumer.subscribe(["payments"])
            await until(lambda: is_assigned(consumer))
            await commit(clients.source, "readers", PAYMENTS, 7)
            await commit(clients.source, "ahead", PAYMENTS, 8)
            await it.groups()
            assert await committed(clients.target, "readers", (PAYMENTS,)) != [7]
        assert await committed(clients.target, "ahead", (PAYMENTS,)) == [8]

    async def is_assigned(consumer: Consumer) -> bool:
        await consumer.poll(10)
        return len(consumer.assignment()) == 2

    TwoClusters().run(story)


def test_what_the_source_has_removed_is_removed_from_the_copy_once() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, [b"%d" % number for number in range(10)])
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            (await clients.source.records.delete({PAYMENTS: 7})).check()
            await write(clients.source_bootstrap, PAYMENTS, [b"10"])
            await until(lambda: are_equal(clients, PAYMENTS))
            assert (await content(clients.target_bootstrap, PAYMENTS))[:2] == (7, 11)
            assert mirroring.progress.partitions[PAYMENTS].records_skipped == 0

    TwoClusters().run(story)


class Deletions:
    """An admin that keeps what it was to delete, and refuses nothing."""

    def __init__(self) -> None:
        self.records = self.offsets = self
        self.starts: dict[TopicPartition, int] = {}
        self.asked: list[dict[TopicPartition, int]] = []

    async def delete(self, before: dict[TopicPartition, int]) -> Results[TopicPartition, int]:
        self.asked.append(dict(before))
        self.starts |= before
        return Results(before)

    async def earliest(self, partitions: list[TopicPartition]) -> Results[TopicPartition, FoundOffset]:
        return Results({where: FoundOffset(self.starts.get(where, 0), -1, -1) for where in partitions})


@pytest.mark.parametrize(
    ("part", "removed_to"),
    [
        (PartitionProgress(PAYMENTS, copied_to=9, source_start=4), 4),
        (PartitionProgress(PAYMENTS, copied_to=3, source_start=4), 3),
        (PartitionProgress(PAYMENTS, copied_to=9, source_start=0), None),
        (PartitionProgress(PAYMENTS, copied_to=1, source_start=1), 1),
        (PartitionProgress(PAYMENTS, copied_to=0, source_start=4), None),
        (PartitionProgress(PAYMENTS, copied_to=-1, source_start=4), None),
        (PartitionProgress(PAYMENTS, copied_to=9, source_start=4, error="broken"), None),
    ],
)
def test_a_log_start_follows_up_to_what_was_copied(part: PartitionProgress, removed_to: int | None) -> None:
    async def story(clients: Clients) -> None:
        deletions, progress = Deletions(), Progress("there")
        target: Any = deletions
        progress.partitions[PAYMENTS] = part
        it = Following(clients.link(), clients.source, target, progress)
        await it.log_starts()
        await it.log_starts()
        assert deletions.asked == ([] if removed_to is None else [{PAYMENTS: removed_to}])
        if removed_to is not None:
            part.source_start, part.copied_to = removed_to + 1, 99
            await it.log_starts()
            assert deletions.asked[1:] == [{PAYMENTS: removed_to + 1}]
            # The copy was made again, or a power cut brought back what had been removed.
            deletions.starts.clear()
            await it.log_starts()
            assert deletions.asked[2:] == [{PAYMENTS: removed_to + 1}]

    TwoClusters().run(story)


@pytest.mark.parametrize("silent", ["source", "target"])
def test_a_topic_whose_configs_nobody_tells_is_left_as_it_was(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may wait for an operator, and the target may not know it yet."""
    real = halting.own_configs

    async def story(clients: Clients) -> None:
        for name in ("payments", "orders"):
            await clients.source.topics.create(name)
        it, progress = following(clients)
        progress.partitions = {where: PartitionProgress(where) for where in await it.topics()}
        assert len(progress.partitions) == 2
        progress.partitions[PAYMENTS].halted = progress.partitions[PAYMENTS].has_lost = True
        progress.halted = {PAYMENTS: "it waits"}
        nobody = clients.source if silent == "source" else clients.target

        async def without(admin: Admin, topics: Any, keys: Any = None) -> dict[str, dict[str, str]]:
            found = await real(admin, topics, keys)
            return {name: one for name, one in found.items() if admin is not nobody or name != "payments"}

        monkeypatch.setattr(following_module, "own_configs", without)
        await clients.target.configs.alter(ResourceType.TOPIC, "payments", MARK)
        assert set(await it.topics()) == set(progress.partitions)
        assert progress.halted == {PAYMENTS: "it waits"}
        assert progress.partitions[PAYMENTS].has_lost
        assert list(progress.topic_errors) == ["payments"]
        monkeypatch.setattr(following_module, "own_configs", real)
        await it.topics()
        assert progress.topic_errors == {}

    TwoClusters().run(story)


def test_offsets_do_not_follow_to_records_that_are_still_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Should source and mirror be lost now, the group would pass over what is written there first."""
    write_to = Copying._write_to

    async def story(clients: Clients) -> None:
        may_write = asyncio.Event()
        may_write.set()

        async def write_later(copying: Copying, *what: Any) -> None:
            await may_write.wait()
            await write_to(copying, *what)

        monkeypatch.setattr(Copying, "_write_to", write_later)
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, [b"%d" % number for number in range(4)])
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: are_equal(clients, PAYMENTS))
            may_write.clear()
            await write(clients.source_bootstrap, PAYMENTS, [b"%d" % number for number in range(4, 10)])
            await commit(clients.source, "readers", PAYMENTS, 10)
            await until(lambda: follows(clients), lambda: mirroring.progress)
            await asyncio.sleep(3)
            part = mirroring.progress.partitions[PAYMENTS]
            assert part.source_end > 4
            assert (part.copied_to, part.lag) == (4, part.source_end - 4)
            assert await committed(clients.target, "readers", (PAYMENTS,)) == [4]
            may_write.set()
            await until(lambda: are_equal(clients, PAYMENTS))
            await until(lambda: follows(clients, 10), lambda: mirroring.progress)
            assert part.lag == 0

    TwoClusters().run(story)


def test_offsets_do_not_follow_to_where_the_source_has_no_records_any_more() -> None:
    async def story(clients: Clients) -> None:
        await clients.source.topics.create("payments")
        await write(clients.source_bootstrap, PAYMENTS, [b"%d" % number for number in range(4)])
        async with clients.mirroring(clients.link()):
            await until(lambda: are_equal(clients, PAYMENTS))
        await write(clients.source_bootstrap, PAYMENTS, [b"%d" % number for number in range(4, 10)])
        (await clients.source.records.delete({PAYMENTS: 10})).check()
        await commit(clients.source, "readers", PAYMENTS, 10)
        async with clients.mirroring(clients.link()) as mirroring:
            await until(lambda: follows(clients), lambda: mirroring.progress)
            await asyncio.sleep(3)
            # The copy ends where it did, so what would be written to it first has offset 4.
            assert (await content(clients.target_bootstrap, PAYMENTS))[1] == 4
            assert await committed(clients.target, "readers", (PAYMENTS,)) == [4]
            part = mirroring.progress.partitions[PAYMENTS]
            assert (part.copied_to, part.records_skipped, part.lag) == (4, 6, 0)
            await write(clients.source_bootstrap, PAYMENTS, [b"10"])
            await until(lambda: follows(clients, 10), lambda: mirroring.progress)

    TwoClusters().run(story)


async def follows(clients: Clients, offset: int | None = None) -> bool:
    """Say whether the group's offset is in the target: this one, or any."""
    (found,) = await committed(clients.target, "readers", (PAYMENTS,))
    return found is not None and offset in (None, found)

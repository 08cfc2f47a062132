"""Our own admin client: every noun, alike against Ottla and against Apache Kafka."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from tests.clients.served_topics import serve_topic, until

from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigResource
from ottla.client.admin.credentials import ScramCredential, ScramMechanism
from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.quotas import ANY_NAME, entity
from ottla.client.admin.replicas import ElectionType
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import BrokerError, NoBrokerReached
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ConfigSource, ResourceType
from ottla.wire.error_code import ErrorCode

T = TypeVar("T")


@pytest.fixture
def name() -> str:
    """A name that no other test uses: the brokers are shared."""
    return f"admin-{uuid.uuid4().hex[:12]}"


def run(bootstrap: str, scenario: Callable[[Admin], Awaitable[T]]) -> T:
    async def inside() -> T:
        async with Admin(bootstrap) as admin:
            return await scenario(admin)

    return asyncio.run(inside())


async def produce(bootstrap: str, topic: str, *values: bytes, partition: int = 0, **settings: Any) -> None:
    async with Producer(bootstrap, **settings) as producer:
        for number, value in enumerate(values):
            await producer.send(topic, value, partition=partition, timestamp_ms=1000 * (number + 1))


@asynccontextmanager
async def open_transaction(bootstrap: str, topic: str, transactional_id: str) -> AsyncIterator[Producer]:
    async with Producer(bootstrap, transactional_id=transactional_id) as producer:
        producer.begin_transaction()
        await (await producer.send(topic, b"open", partition=0))
        yield producer


def test_a_topic_is_created_listed_described_grown_and_deleted(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        created = await admin.topics.create(name, partitions=2, configs={"retention.ms": "60000"})
        assert (created.name, created.partitions, created.replication_factor) == (name, 2, 1)
        assert created.configs["retention.ms"] == "60000"

        await until(lambda: _listed(admin, name), [(name, created.topic_id, 2)])
        described = await admin.topics.describe(name)
        assert described.topic_id == created.topic_id
        assert [part.partition for part in described.partitions] == [0, 1]
        broker = described.partitions[0].leader
        assert described.partitions[0].in_sync_replicas == described.partitions[0].replicas == (broker,)

        await admin.topics.add_partitions(name, 3)
        await until(lambda: _partition_count(admin, name), 3)
        await admin.topics.delete(name)
        await until(lambda: _listed(admin, name), [])

    run(bootstrap, scenario)


async def _listed(admin: Admin, name: str) -> list[tuple[str, Any, int]]:
    topics = await admin.topics.list()
    return [(topic.name, topic.topic_id, topic.partitions) for topic in topics if topic.name == name]


async def _partition_count(admin: Admin, name: str) -> int:
    return len((await admin.topics.describe(name)).partitions)


def test_one_topic_that_cannot_be_created_spoils_no_other(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await admin.topics.create(name)
        results = await admin.topics.create_many(
            [NewTopic(name), NewTopic(f"{name}-b", partitions=4), NewTopic("not/allowed")]
        )
        assert results[f"{name}-b"].partitions == 4
        codes = {
            key: error.error_code for key, error in results.failed.items() if isinstance(error, BrokerError)
        }
        assert codes == {
            name: ErrorCode.TOPIC_ALREADY_EXISTS,
            "not/allowed": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        with pytest.raises(BrokerError, match=f"cannot create topic '{name}'.*exists"):
            results.check()

    run(bootstrap, scenario)


def test_validate_only_creates_nothing(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await admin.topics.create(name, validate_only=True)
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await admin.topics.describe(name)
        with pytest.raises(BrokerError, match="INVALID_CONFIG"):
            await admin.topics.create(name, configs={"retention.ms": "soon"}, validate_only=True)

    run(bootstrap, scenario)


def test_a_topic_that_is_not_there_is_told_at_once(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        for ask in (
            admin.topics.describe(name),
            admin.topics.delete(name),
            admin.topics.add_partitions(name, 9),
            admin.records.truncate(name),
        ):
            with pytest.raises(BrokerError) as caught:
                await ask
            assert caught.value.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        missing = TopicPartition(name, 0)
        found = await admin.offsets.latest([missing])
        with pytest.raises(BrokerError, match=f"{name}-0 does not exist"):
            found[missing]

    run(bootstrap, scenario)


def test_configs_of_a_topic_are_described_and_changed(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name, configs={"retention.ms": "60000"})
        topic = ConfigResource(ResourceType.TOPIC, name)

        async def value(key: str) -> tuple[str | None, ConfigSource]:
            config = (await admin.configs.describe(*topic, keys=[key]))[key]
            return config.value, config.source

        assert await value("retention.ms") == ("60000", ConfigSource.TOPIC)
        await admin.configs.alter(*topic, {"retention.ms": None, "max.message.bytes": "2000"})
        await until(lambda: value("retention.ms"), ("604800000", ConfigSource.DEFAULT))
        await until(lambda: value("max.message.bytes"), ("2000", ConfigSource.TOPIC))

        await admin.configs.alter(*topic, append={"cleanup.policy": "compact"})
        await until(lambda: value("cleanup.policy"), ("delete,compact", ConfigSource.TOPIC))
        await admin.configs.alter(*topic, subtract={"cleanup.policy": "delete"})
        await until(lambda: value("cleanup.policy"), ("compact", ConfigSource.TOPIC))
        with pytest.raises(BrokerError, match=f"cannot change configs of topic {name}.*INVALID_CONFIG"):
            await admin.configs.alter(*topic, {"retention.ms": "soon"})
        described = await admin.configs.describe(*topic, keys=["retention.ms"], documentation=True)
        assert described["retention.ms"].documentation

    run(bootstrap, scenario)


def test_configs_of_brokers_and_groups_are_changed_too(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        broker = str((await admin.cluster.describe()).brokers[0].node_id)
        resources = {
            ConfigResource(ResourceType.BROKER, broker): ("log.cleaner.backoff.ms", "14000"),
            ConfigResource(ResourceType.BROKER, ""): ("log.cleaner.backoff.ms", "13000"),
            ConfigResource(ResourceType.GROUP, name): ("consumer.session.timeout.ms", "50000"),
        }
        for resource, (key, value) in resources.items():
            await admin.configs.alter(*resource, {key: value})

            async def read(resource: ConfigResource = resource, key: str = key) -> str | None:
                found = await admin.configs.describe(*resource)
                return found[key].value if key in found else ""

            await until(read, value)
        assert ConfigResource(ResourceType.GROUP, name) in await admin.configs.list_resources(
            ResourceType.GROUP
        )
        for resource, (key, _) in resources.items():
            await admin.configs.alter(*resource, {key: None})

    run(bootstrap, scenario)


def test_offsets_are_found_by_place_and_by_time(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name, partitions=2)
        await produce(bootstrap, name, b"a", b"b", b"c")
        where, empty = TopicPartition(name, 0), TopicPartition(name, 1)

        async def offset(spec: int) -> int:
            return (await admin.offsets.list({where: spec}))[where].offset

        assert [await offset(spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)] == [0, 3]
        assert [await offset(time_ms) for time_ms in (0, 1500, 3000, 3001)] == [0, 1, 2, -1]
        newest = (await admin.offsets.list({where: OffsetSpec.MAX_TIMESTAMP}))[where]
        assert (newest.offset, newest.timestamp_ms) == (2, 3000)
        assert (await admin.offsets.latest([empty]))[empty].offset == 0

    run(bootstrap, scenario)


def test_records_are_deleted_up_to_an_offset_and_all_of_them(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name, partitions=2)
        await produce(bootstrap, name, b"a", b"b", b"c")
        where = TopicPartition(name, 0)
        assert (await admin.records.delete({where: 1}))[where] == 1
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            (await admin.records.delete({where: 4})).check()
        assert (await admin.records.truncate(name)).check() == {where: 3, TopicPartition(name, 1): 0}
        assert (await admin.offsets.earliest([where]))[where].offset == 3

    run(bootstrap, scenario)


def test_offsets_of_a_group_are_set_read_reset_and_deleted(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name, partitions=2)
        await produce(bootstrap, name, b"a", b"b", b"c", b"d")
        first, second = TopicPartition(name, 0), TopicPartition(name, 1)
        (await admin.group_offsets.alter(name, {first: CommittedOffset(2, 0, "by hand"), second: 0})).check()
        assert await admin.group_offsets.list(name) == {
            first: CommittedOffset(2, 0, "by hand"),
            second: CommittedOffset(0),
        }
        assert await admin.group_offsets.list(name, [second]) == {second: CommittedOffset(0)}
        lags = await admin.group_offsets.lag(name)
        assert [(item.where, item.committed, item.log_end_offset, item.lag) for item in lags] == [
            (first, 2, 4, 2),
            (second, 0, 0, 0),
        ]

        plan = admin.group_offsets.plan_reset
        assert await plan(name, to=OffsetSpec.EARLIEST) == {first: 0, second: 0}
        assert await plan(name, topics=[name], to=OffsetSpec.LATEST) == {first: 4, second: 0}
        assert await plan(name, partitions=[first], shift_by=-1) == {first: 1}
        assert await plan(name, partitions=[first], shift_by=100) == {first: 4}
        assert await plan(name, to_timestamp_ms=2500) == {first: 2, second: 0}
        assert await plan(name, partitions=[first], to=3) == {first: 3}
        with pytest.raises(ValueError, match="exactly one"):
            await plan(name)

        (await admin.group_offsets.delete(name, [second])).check()
        assert list(await admin.group_offsets.list(name)) == [first]
        await admin.groups.delete(name)
        with pytest.raises(BrokerError, match=f"cannot describe group '{name}'.*GROUP_ID_NOT_FOUND"):
            await admin.groups.describe(name)

    run(bootstrap, scenario)


def test_groups_are_listed_by_state_and_type(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name)
        (await admin.group_offsets.alter(name, {TopicPartition(name, 0): 0})).check()
        listed = {group.group_id: group for group in await admin.groups.list(states=["Empty"])}
        assert (listed[name].state, listed[name].type) == ("Empty", "classic")
        assert name not in {group.group_id for group in await admin.groups.list(types=["consumer"])}
        described = await admin.groups.describe_many([name, f"{name}-missing"])
        assert (described[name].state, described[name].members) == ("Empty", ())
        assert list(described.failed) == [f"{name}-missing"]

    run(bootstrap, scenario)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_both_protocols_are_described_with_their_lag(
    bootstrap: str, name: str, protocol: str
) -> None:
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "client.id": "reader",
        "group.protocol": protocol,
        "group.instance.id": f"{name}-1",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }

    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name, partitions=2)
        await produce(bootstrap, name, b"a", b"b", b"c")
        consumer = Consumer(settings)
        consumer.subscribe([name])
        try:
            await asyncio.to_thread(_read_two_and_commit, consumer)
            group = await admin.groups.describe(name)
            assert (group.type, group.state) == (protocol, "Stable")
            [member] = group.members
            both = (TopicPartition(name, 0), TopicPartition(name, 1))
            assert (member.client_id, member.instance_id) == ("reader", f"{name}-1")
            assert tuple(sorted(member.assignment)) == both
            assert member.subscribed_topics == (name,)
            lag = {item.where.partition: item for item in await admin.group_offsets.lag(name)}
            assert (lag[0].committed, lag[0].lag, lag[0].member) == (2, 1, member)
            assert (lag[1].committed, lag[1].lag, lag[1].member) == (None, None, member)
            with pytest.raises(BrokerError) as refused:
                await admin.groups.delete(name)
            assert refused.value.error_code is ErrorCode.NON_EMPTY_GROUP
        finally:
            await asyncio.to_thread(consumer.close)
        if protocol == "classic":
            # A static member of a classic group is still there after it closed, until it is removed.
            (await admin.groups.remove_members(name, [f"{name}-1"])).check()
            await admin.groups.delete(name)

    run(bootstrap, scenario)


def _read_two_and_commit(consumer: Any) -> None:
    for _ in range(2):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
    consumer.commit(message, asynchronous=False)


def test_an_open_transaction_is_listed_described_and_fenced(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name)
        where = TopicPartition(name, 0)
        async with open_transaction(bootstrap, name, name) as producer:
            listed = {
                item.transactional_id: item for item in await admin.transactions.list(states=["Ongoing"])
            }
            described = await admin.transactions.describe(name)
            assert (listed[name].state, described.state) == ("Ongoing", "Ongoing")
            assert described.partitions == (where,)
            assert described.started_at_ms is not None
            [active] = (await admin.transactions.producers([where]))[where]
            assert (active.producer_id, active.transaction_start_offset) == (described.producer_id, 0)
            # What its coordinator knows of does not hang, however long it is open.
            assert await admin.transactions.find_hanging([where], open_for_ms=-60_000) == ()

            await admin.transactions.fence(name)
            await until(lambda: _state(admin, name), "Empty")
            with pytest.raises(Exception, match="another producer"):
                await producer.commit_transaction()
        with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_NOT_FOUND"):
            await admin.transactions.describe(f"{name}-missing")
        with pytest.raises(BrokerError, match="unknown state: Sleeping"):
            await admin.transactions.list(states=["Sleeping"])

    run(bootstrap, scenario)


async def _state(admin: Admin, transactional_id: str) -> str:
    return (await admin.transactions.describe(transactional_id)).state


def test_a_transaction_is_ended_in_a_partition_by_hand(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name)
        where = TopicPartition(name, 0)
        async with open_transaction(bootstrap, name, name) as producer:
            [active] = (await admin.transactions.producers([where]))[where]
            await admin.transactions.abort(where, active)
            [ended] = (await admin.transactions.producers([where]))[where]
            assert ended.transaction_start_offset is None
            stable = await admin.offsets.list({where: OffsetSpec.LATEST}, read_committed=True)
            assert stable[where].offset == 2
            await producer.abort_transaction()

    run(bootstrap, scenario)


def test_the_cluster_tells_its_brokers_features_versions_and_quorum(bootstrap: str) -> None:
    async def scenario(admin: Admin) -> None:
        cluster = await admin.cluster.describe(fenced=True)
        [broker] = cluster.brokers
        assert f"{broker.host}:{broker.port}" == bootstrap
        assert (cluster.controller, broker.is_fenced) == (broker.node_id, False)
        features = await admin.cluster.features()
        assert features["transaction.version"].finalized == 2
        assert (await admin.cluster.api_versions())["PRODUCE"].last == 13
        assert await admin.cluster.api_versions() == await admin.cluster.api_versions(broker.node_id)
        quorum = await admin.quorum.describe()
        assert [voter.node_id for voter in quorum.voters] == [quorum.leader] == [broker.node_id]
        assert quorum.high_watermark <= quorum.voters[0].log_end_offset
        with pytest.raises(BrokerError, match="cannot update features"):
            await admin.cluster.update_features({"transaction.version": 99}, validate_only=True)

    run(bootstrap, scenario)


def test_log_directories_tell_what_lies_where(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name, partitions=2)
        await produce(bootstrap, name, b"a" * 1000)
        where = TopicPartition(name, 0)
        [directories] = (await admin.log_dirs.describe(partitions=[where])).check().values()
        [directory] = directories
        [replica] = directory.replicas
        assert (replica.where, replica.is_future, directory.error_code) == (where, False, ErrorCode.NONE)
        assert replica.size_bytes > 1000
        assert 0 < directory.usable_bytes <= directory.total_bytes
        [everything] = (await admin.log_dirs.describe()).check().values()
        assert {where, TopicPartition(name, 1)} <= {item.where for item in everything[0].replicas}

    run(bootstrap, scenario)


def test_quotas_are_set_matched_and_removed(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        user, pair = entity(user=name), entity(user=name, client_id=None)
        await admin.quotas.alter(user, {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.0})
        await admin.quotas.alter(pair, {"request_percentage": 50.0})
        both = {
            user: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.0},
            pair: {"request_percentage": 50.0},
        }
        await until(lambda: admin.quotas.describe({"user": name}), both)
        assert await admin.quotas.describe({"user": name}, strict=True) == {user: both[user]}
        assert (await admin.quotas.describe({"user": name, "client-id": None})) == {pair: both[pair]}
        assert (await admin.quotas.describe({"user": name, "client-id": ANY_NAME})) == {pair: both[pair]}
        await admin.quotas.alter(pair, {"request_percentage": None})
        await admin.quotas.alter(user, {"producer_byte_rate": None})
        await until(lambda: admin.quotas.describe({"user": name}), {user: {"consumer_byte_rate": 2000.0}})
        with pytest.raises(BrokerError, match="cannot change a quota"):
            await admin.quotas.alter(user, {"no_such_quota": 1.0})

    run(bootstrap, scenario)


def test_scram_credentials_are_set_described_and_deleted(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await admin.credentials.set_password(name, "secret", ScramMechanism.SCRAM_SHA_256, iterations=4096)

        async def credentials() -> Any:
            found = await admin.credentials.describe([name])
            return found.succeeded.get(name, ())

        await until(credentials, (ScramCredential(ScramMechanism.SCRAM_SHA_256, 4096),))
        assert name in await admin.credentials.describe()
        await admin.credentials.delete(name, ScramMechanism.SCRAM_SHA_256)
        await until(credentials, ())
        with pytest.raises(BrokerError, match=f"cannot change the credentials of '{name}'"):
            await admin.credentials.delete(name, ScramMechanism.SCRAM_SHA_256)
        with pytest.raises(BrokerError, match="UNACCEPTABLE_CREDENTIAL"):
            await admin.credentials.set_password(name, "secret", iterations=1)

    run(bootstrap, scenario)


def test_replicas_are_moved_and_leaders_elected_as_far_as_one_broker_can(bootstrap: str, name: str) -> None:
    async def scenario(admin: Admin) -> None:
        await serve_topic(admin, name)
        where = TopicPartition(name, 0)
        broker = (await admin.topics.describe(name)).partitions[0].leader
        (await admin.replicas.reassign({where: [broker]})).check()
        assert await admin.replicas.reassignments([where]) == {}
        refused = await admin.replicas.reassign({where: [broker, 77]})
        with pytest.raises(BrokerError, match=f"cannot move {name}-0.*INVALID_REPLICA_ASSIGNMENT"):
            refused[where]
        nothing_to_call_off = await admin.replicas.reassign({where: None})
        with pytest.raises(BrokerError, match="NO_REASSIGNMENT_IN_PROGRESS"):
            nothing_to_call_off[where]
        assert (await admin.replicas.elect([where])).check() == {where: False}
        assert (await admin.replicas.elect([where], ElectionType.UNCLEAN)).check() == {where: False}

    run(bootstrap, scenario)


def test_a_wrong_address_is_told_in_one_sentence() -> None:
    async def scenario(admin: Admin) -> None:
        await admin.topics.list()

    with pytest.raises(
        NoBrokerReached, match=r"no broker answers at 127\.0\.0\.1:1; check that it is running"
    ):
        run("127.0.0.1:1", scenario)

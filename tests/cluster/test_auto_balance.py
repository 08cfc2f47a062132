"""Three nodes with `ottla.balance.auto`: one joins and gets its share, and one leaves and is emptied."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType  # type: ignore[attr-defined]
from tests.support.mixed_cluster import MixedCluster, wait_until
from tests.support.plain_client import PlainClient

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

TOPIC, PARTITIONS = "orders", 6
SETTINGS = {
    "ottla.balance.auto": "true",
    "ottla.balance.interval.ms": "200",
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "ottla.journal.enable": "false",
}


def held(cluster: MixedCluster, number: int) -> int:
    return sum(number in replicas for replicas in cluster.replicas(TOPIC).values())


def test_brokers_that_join_get_their_share_and_those_that_leave_are_emptied(tmp_path: Path) -> None:
    cluster = MixedCluster(tmp_path, "ooo", controllers=(1,), settings=SETTINGS)
    try:
        cluster.start(1, 2)
        cluster.create_topic(TOPIC, PARTITIONS, replicas=2)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        for number in range(600):
            producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(60) == 0

        cluster[3].start()
        wait_until(lambda: held(cluster, 3) == 4, "node 3 has its share")
        wait_until(lambda: [held(cluster, one) for one in (1, 2)] == [4, 4], "the others have theirs")
        cluster.wait_for_in_sync(TOPIC, 2)

        cluster[3].kill()
        with PlainClient(cluster.address(1)) as client:
            # It is refused until the controller has noticed that the broker is gone.
            wait_until(
                lambda: client.ask(UnregisterBrokerRequest(broker_id=3)).error_code is ErrorCode.NONE,
                "node 3 is unregistered",
            )
        wait_until(lambda: held(cluster, 3) == 0, "node 3 is empty")
        cluster.wait_for_in_sync(TOPIC, 2)
        for partition in range(PARTITIONS):
            assert cluster[1].log_bytes(TOPIC, partition) == cluster[2].log_bytes(TOPIC, partition) != b""
    finally:
        cluster.__exit__()


@pytest.mark.thorough(
    guard="tests/cluster/test_auto_balance.py::test_brokers_that_join_get_their_share_and_those_that_leave_are_emptied"
)
def test_a_broker_that_is_away_for_long_is_emptied(tmp_path: Path) -> None:
    settings = {**SETTINGS, "ottla.balance.leave.ms": "1000"}
    with MixedCluster(tmp_path, "ooo", controllers=(1,), settings=settings) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replicas=2)
        wait_until(lambda: [held(cluster, one) for one in (1, 2, 3)] == [4, 4, 4], "all have their share")
        cluster[3].kill()
        # It is still registered, and may come back one day.
        wait_until(lambda: held(cluster, 3) == 0, "node 3 is empty")
        cluster.wait_for_in_sync(TOPIC, 2)


@pytest.mark.thorough(
    guard="tests/cluster/test_replication_throttles.py::test_a_replica_that_moves_takes_no_more_than_its_share"
)
def test_partitions_are_copied_no_faster_than_they_may(tmp_path: Path) -> None:
    limits = {"ottla.balance.bytes.per.second": "1", "replica.fetch.max.bytes": "100000"}
    cluster = MixedCluster(tmp_path, "oo", controllers=(1,), settings={**SETTINGS, **limits})
    try:
        cluster.start(1)
        cluster.create_topic(TOPIC, 2, replicas=1)
        producer = Producer({"bootstrap.servers": cluster.address(1), "compression.type": "none"})
        for number in range(400):
            producer.produce(TOPIC, b"x" * 10_000, partition=number % 2)
            producer.poll(0)
        assert producer.flush(60) == 0

        cluster[2].start()
        wait_until(lambda: held(cluster, 2) == 1, "one partition moves to node 2")
        (moving,) = [number for number, replicas in cluster.replicas(TOPIC).items() if 2 in replicas]
        total = len(cluster[1].log_bytes(TOPIC, moving))
        wait_until(lambda: cluster[2].log_bytes(TOPIC, moving) != b"", "it has begun")
        # The first fetch alone is more than it may copy in days.
        for _ in range(50):
            assert len(cluster[2].log_bytes(TOPIC, moving)) < total / 2
            assert 2 not in cluster.in_sync(TOPIC)[moving]

        set_rate(cluster, 2, 1 << 40)
        wait_until(lambda: cluster.replicas(TOPIC)[moving] == [2], "it has moved")
        assert len(cluster[2].log_bytes(TOPIC, moving)) == total
    finally:
        cluster.__exit__()


def set_rate(cluster: MixedCluster, broker: int, rate: int) -> None:
    """Set Kafka's own limit, which comes before that of balancing."""
    name = "follower.replication.throttled.rate"
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    resource.add_incremental_config(ConfigEntry(name, str(rate), incremental_operation=AlterConfigOpType.SET))
    for future in cluster.admin.incremental_alter_configs([resource]).values():
        future.result(60)

"""Three nodes with `ottla.balance.auto`: one joins and gets its share, and one leaves and is emptied."""

from pathlib import Path

from confluent_kafka import Producer
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
            answer = client.ask(UnregisterBrokerRequest(broker_id=3))
            assert answer.error_code is ErrorCode.NONE
        wait_until(lambda: held(cluster, 3) == 0, "node 3 is empty")
        cluster.wait_for_in_sync(TOPIC, 2)
        for partition in range(PARTITIONS):
            assert cluster[1].log_bytes(TOPIC, partition) == cluster[2].log_bytes(TOPIC, partition) != b""
    finally:
        cluster.__exit__()

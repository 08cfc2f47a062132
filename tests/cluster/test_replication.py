"""A partition on three nodes loses nothing and shows nothing twice, whichever node ends in whichever way."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mixed_cluster import MixedCluster, wait_until

PARTITIONS = 3
QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
PATIENT = {"replica.fetch.wait.max.ms": "10000"}
"""Followers that wait for long: whoever forgets to wake them is found out."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    with MixedCluster(tmp_path_factory.mktemp("cluster"), "ooo", (1, 2, 3), QUICK | PATIENT) as cluster:
        yield cluster


def check(cluster: MixedCluster, load: AcknowledgedLoad, topic: str) -> None:
    """See that all that was acknowledged is where it was said to be, on all nodes, once."""
    cluster.wait_for_in_sync(topic, 3)
    load.finish()
    assert load.failures == []
    wait_until(lambda: cluster.differences(topic) == [], "the replicas are the same bytes")
    found = read_all(cluster.bootstrap, topic)
    load.check_found(found)
    assert len(set(found.values())) == len(found)


def read_all(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> dict[tuple[int, int], bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    found: dict[tuple[int, int], bytes] = {}
    for number in range(PARTITIONS):
        consumer.assign([TopicPartition(topic, number, 0)])
        while True:
            message = consumer.poll(60)
            assert message is not None, "there is an end"
            if message.error() is not None:
                break
            offset, value = message.offset(), message.value()
            assert offset is not None
            assert value is not None
            found[number, offset] = value
    consumer.close()
    return found


STOPPED = pytest.mark.thorough(
    guard="tests/cluster/test_replication.py::test_a_node_ends_and_comes_back_while_records_are_written"
)


@pytest.mark.parametrize("way", ["kill", pytest.param("stop", marks=STOPPED)])
def test_a_node_ends_and_comes_back_while_records_are_written(cluster: MixedCluster, way: str) -> None:
    cluster.create_topic(way, PARTITIONS)
    load = AcknowledgedLoad(cluster.bootstrap, way, PARTITIONS)
    try:
        load.wait_for(500)
        for number in (1,) if way == "stop" else (3,):
            getattr(cluster[number], way)()
            load.wait_for(500)
            cluster[number].start()
            cluster.wait_for_in_sync(way, 3)
    except BaseException:
        load.give_up()
        raise
    check(cluster, load, way)


def test_a_partition_moves_to_another_node_while_it_is_written(cluster: MixedCluster) -> None:
    cluster.create_topic("moving", PARTITIONS, replicas=2)
    load = AcknowledgedLoad(cluster.bootstrap, "moving", PARTITIONS)
    try:
        load.wait_for(300)
        before = cluster.replicas("moving")
        targets = {number: [one for one in (1, 2, 3) if one != old[0]] for number, old in before.items()}
        cluster.reassign("moving", targets)
        wait_until(
            lambda: all(set(new) == set(targets[n]) for n, new in cluster.replicas("moving").items()),
            "the replicas are where they should be",
        )
        cluster.wait_for_in_sync("moving", 2)
        load.wait_for(300)
    except BaseException:
        load.give_up()
        raise
    load.finish()
    assert load.failures == []
    found = read_all(cluster.bootstrap, "moving")
    load.check_found(found)
    for number, old in before.items():
        left = cluster[old[0]].data_directory / f"moving-{number}"
        wait_until(lambda left=left: not left.exists(), "the old replica is removed")  # type: ignore[misc]


@pytest.mark.thorough(guard="tests/simulation/cluster/test_cluster.py")
def test_transactions_survive_their_coordinators(cluster: MixedCluster) -> None:
    """Each of the nodes coordinates some of them. A follower's long wait would show if it were needed."""
    cluster.create_topic("outcomes", PARTITIONS)
    is_over = threading.Event()
    committed: set[bytes] = set()
    aborted: set[bytes] = set()

    def run(name: str) -> None:
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "transactional.id": name, "linger.ms": 1, "log_level": 0}
        )
        producer.init_transactions(120)
        count = 0
        while not is_over.is_set() or count < 20:
            count += 1
            values = {f"{name} {count} {number}".encode() for number in range(PARTITIONS)}
            producer.begin_transaction()
            for number, value in enumerate(values):
                producer.produce("outcomes", value, partition=number)
            producer.flush(120)
            if count % 4 == 0:
                producer.abort_transaction(120)
                aborted.update(values)
            else:
                producer.commit_transaction(120)
                committed.update(values)

    threads = [threading.Thread(target=run, args=(f"producer {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(committed) > 60, "transactions are committed")
        cluster[2].kill()
        so_far = len(committed)
        wait_until(lambda: len(committed) > so_far + 60, "they go on without a node")
        cluster[2].start()
        cluster.wait_for_in_sync("outcomes", 3)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    seen = list(read_all(cluster.bootstrap, "outcomes", "read_committed").values())
    assert len(seen) == len(set(seen))
    assert committed <= set(seen)
    assert not aborted & set(seen)


@pytest.mark.parametrize(("kinds", "controller"), [("oaa", 1), ("aoo", 1)])
@pytest.mark.thorough(
    guard="tests/cluster/test_replication.py::test_a_node_ends_and_comes_back_while_records_are_written"
)
def test_replicas_on_apache_kafka_and_on_ottla_are_the_same_bytes(
    tmp_path: Path, kinds: str, controller: int
) -> None:
    """One kind has the controller and the coordinators of the other, and each leads and follows."""
    with MixedCluster(tmp_path, kinds, (controller,), QUICK) as cluster:
        cluster.create_topic("mixed", PARTITIONS)
        load = AcknowledgedLoad(cluster.bootstrap, "mixed", PARTITIONS)
        try:
            load.wait_for(500)
            cluster[3].kill()
            load.wait_for(500)
            cluster[3].start()
            cluster.wait_for_in_sync("mixed", 3)
            load.wait_for(200)
        except BaseException:
            load.give_up()
            raise
        check(cluster, load, "mixed")

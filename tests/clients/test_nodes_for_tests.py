"""`ottla.testing`: nodes for tests, used as their users do, with a client that nobody here wrote."""

import os
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from ottla.testing.conversation import NodeSaid
from ottla.testing.node import ProcessNode, ThreadNode
from ottla.testing.unittest_case import KafkaTestCase
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest


def send(bootstrap: str, topic: str, value: str, **properties: object) -> KafkaError | None:
    """Send one record, and return what became of it."""
    outcome: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **properties})
    producer.produce(topic, value, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(30)
    (error,) = outcome
    return error


def test_a_fresh_node_serves_a_client(kafka: ThreadNode) -> None:
    kafka.create_topic("orders", partitions=2)
    assert send(kafka.bootstrap, "orders", "coffee") is None
    assert kafka.values("orders") == [b"coffee"]


def test_records_written_by_the_helper_reach_a_consumer(kafka: ThreadNode) -> None:
    kafka.create_topic("orders")
    assert kafka.produce("orders", "coffee", "tea", key="alice", headers=[("from", b"web")]) == 0
    assert kafka.produce("orders", None, key="alice") == 2
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    messages = consumer.consume(3, timeout=30)
    consumer.close()
    assert [(message.key(), message.value()) for message in messages] == [
        (b"alice", b"coffee"),
        (b"alice", b"tea"),
        (b"alice", None),
    ]
    assert messages[0].headers() == [("from", b"web")]
    assert [record.headers for record in kafka.records("orders")] == [(("from", b"web"),)] * 2 + [()]


def test_only_committed_records_are_read(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "x"})
    producer.init_transactions(30)
    for value, ends_well in (("kept", True), ("lost", False), ("kept too", True)):
        producer.begin_transaction()
        producer.produce("t", value)
        producer.flush(30)
        (producer.commit_transaction if ends_well else producer.abort_transaction)(30)
    assert kafka.values("t") == [b"kept", b"kept too"]
    assert kafka.values("t", read_committed=False) == [b"kept", b"lost", b"kept too"]


def test_errors_of_the_node_are_raised(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    with pytest.raises(NodeSaid, match="TOPIC_ALREADY_EXISTS") as caught:
        kafka.create_topic("t")
    assert caught.value.error is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(NodeSaid, match="UNKNOWN_TOPIC_OR_PARTITION"):
        kafka.records("nothing")


@pytest.mark.kafka(settings={"num.partitions": "7", "auto.create.topics.enable": "true"})
def test_a_marker_gives_the_node_its_settings(kafka: ThreadNode) -> None:
    assert send(kafka.bootstrap, "made", "x") is None
    assert len(kafka.conversation.partitions("made")) == 7


def test_a_restart_keeps_data_and_port(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    kafka.produce("t", "before")
    port = kafka.port
    kafka.restart()
    kafka.produce("t", "after")
    assert kafka.port == port
    assert kafka.values("t") == [b"before", b"after"]


def test_the_shared_node_is_one_node(shared_kafka: ThreadNode, request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue("shared_kafka") is shared_kafka
    assert shared_kafka.ask(ListGroupsRequest()).error_code is ErrorCode.NONE


def test_a_process_survives_being_killed_and_paused(kafka_process: ProcessNode) -> None:
    kafka_process.create_topic("t")
    kafka_process.produce("t", "before")
    kafka_process.kill()
    assert not kafka_process.is_running
    kafka_process.start()
    kafka_process.pause()
    kafka_process.resume()
    assert kafka_process.values("t") == [b"before"]


def test_a_killed_process_is_brought_back_by_a_restart(kafka_process: ProcessNode) -> None:
    kafka_process.produce("t", "before")
    kafka_process.kill()
    kafka_process.restart()
    assert kafka_process.values("t") == [b"before"]


def test_a_topic_is_created_when_somebody_writes_to_it(kafka: ThreadNode) -> None:
    assert kafka.produce("by-helper", "x") == 0
    assert kafka.produce("by-helper-with-key", "x", key="k") == 0
    assert send(kafka.bootstrap, "by-client", "x") is None
    assert [len(kafka.conversation.partitions(topic)) for topic in ("by-helper", "by-client")] == [1, 1]


@pytest.mark.kafka(settings={"auto.create.topics.enable": "false"})
def test_no_topic_is_created_where_that_is_off(kafka: ThreadNode) -> None:
    for key in (None, "k"):
        with pytest.raises(NodeSaid, match="topic 't': UNKNOWN_TOPIC_OR_PARTITION"):
            kafka.produce("t", "x", key=key)


def test_a_partition_that_is_not_there_is_named(kafka: ThreadNode) -> None:
    kafka.create_topic("t", partitions=2)
    with pytest.raises(NodeSaid, match="'t' has no partition 2"):
        kafka.produce("t", "x", partition=2)


def test_keys_go_where_kafkas_own_clients_put_them(kafka: ThreadNode) -> None:
    kafka.create_topic("ours", partitions=7)
    kafka.create_topic("theirs", partitions=7)
    keys = [f"customer {number}" for number in range(40)]
    # librdkafka has another partitioner by default; this one is Java's.
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        kafka.produce("ours", "x", key=key)
        producer.produce("theirs", "x", key=key)
    producer.flush(30)
    places = {(record.key, record.partition) for record in kafka.records("ours")}
    assert places == {(record.key, record.partition) for record in kafka.records("theirs")}
    assert len({partition for _, partition in places}) == 7
    assert {record.partition for record in kafka.records("ours")} == set(range(7))


def test_records_are_waited_for(kafka: ThreadNode) -> None:
    def write_later() -> None:
        for number in range(3):
            assert send(kafka.bootstrap, "later", str(number)) is None

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(write_later)
        found = kafka.wait_for("later", 3)
        writing.result()
    assert [record.value for record in found] == [b"0", b"1", b"2"]
    assert kafka.wait_for("later", 0) == found


def test_waiting_ends_with_what_is_there(kafka: ThreadNode) -> None:
    with pytest.raises(TimeoutError, match="'never' does not exist after 0 s, but should have 1 records"):
        kafka.wait_for("never", 1, timeout_s=0)
    kafka.produce("t", "only")
    with pytest.raises(TimeoutError, match=r"'t' has 1 records after 0 s, not 2; the last is .*b'only'"):
        kafka.wait_for("t", 2, timeout_s=0)


# Faults


def test_a_refused_write_is_told_to_the_client(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    fault = kafka.faults.refuse("produce", ErrorCode.MESSAGE_TOO_LARGE)
    error = send(kafka.bootstrap, "t", "x")
    assert error is not None
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert fault.hits == 1
    assert kafka.values("t") == []
    fault.remove()
    assert send(kafka.bootstrap, "t", "y") is None


def test_a_client_retries_what_is_refused_for_a_while(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    fault = kafka.faults.refuse("produce", "not_enough_replicas", times=2)
    assert send(kafka.bootstrap, "t", "x", **{"retry.backoff.ms": 1, "retry.backoff.max.ms": 1}) is None
    assert fault.hits == 2
    assert kafka.values("t") == [b"x"]


def test_a_write_whose_answer_is_lost_is_not_written_twice(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    with kafka.faults.lose_answer("produce", times=1) as fault:
        assert send(kafka.bootstrap, "t", "x", **{"enable.idempotence": True}) is None
        assert fault.hits == 1
    assert kafka.values("t") == [b"x"]


def test_a_connection_that_ends_is_opened_again(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    fault = kafka.faults.disconnect(ApiKey.METADATA, times=1)
    assert send(kafka.bootstrap, "t", "x") is None
    assert fault.hits == 1


def test_a_client_asks_again_when_a_request_was_dropped(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    fault = kafka.faults.drop("produce", times=1)
    patience = {"request.timeout.ms": 500, "socket.timeout.ms": 1000, "enable.idempotence": True}
    assert send(kafka.bootstrap, "t", "x", **patience) is None
    assert fault.hits == 1
    assert kafka.values("t") == [b"x"]


def test_a_delayed_request_is_served_in_the_end(kafka: ThreadNode) -> None:
    kafka.create_topic("t")
    fault = kafka.faults.delay("produce", 0.05, times=1)
    assert send(kafka.bootstrap, "t", "x") is None
    assert fault.hits == 1
    assert kafka.values("t") == [b"x"]


def test_a_node_stops_while_requests_are_held(tmp_path: Path) -> None:
    with ThreadNode(tmp_path) as node:
        node.create_topic("t")
        fault = node.faults.delay("produce", 3600)
        producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0})
        producer.produce("t", "x")
        while not fault.hits:
            producer.poll(0.01)
    assert not node.is_running
    producer.purge()
    producer.flush(10)


def test_a_slow_disk_holds_up_acknowledged_writes(tmp_path: Path) -> None:
    with ThreadNode(tmp_path, {"ottla.acks.all.sync": "true"}) as node:
        node.create_topic("t")
        with node.faults.slow_disk(0.2):
            began = time.monotonic()
            assert send(node.bootstrap, "t", "x") is None
            assert time.monotonic() - began >= 0.2
        assert node.values("t") == [b"x"]


def test_a_node_stops_while_its_disk_is_slow(tmp_path: Path) -> None:
    with ThreadNode(tmp_path, {"ottla.acks.all.sync": "true"}) as node:
        node.create_topic("t")
        with node.faults.slow_disk(3600):
            producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0, "acks": "all"})
            producer.produce("t", "x")
            producer.poll(0)
            node.wait_for("t", 1)
            node.stop()
    producer.purge()
    producer.flush(10)


@pytest.mark.parametrize("release", ["2.1", "2.8", "3.9", "4.0"])
def test_a_node_can_pretend_to_be_an_older_broker(kafka: ThreadNode, release: str) -> None:
    kafka.faults.pretend(release)
    versions = {key.api_key: key.max_version for key in kafka.ask(ApiVersionsRequest(), 0).api_keys}
    assert versions[ApiKey.PRODUCE] == {"2.1": 7, "2.8": 9, "3.9": 11, "4.0": 12}[release]
    assert (ApiKey.CONSUMER_GROUP_HEARTBEAT in versions) == (release in ("3.9", "4.0"))
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "x"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", "value")
    producer.commit_transaction(30)
    kafka.faults.clear()
    kafka.restart()
    assert kafka.values("t") == [b"value"]


def test_a_request_newer_than_the_pretended_release_is_cut_off(kafka: ThreadNode) -> None:
    kafka.faults.pretend("2.8")
    with pytest.raises(ConnectionError, match="closed the connection"):
        kafka.ask(ListGroupsRequest(), 5)


def test_wrong_names_are_named(kafka: ThreadNode) -> None:
    with pytest.raises(ValueError, match="'prodduce' is not an API"):
        kafka.faults.drop("prodduce")
    with pytest.raises(ValueError, match=r"'not_enuff_replicas' is not an error.*mean 'not_enough_replicas"):
        kafka.faults.refuse("produce", "not_enuff_replicas")
    with pytest.raises(ValueError, match="mean 'not_enough_replicas"):
        kafka.faults.refuse("produce", "NotEnoughReplicasException")
    with pytest.raises(ValueError, match=r"unknown release '0\.9'"):
        kafka.faults.pretend("0.9")


# How it is plugged in


def test_pytest_starts_without_importing_ottla() -> None:
    script = (
        "import sys, ottla.testing.plugin; print([name for name in sys.modules if name.startswith('ottla.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['ottla.testing', 'ottla.testing.plugin']"


def test_unittest_gets_a_node_for_each_test() -> None:
    ports = []

    class Orders(KafkaTestCase):
        kafka_settings: ClassVar[Mapping[str, str]] = {"num.partitions": "3"}

        def test_one(self) -> None:
            self.kafka.create_topic("t")
            ports.append(self.kafka.port)

        def test_two(self) -> None:
            self.kafka.create_topic("t", partitions=-1)
            ports.append(len(self.kafka.conversation.partitions("t")))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Orders).run(result)
    assert result.wasSuccessful(), result.errors + result.failures
    assert ports[1] == 3


def test_a_node_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "diary.txt").write_text("dear diary")
    with pytest.raises(Exception, match=r"did not start.*not empty: it has diary\.txt"):
        ThreadNode(tmp_path).start()
    with pytest.raises(Exception, match=r"(?s)did not start.*diary\.txt"):
        ProcessNode(tmp_path).start()


def test_a_node_that_has_ended_by_itself_is_not_taken_for_one_that_was_killed(tmp_path: Path) -> None:
    node = ProcessNode(tmp_path)
    node.start()
    os.kill(node.pid, signal.SIGTERM)
    stat = Path(f"/proc/{node.pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    with pytest.raises(Exception, match="had ended before, with code 0"):
        node.kill()

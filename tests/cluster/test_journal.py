"""What a node writes to its journal, by real clients."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.client.sync import Admin
from ottla.testing.conversation import NodeSaid
from ottla.testing.node import ThreadNode
from ottla.testing.process_cluster import ProcessCluster

TOPIC = "__ottla_journal"
SETTINGS = {"ottla.journal.enable": "true", "ottla.journal.interval.ms": "1000"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadNode]:
    root: Path = tmp_path_factory.mktemp("journal")
    with ThreadNode(root, SETTINGS) as node:
        yield node


def journal(node: ThreadNode) -> list[bytes | None]:
    """Return what is in the journal, if there is one."""
    try:
        return node.values(TOPIC)
    except NodeSaid:
        return []


def events(node: ThreadNode, kind: str, **facts: Any) -> list[dict[str, Any]]:
    """Wait for events of a kind that have these facts, and return them."""
    deadline = time.monotonic() + 180
    while True:
        found = []
        for value in journal(node):
            event = json.loads(value or b"{}")
            if event["k"] == kind and all(event.get(name) == wanted for name, wanted in facts.items()):
                found.append(event)
        if found:
            return found
        assert time.monotonic() < deadline, f"no event {kind} with {facts}"
        time.sleep(0.1)


def joined(node: ThreadNode, topic: str, **settings: Any) -> Consumer:
    """Return a member that has got its partitions."""
    consumer = Consumer(
        {"bootstrap.servers": node.bootstrap, "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        | settings
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 180
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    return consumer


def test_the_journal_is_not_listed_and_can_be_named(node: ThreadNode) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
    producer.produce("listed", b"x")
    assert producer.flush(60) == 0
    events(node, "producer-seen")
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    listed = admin.list_topics(timeout=30).topics
    assert "listed" in listed
    assert TOPIC not in listed
    assert admin.list_topics(TOPIC, timeout=30).topics[TOPIC].error is None


def test_a_producer_is_known_by_its_client_and_where_it_writes(node: ThreadNode) -> None:
    node.create_topic("seen", 2)
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "client.id": "till-3", "enable.idempotence": True}
    )
    producer.produce("seen", b"x", partition=1)
    assert producer.flush(60) == 0
    (seen,) = events(node, "producer-seen", client="till-3")
    assert (seen["host"], seen["txn"], seen["epoch"]) == ("127.0.0.1", None, 0)
    (wrote,) = events(node, "producer-wrote", producer=seen["producer"])
    assert wrote["at"] == "seen/1"
    assert any(event["ends"].get("seen/1") == 1 for event in events(node, "appended-at"))


def test_where_a_reader_began_is_told(node: ThreadNode) -> None:
    node.create_topic("begun", 1)
    node.produce("begun", "a", "b")
    for reset, asked in (("latest", [-1, 2]), ("earliest", [-2, 0])):
        settings = {"group.id": reset, "client.id": f"from-{reset}", "auto.offset.reset": reset}
        consumer = joined(node, "begun", **settings)
        deadline = time.monotonic() + 180
        while True:
            consumer.poll(0.1)
            said = [
                event["began"]
                for event in events(node, "fetch-position", client=f"from-{reset}")
                if "began" in event
            ]
            if said:
                break
            assert time.monotonic() < deadline
        consumer.close()
        assert said == [{"begun/0": asked}]


def test_a_producer_without_an_id_that_comes_and_goes_is_told(node: ThreadNode) -> None:
    node.create_topic("imported", 1)
    for _ in range(2):
        producer = Producer({"bootstrap.servers": node.bootstrap, "client.id": "importer"})
        producer.produce("imported", b"x")
        assert producer.flush(60) == 0
        del producer
    deadline = time.monotonic() + 180
    while len({event["port"] for event in events(node, "writes", client="importer", closed=True)}) < 2:
        assert time.monotonic() < deadline


def test_a_member_whose_assignors_do_not_match_is_told_with_its_group(node: ThreadNode) -> None:
    node.create_topic("assigned", 1)
    first = joined(node, "assigned", **{"group.id": "mixed", "partition.assignment.strategy": "range"})
    other = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "mixed",
            "client.id": "newer",
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    other.subscribe(["assigned"])
    refused: list[dict[str, Any]] = []
    deadline = time.monotonic() + 180
    while not refused:
        other.poll(0.1)
        lines = [json.loads(value or b"{}") for value in journal(node)]
        refused = [line for line in lines if line["k"] == "join-refused" and line["group"] == "mixed"]
        assert time.monotonic() < deadline
    assert refused[0]["offers"] == ["cooperative-sticky"]
    assert (refused[0]["client"], refused[0]["error"]) == ("newer", "INCONSISTENT_GROUP_PROTOCOL")
    other.close()
    first.close()


def test_where_clients_read_is_sampled(node: ThreadNode) -> None:
    node.create_topic("read", 1)
    node.produce("read", "a", "b")
    consumer = joined(node, "read", **{"group.id": "readers", "client.id": "reader-1"})
    deadline = time.monotonic() + 180
    while not any(
        event["at"] == {"read/0": 2} for event in events(node, "fetch-position", client="reader-1")
    ):
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    consumer.pause([TopicPartition("read", 0)])
    while True:
        consumer.poll(0.1)
        if any(json.loads(value or b"{}")["k"] == "fetch-stopped" for value in journal(node)):
            break
        assert time.monotonic() < deadline
    consumer.close()
    (left,) = events(node, "member-left", group="readers")
    assert (left["why"], left["connected"], left["client"]) == ("left", False, "reader-1")


def test_a_member_that_exceeds_its_poll_interval_leaves_and_stays_connected(node: ThreadNode) -> None:
    node.create_topic("polled", 1)
    consumer = joined(
        node, "polled", **{"group.id": "slow", "max.poll.interval.ms": 6000, "client.id": "slow-1"}
    )
    (left,) = events(node, "member-left", group="slow")
    assert (left["why"], left["connected"]) == ("left", True)
    consumer.close()


def test_refused_requests_are_counted(node: ThreadNode) -> None:
    node.create_topic("short", 1)
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "far",
            "client.id": "far-1",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition("short", 0, 1000)])
    consumer.poll(1)
    (refused,) = events(node, "request-refused", api="fetch", error="OFFSET_OUT_OF_RANGE")[:1]
    assert refused["count"] >= 1
    consumer.close()


def test_added_partitions_are_told(node: ThreadNode) -> None:
    from tests.cli.typing import succeed

    node.create_topic("grown", 2)
    succeed("topic", "alter", "grown", "--partitions=5", bootstrap=node.bootstrap)
    (added,) = events(node, "partitions-added", topic="grown")
    assert added["partitions"] == 5


@pytest.mark.thorough(
    guard="tests/simulation/node/test_journal.py::test_what_a_node_saw_is_on_other_nodes_too"
)
def test_each_node_of_a_cluster_has_a_partition_of_its_own(tmp_path: Path) -> None:
    with ProcessCluster(tmp_path, settings=SETTINGS) as cluster:
        cluster.create_topic("noted")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        deadline = time.monotonic() + 120
        while True:
            topic = admin.list_topics(TOPIC, timeout=60).topics.get(TOPIC)
            if topic is not None and len(topic.partitions) == 3:
                break
            assert time.monotonic() < deadline, topic
            time.sleep(0.1)
        assert sorted(partition.replicas[0] for partition in topic.partitions.values()) == [1, 2, 3]
        check_no_follower_is_taken_for_a_client(cluster)


def check_no_follower_is_taken_for_a_client(cluster: ProcessCluster) -> None:
    """Wait until the journal has seen a write, and see that it knows only its client."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "till-4"})
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "check"})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(3)])
    seen: list[tuple[str, str]] = []
    deadline = time.monotonic() + 120
    while not any("till-4" in subject for subject, _ in seen):
        assert time.monotonic() < deadline, seen
        producer.produce("noted", b"x")
        assert producer.flush(60) == 0
        for message in consumer.consume(1000, 0.5):
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert value is not None
            seen.append((key.decode(), json.loads(value)["k"]))
    consumer.close()
    assert [one for one in seen if "-fetcher-" in one[0]] == []


def test_who_was_never_a_member_has_not_left(node: ThreadNode) -> None:
    node.create_topic("guarded", 1)
    consumer = joined(node, "guarded", **{"group.id": "guarded", "client.id": "guard-1"})
    with Admin(node.bootstrap) as admin:
        assert list(admin.groups.remove_members("guarded", ["nobody"]).failed) == ["nobody"]
    consumer.close()
    (left,) = events(node, "member-left", group="guarded")
    assert left["client"] == "guard-1"

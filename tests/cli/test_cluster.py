"""`ottla cluster`, on three brokers of Apache Kafka: described, moved, balanced, emptied."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cli.typing import fail, run, succeed
from tests.java.apache_cluster import apache_cluster

pytestmark = pytest.mark.live_oracle


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Brokers 0 and 2 are in rack a, broker 1 in rack b."""
    with apache_cluster(tmp_path_factory.mktemp("three")) as nodes:
        bootstrap = nodes[0].bootstrap
        described_until(lambda shown: [node["state"] for node in shown["nodes"]] == ["up"] * 3, bootstrap)
        yield bootstrap


@pytest.fixture(autouse=True)
def no_topics_stay(three: str) -> Iterator[None]:
    """Tests run in any order, and what one leaves would weigh in the next one's balance."""
    yield
    for topic in succeed("topic", "list", "--json", bootstrap=three).data:
        succeed("topic", "delete", topic["topic"], "--yes", bootstrap=three)
    described_until(lambda shown: all(node["replicas"] == 0 for node in shown["nodes"]), three)


def described_until(holds: Callable[[Any], bool], bootstrap: str) -> Any:
    """Describe the cluster until it is as it should be."""
    deadline = time.monotonic() + 120
    while not holds(shown := succeed("cluster", "describe", "--json", bootstrap=bootstrap).data):
        assert time.monotonic() < deadline, shown
        time.sleep(0.1)
    return shown


def create(bootstrap: str, name: str, *assignment: tuple[int, ...]) -> None:
    """Make a topic on these brokers: a partition is moved where it is to be."""
    succeed(
        "topic",
        "create",
        name,
        f"--partitions={len(assignment)}",
        f"--replication-factor={len(assignment[0])}",
        bootstrap=bootstrap,
    )
    for number, brokers in enumerate(assignment):
        wanted = ",".join(map(str, brokers))
        succeed("cluster", "reassign", name, f"--partition={number}", f"--to={wanted}", bootstrap=bootstrap)


def replicas_of(bootstrap: str, name: str) -> list[list[int]]:
    described = succeed("topic", "describe", name, "--json", bootstrap=bootstrap).data
    return [partition["replicas"] for partition in described["partitions"]]


def test_nodes_are_described_with_their_racks_and_shares(three: str) -> None:
    create(three, "described", (0, 1), (1, 2))
    shown = described_until(lambda shown: shown["under_replicated"] == 0, three)
    assert [(node["node"], node["rack"]) for node in shown["nodes"]] == [(0, "a"), (1, "b"), (2, "a")]
    assert shown["offline"] == shown["below_min_in_sync"] == 0
    assert all(len(node["directories"]) == 1 for node in shown["nodes"])
    text = succeed("cluster", "describe", bootstrap=three).out
    assert "below min in sync: 0" in text
    assert "NODE  ADDRESS" in text
    problems = succeed("cluster", "describe", "--problems", bootstrap=three)
    assert problems.err == "all partitions have their leaders and all their replicas\n"


def test_a_partition_moves_throttled_and_the_throttle_is_taken_back(three: str) -> None:
    create(three, "moved", (0, 1))
    succeed("produce", "moved", "--value=x", bootstrap=three)
    moved = succeed(
        "cluster", "reassign", "moved", "--to=2,1", "--throttle=1000000", "--json", bootstrap=three
    ).data
    assert moved == {"moved": [{"topic": "moved", "partition": 0, "replicas": [2, 1]}]}
    assert replicas_of(three, "moved") == [[2, 1]]
    assert succeed("topic", "describe", "moved", "--json", bootstrap=three).data["configs"] == {}
    again = succeed("cluster", "reassign", "moved", "--to=2,1", bootstrap=three)
    assert again.out == "all partitions are where they should be\n"
    listed = succeed("cluster", "reassign", "--json", bootstrap=three)
    assert listed.data == []
    called_off = succeed("cluster", "reassign", "--cancel", bootstrap=three)
    assert called_off.out == "no moves are under way\n"


def test_moves_are_read_from_a_file_of_kafkas_own_tool(three: str, tmp_path: Path) -> None:
    create(three, "from-file", (0, 1))
    path = tmp_path / "moves.json"
    wanted = [{"topic": "from-file", "partition": 0, "replicas": [1, 2]}]
    path.write_text(json.dumps({"version": 1, "partitions": wanted}))
    succeed("cluster", "reassign", f"--file={path}", bootstrap=three)
    assert replicas_of(three, "from-file") == [[1, 2]]
    path.write_text("{}")
    assert "is not a list of moves" in fail("cluster", "reassign", f"--file={path}", bootstrap=three)


def test_a_cluster_is_balanced_by_a_plan_that_can_be_looked_at_first(three: str) -> None:
    create(three, "heaped", *[(0,)] * 6)
    plan = succeed("cluster", "balance", "--plan", "--json", bootstrap=three).data
    assert plan["partitions"], "one broker has everything"
    assert replicas_of(three, "heaped") == [[0]] * 6, "nothing was moved"
    text = succeed("cluster", "balance", "--plan", bootstrap=three).out
    assert "WILL BE" in text
    assert "->" in text
    succeed("cluster", "balance", "--yes", bootstrap=three)
    assert succeed("cluster", "balance", "--yes", bootstrap=three).out == "the cluster is in balance\n"
    assert {one for (one,) in replicas_of(three, "heaped")} == {0, 1, 2}


def test_what_is_written_meanwhile_is_weighed(three: str) -> None:
    create(three, "busy", *[(0,)] * 4)
    is_over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": three, "log_level": 0})
        while not is_over.is_set():
            producer.produce("busy", b"x" * 10_000, partition=0)
            producer.flush(10)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        text = succeed("cluster", "balance", "--plan", "--measure=2", bootstrap=three).out
    finally:
        is_over.set()
        writing.join()
    assert "BYTES PER S" in text
    rates = [int(rate) for rate in re.findall(r"(\d+) -> \d+\s*$", text, re.MULTILINE)]
    assert rates[0] > 0, "broker 0 has the busy partition"


def test_a_node_is_emptied(three: str) -> None:
    create(three, "drained", (2, 1), (1, 2))
    succeed("cluster", "drain", "2", "--yes", bootstrap=three)
    node = succeed("cluster", "describe", "--json", bootstrap=three).data["nodes"][2]
    assert (node["node"], node["replicas"], node["leaders"]) == (2, 0, 0)
    assert succeed("cluster", "drain", "2", "--yes", bootstrap=three).out == "node 2 holds nothing\n"
    assert "there is no broker 7" in fail("cluster", "drain", "7", "--yes", bootstrap=three)


def test_a_node_cannot_be_emptied_when_all_are_needed(three: str) -> None:
    create(three, "needed", (0, 1, 2))
    said = fail("cluster", "drain", "1", "--yes", bootstrap=three)
    assert "has 3 replicas, and only 2 brokers would be left for them" in said


def test_preferred_leaders_are_elected(three: str) -> None:
    create(three, "elected", (1, 0))
    assert succeed("cluster", "elect", "elected", bootstrap=three).out == "no election was needed\n"
    assert succeed("cluster", "elect", "--json", bootstrap=three).data == {"elected": []}
    wrong = run("cluster", "elect", "--partition=1", bootstrap=three)
    assert wrong.code == 2
    assert "--partition needs a TOPIC" in wrong.err

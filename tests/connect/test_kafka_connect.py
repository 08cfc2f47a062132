"""A worker of Kafka Connect goes on where ours was, and the other way round, on the same three topics.

Both can also be in one group at the same time.
"""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.connect.reading import read_topic
from tests.java.connect_worker import KafkaConnectWorker, connect_classpath
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

pytestmark = pytest.mark.live_oracle

NAMES = {
    "group.id": "both",
    "config.storage.topic": "both-configs",
    "offset.storage.topic": "both-offsets",
    "status.storage.topic": "both-status",
    "offset.storage.partitions": "2",
    "status.storage.partitions": "1",
}
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def _append(path: Path, numbers: range) -> None:
    with path.open("a") as file:
        file.writelines(f"line-{number}\n" for number in numbers)


def _wait_for(worker: Any, path: str, expected: Any) -> None:
    deadline_s = time.monotonic() + 90
    while True:
        _, answer = worker.ask("GET", path)
        if answer == expected:
            return
        assert time.monotonic() < deadline_s, f"{path} answers {answer}"
        time.sleep(0.2)


def _lines(node: OttlaNode, topic: str, count: int) -> list[str]:
    return [record.value.decode() for record in read_topic(node.bootstrap, topic, count)]


def test_workers_of_both_kinds_take_over_from_each_other(node: OttlaNode, tmp_path: Path, name: str) -> None:
    connect_classpath()
    lines, parked = tmp_path / "lines", f"{name}-parked"
    config = {"connector.class": SOURCE, "file": str(lines), "topic": name, "tasks.max": "1"}
    options = [part for key, value in NAMES.items() for part in ("--set", f"{key}={value}")]
    at = {"filename": str(lines)}
    _append(lines, range(10))
    with ConnectProcess(node.bootstrap, *options) as ours:
        ours.ask("PUT", f"/connectors/{name}/config", config)
        body = {"name": parked, "config": {**config, "topic": parked}, "initial_state": "STOPPED"}
        ours.ask("POST", "/connectors", body)
        _wait_for(
            ours, f"/connectors/{name}/offsets", {"offsets": [{"partition": at, "offset": {"position": 70}}]}
        )

    with KafkaConnectWorker(tmp_path / "java", node.bootstrap, NAMES) as theirs:
        assert sorted(theirs.ask("GET", "/connectors")[1]) == sorted([name, parked])
        assert theirs.ask("GET", f"/connectors/{name}/config")[1] == {**config, "name": name}
        _append(lines, range(10, 20))
        # Its tasks are those that ours has written, and it goes on at the position of ours.
        assert _lines(node, name, 20) == [f"line-{number}" for number in range(20)]
        assert theirs.ask("GET", f"/connectors/{parked}/status")[1]["connector"]["state"] == "STOPPED"
        assert theirs.ask("PUT", f"/connectors/{parked}/resume")[0] == 202
        assert _lines(node, parked, 20) == [f"line-{number}" for number in range(20)]
        theirs.ask("PUT", f"/connectors/{parked}/pause")

    with ConnectProcess(node.bootstrap, *options) as ours:
        assert sorted(ours.ask("GET", "/connectors")[1]) == sorted([name, parked])
        # It left in order, so its positions are stored.
        _append(lines, range(20, 30))
        assert _lines(node, name, 30) == [f"line-{number}" for number in range(30)]
        ours.wait_for(f"/connectors/{parked}/status", lambda answer: answer["connector"]["state"] == "PAUSED")


MIXED = {
    **{name: text.replace("both", "mixed") for name, text in NAMES.items()},
    "session.timeout.ms": "8000",
    "heartbeat.interval.ms": "1000",
}
CONNECTORS = ("one", "two", "three", "four")


def _runners(worker: Any) -> dict[str, str] | None:
    """Return which worker runs the task of each connector. None: not all of them run."""
    found = {}
    for connector in CONNECTORS:
        _, answer = worker.ask("GET", f"/connectors/{connector}/status")
        states = [answer.get("connector", {}), *answer.get("tasks", [])]
        if len(states) != 2 or any(item.get("state") != "RUNNING" for item in states):
            return None
        found[connector] = states[1]["worker_id"]
    return found


def _wait_for_runners(worker: Any, ports: set[int]) -> None:
    """Wait until all connectors run, on all of these workers and on no others."""
    expected = {f"127.0.0.1:{port}" for port in ports}
    deadline_s = time.monotonic() + 120
    while (found := _runners(worker)) is None or set(found.values()) != expected:
        assert time.monotonic() < deadline_s, f"{found}, and not {expected}"
        time.sleep(0.3)


def test_workers_of_both_kinds_share_connectors_in_one_group(node: OttlaNode, tmp_path: Path) -> None:
    connect_classpath()
    # A worker of Kafka cannot prove that it is one.
    options = [
        "--trust-group",
        *(part for key, value in MIXED.items() for part in ("--set", f"{key}={value}")),
    ]
    ours = ConnectProcess(node.bootstrap, *options)
    with KafkaConnectWorker(tmp_path / "java", node.bootstrap, MIXED) as theirs:
        ours.start()
        for number, connector in enumerate(CONNECTORS):
            _append(tmp_path / connector, range(10))
            config = {
                "connector.class": SOURCE,
                "file": str(tmp_path / connector),
                "topic": f"mixed-{connector}",
                "tasks.max": "1",
            }
            # One of them leads, and the other one forwards.
            status, answer = (ours, theirs)[number % 2].ask("PUT", f"/connectors/{connector}/config", config)
            assert status == 201, answer
        _wait_for_runners(ours, {ours.port, theirs.port})
        _wait_for_runners(theirs, {ours.port, theirs.port})

        ours.kill()
        _wait_for_runners(theirs, {theirs.port})
        for connector in CONNECTORS:
            _append(tmp_path / connector, range(10, 20))
            assert _lines(node, f"mixed-{connector}", 20) == [f"line-{number}" for number in range(20)]

        ours.start()
        _wait_for_runners(ours, {ours.port, theirs.port})
    # It left in order, so its positions are stored. Now ours leads.
    _wait_for_runners(ours, {ours.port})
    for connector in CONNECTORS:
        _append(tmp_path / connector, range(20, 30))
        assert _lines(node, f"mixed-{connector}", 30) == [f"line-{number}" for number in range(30)]
    assert ours.ask("DELETE", f"/connectors/{CONNECTORS[0]}") == (204, None)
    ours.stop()

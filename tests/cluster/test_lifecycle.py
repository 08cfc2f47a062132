"""A node as a process: how it starts, stops, refuses, and comes back."""

import json
import signal
import socket
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.ottla_node import OttlaNode, ottla_command
from tests.support.plain_client import PlainClient

from ottla.model.uuid import ZERO_UUID
from ottla.testing.ports import free_port
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(ottla_command(*arguments), capture_output=True, text=True, timeout=60)


def test_a_node_prints_one_line_and_stops_cleanly_on_a_signal(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as node:
        process = node.process
        assert process is not None
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == ""
        assert process.wait(60) == 0
    marker = json.loads((node.data_directory / ".kafka_cleanshutdown").read_text())
    assert marker["version"] == 0
    assert marker["brokerEpoch"] > 0


@pytest.mark.parametrize("ends_cleanly", [True, False])
def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path, ends_cleanly: bool) -> None:
    with OttlaNode(tmp_path) as node:
        with PlainClient(node.bootstrap) as client:
            create_topic(client, "kept", partitions=2)
            for number in range(20):
                answer = produce(client, "kept", batch_of(b"%d" % number), number % 2)
                assert answer.error_code is ErrorCode.NONE
        if ends_cleanly:
            assert node.stop() == 0
        else:
            node.kill()

    with OttlaNode(tmp_path) as again, PlainClient(again.bootstrap) as client:
        for partition in range(2):
            expected = [b"%d" % number for number in range(partition, 20, 2)]
            assert fetch_all(client, "kept", partition) == expected
        answer = produce(client, "kept", batch_of(b"one more"))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 10)
    log = node.read_log()
    assert ("after a clean shutdown" in log) == ends_cleanly


def test_the_leader_epoch_grows_with_every_start(tmp_path: Path) -> None:
    epochs: list[int] = []
    for _ in range(3):
        with OttlaNode(tmp_path) as node, PlainClient(node.bootstrap) as client:
            if not epochs:
                create_topic(client, "epochs")
            answer = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="epochs"),)))
            epochs.append(answer.topics[0].partitions[0].leader_epoch)
    assert epochs == sorted(set(epochs))


def test_a_deleted_topic_stays_deleted(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as node, PlainClient(node.bootstrap) as client:
        create_topic(client, "gone")
        produce(client, "gone", batch_of(b"old"))
        client.ask(
            DeleteTopicsRequest(topics=(DeleteTopicState(name="gone", topic_id=ZERO_UUID),), timeout_ms=1000)
        )
        assert not (node.data_directory / "gone-0").exists()
        create_topic(client, "gone")
        assert fetch_all(client, "gone") == []
    with OttlaNode(tmp_path) as node, PlainClient(node.bootstrap) as client:
        assert fetch_all(client, "gone") == []


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_a_listener_beyond_this_machine_needs_authentication(tmp_path: Path, host: str) -> None:
    done = run("up", "--data", str(tmp_path), "--host", host, "--port", "0")
    assert done.returncode == 1
    assert "without authentication" in done.stderr
    assert done.stdout == ""


def test_a_port_in_use_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        done = run("up", "--data", str(tmp_path), "--port", str(port))
        # Nor is a directory made for a node that does not start.
        again = run("up", "--data", str(tmp_path / "new"), "--port", str(port))
    assert done.returncode == 1
    assert not (tmp_path / "new").exists()
    assert again.returncode == 1
    assert f"Error: cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as node:
        done = run("up", "--data", str(node.data_directory), "--port", "0")
        assert f"process {node.pid} is using it: stop that process first" in done.stderr
    assert done.returncode == 1


def test_a_directory_with_other_things_in_it_is_not_formatted(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = run("up", "--data", str(tmp_path), "--port", "0")
    assert done.returncode == 1
    assert "thesis.txt" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    assert run("storage", "format", "--data", str(tmp_path), "--set", "node.id=7").returncode == 0
    done = run("up", "--data", str(tmp_path), "--port", "0", "--set", "node.id=8")
    assert done.returncode == 1
    assert "belongs to node 7" in done.stderr


def test_wrong_usage_and_wrong_configs_are_told_apart(tmp_path: Path) -> None:
    assert run("up", "--no-such-option").returncode == 2
    assert run("up", "--set", "no-equals-sign").returncode == 2
    done = run("up", "--data", str(tmp_path), "--set", "num.partitions=many")
    assert done.returncode == 1
    assert "num.partitions" in done.stderr


def test_formatting_twice_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    cluster_id = "b3R0bGEtdGVzdC1jbHVzdA"
    done = run("storage", "format", "--data", str(tmp_path), "--cluster-id", cluster_id)
    assert (done.returncode, done.stdout) == (0, f"formatted {tmp_path} for cluster {cluster_id}\n")
    assert run("storage", "format", "--data", str(tmp_path)).returncode == 1
    assert run("storage", "format", "--data", str(tmp_path), "--ignore-formatted").returncode == 0
    assert (
        run("storage", "format", "--data", str(tmp_path / "x"), "--cluster-id", "two words").returncode == 1
    )


def test_log_lines_can_be_json(tmp_path: Path) -> None:
    with OttlaNode(tmp_path, options=["--log-format", "json"]) as node:
        pass
    lines = [json.loads(line) for line in node.read_log().splitlines()]
    assert {"time_ms", "level", "logger", "message"} <= lines[0].keys()


def test_clients_are_told_the_address_they_connected_to(tmp_path: Path) -> None:
    with OttlaNode(tmp_path, {"listeners": "PLAINTEXT://localhost:9092"}) as node:
        with PlainClient(node.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=()))
        assert [(broker.host, broker.port) for broker in answer.brokers] == [("127.0.0.1", node.port)]


def test_several_listeners_serve(tmp_path: Path) -> None:
    second = free_port()
    listeners = f"PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.1:{second}"
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with OttlaNode(tmp_path, settings) as node, PlainClient(f"127.0.0.1:{second}") as client:
        answer = client.ask(MetadataRequest(topics=()))
        assert [broker.port for broker in answer.brokers] == [second]
        assert node.port != second


def test_metrics_are_served_where_the_node_is_told_to(tmp_path: Path) -> None:
    port = free_port()
    settings = {"ottla.metrics.port": str(port)}
    with OttlaNode(tmp_path, settings) as node, PlainClient(node.bootstrap) as client:
        create_topic(client, "counted", partitions=3)
        produce(client, "counted", batch_of(b"v" * 1000))
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['ottla_requests_total{api="produce",version="12"}']) == 1
    assert float(values['ottla_request_bytes_total{api="produce",version="12"}']) > 1000
    assert float(values['ottla_request_seconds_count{api="produce"}']) == 1
    assert float(values["ottla_connections"]) == 1
    assert float(values["ottla_partitions"]) == 3
    assert float(values['ottla_log_bytes{topic="counted"}']) > 1000


def test_a_terminal_that_is_closed_stops_a_node_in_order(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as node:
        assert node.hang_up() == 0
        assert (node.data_directory / ".kafka_cleanshutdown").exists()

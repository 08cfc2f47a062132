"""`ottla up --nodes 3 --secure`: one command makes three nodes that nobody can use without a password."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.ottla_node import ottla_command
from tests.support.plain_client import PlainClient

from ottla.testing.ports import free_port, is_free
from ottla.wire.messages.metadata import MetadataRequest

NODES = 3


def free_ports_of_nodes() -> int:
    """Return a port from which on all nodes find their ports free."""
    while True:
        port = free_port()
        if all(is_free(port + shift + number) for shift in (0, 1000, 2000) for number in range(NODES)):
            return port


@contextlib.contextmanager
def running(root: Path, port: int) -> Iterator[str]:
    """Run the nodes. Gives the addresses that the command prints."""
    command = ottla_command(
        "up", "--nodes", str(NODES), "--secure", "--port", str(port),
        "--data", str(root / "data"), "--clients", str(root / "clients"),
    )  # fmt: skip
    with (root / "nodes.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("ready "), (root / "nodes.log").read_text()
        yield line.split()[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        process.stdout.close()


def run(root: Path, *arguments: str, text: str | None = None) -> str:
    environment = {**os.environ, "OTTLA_CONFIG": str(root / "clients" / "ottla.toml")}
    done = subprocess.run(
        ottla_command(*arguments), input=text, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_three_nodes_ask_for_a_login_and_clients_find_their_files(tmp_path: Path) -> None:
    port = free_ports_of_nodes()
    with running(tmp_path, port) as addresses:
        assert addresses == ",".join(f"127.0.0.1:{port + number}" for number in range(NODES))
        run(tmp_path, "topic", "create", "greetings")
        run(tmp_path, "produce", "greetings", text="hello\n")
        settings = dict(
            line.split("=", 1) for line in (tmp_path / "clients" / "librdkafka.conf").read_text().splitlines()
        )
        assert settings["bootstrap.servers"] == addresses
        producer = Producer({**settings, "acks": "all", "log_level": 0})
        producer.produce("greetings", b"again")
        assert producer.flush(60) == 0
        for address in addresses.split(","):
            with PlainClient(address) as client:
                client.send(MetadataRequest(topics=None))
                with pytest.raises((ConnectionError, AssertionError, EOFError)):
                    client.receive()
        password = (tmp_path / "clients" / "admin.password").read_text().strip()
        for path in (tmp_path / "data").glob("*.properties"):
            assert password not in path.read_text()
    # The next start finds the password, and the records.
    with running(tmp_path, port):
        assert run(tmp_path, "consume", "greetings").split() == ["hello", "again"]

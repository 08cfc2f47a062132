"""Directories change hands by the commands that the docs and `ottla graduate` name, typed as they are."""

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.typing import fail, succeed
from tests.java.apache_kafka import CLUSTER_ID, ApacheKafka, free_ports
from tests.java.jars import java_classpath
from tests.support.every_client import use_every_client
from tests.support.mixed_cluster import wait_until
from tests.support.ottla_node import ottla_command

from ottla.cli.directories.hand_over import ask_until_answered
from ottla.cli.failure import Failure
from ottla.cli.settings import load_settings
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.errors import BrokerError
from ottla.client.sync import Admin
from ottla.model.ids import TopicPartition
from ottla.testing.node import ThreadNode


@contextmanager
def typed(command: str) -> Iterator[str]:
    """Run `ottla up` as it was told, on a free port, and give the address. Afterwards it is stopped."""
    ottla, *words = shlex.split(command)
    assert ottla == "ottla"
    with subprocess.Popen(
        ottla_command(*words, "--port=0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("ready "), process.communicate(timeout=60)[1]
            yield line.split()[1]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                _, said = process.communicate(timeout=60)
                assert process.returncode == 0, said


def values(bootstrap: str) -> list[str]:
    return succeed("consume", "moved", "--format=value", bootstrap=bootstrap).out.split()


@pytest.mark.parametrize("quorum", ["dynamic", "static"])
@pytest.mark.thorough(guard="tests/golden/test_take_over.py")
def test_a_directory_of_apache_kafka_says_which_node_it_is(tmp_path: Path, quorum: str) -> None:
    data = tmp_path / "a directory"
    kafka = ApacheKafka(tmp_path / "kafka", {"node.id": "1"}, data_directory=data)
    if quorum == "static":
        del kafka.properties["controller.quorum.bootstrap.servers"]
        kafka.properties["controller.quorum.voters"] = f"1@127.0.0.1:{kafka.controller_port}"
        settings = tmp_path / "static.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in kafka.properties.items()))
        kafka._run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(settings))
    with kafka:
        succeed("topic", "create", "moved", bootstrap=kafka.bootstrap)
        succeed("produce", "moved", "-v", "kafka", bootstrap=kafka.bootstrap)
    with typed(f"ottla up --data {shlex.quote(str(data))}") as bootstrap:
        assert values(bootstrap) == ["kafka"]
        succeed("produce", "moved", "-v", "ottla", bootstrap=bootstrap)
    with kafka:
        assert values(kafka.bootstrap) == ["kafka", "ottla"]
    info = succeed("storage", "info", str(data), "--json").data
    assert (info["node_id"], info["cluster_id"]) == (1, CLUSTER_ID)
    assert "node" in fail("up", "--data", str(data), "--set", "node.id=0", "--port=0")


@pytest.mark.thorough(
    guard="tests/cluster/test_take_over.py::test_the_journal_is_compared_though_ottla_does_not_list_it"
)
def test_the_way_to_apache_kafka_and_back_is_as_graduate_says(tmp_path: Path) -> None:
    data, output = tmp_path / "my data", tmp_path / "server.properties"
    with typed(f"ottla up --set node.id=7 --data {shlex.quote(str(data))}") as bootstrap:
        succeed("topic", "create", "moved", bootstrap=bootstrap)
        succeed("produce", "moved", "-v", "ottla", bootstrap=bootstrap)
    said = succeed("graduate", str(data), "--output", str(output)).out
    there, back = re.findall(r"^  (.*)$", said, re.MULTILINE)
    assert shlex.split(there) == ["bin/kafka-server-start.sh", str(output)]
    port, controller_port = free_ports(2)
    # Others may use the ports that it names.
    text = output.read_text().replace(":9092", f":{port}").replace(":9093", f":{controller_port}")
    properties = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    kafka = ApacheKafka(tmp_path / "kafka", data_directory=data)
    kafka.port, kafka.bootstrap, kafka.properties = port, f"127.0.0.1:{port}", properties
    with kafka:
        assert values(kafka.bootstrap) == ["ottla"]
        succeed("produce", "moved", "-v", "kafka", bootstrap=kafka.bootstrap)
    with typed(back) as bootstrap:
        assert values(bootstrap) == ["ottla", "kafka"]


@pytest.fixture
def kafka_home(tmp_path: Path) -> str:
    """A directory as that of an Apache Kafka that was unpacked."""
    home = tmp_path / "kafka-home"
    home.mkdir()
    (home / "libs").symlink_to(java_classpath().removesuffix("/*"))
    return str(home)


def wait_for_journal(bootstrap: str) -> None:
    """Wait until the node has noted something of its clients."""
    where = TopicPartition("__ottla_journal", 0)
    with Admin(bootstrap) as admin:

        def is_there() -> bool:
            try:
                return admin.offsets.list({where: OffsetSpec.LATEST}).check()[where].offset > 0
            except BrokerError:
                return False

        wait_until(is_there, "the journal has records")


def verify(data: Path, kafka_home: str) -> None:
    output = ("--output", str(data.with_name("server.properties")), "--force")
    said = succeed("graduate", str(data), *output, "--verify", "--kafka-home", kafka_home)
    assert "Apache Kafka reads the same data from a copy" in said.out


@pytest.mark.thorough(
    guard="tests/cluster/test_take_over.py::test_the_journal_is_compared_though_ottla_does_not_list_it"
)
def test_what_a_default_node_leaves_is_the_same_for_apache_kafka(tmp_path: Path, kafka_home: str) -> None:
    data = tmp_path / "data"
    with typed(f"ottla up --data {shlex.quote(str(data))}") as bootstrap:
        use_every_client(bootstrap, "here")
        wait_for_journal(bootstrap)
    verify(data, kafka_home)


@pytest.mark.thorough(
    guard="tests/cluster/test_take_over.py::test_the_journal_is_compared_though_ottla_does_not_list_it"
)
def test_what_both_servers_leave_is_the_same_for_both(tmp_path: Path, kafka_home: str) -> None:
    data = tmp_path / "data"
    with ApacheKafka(tmp_path / "kafka", {"node.id": "1"}, data_directory=data) as kafka:
        use_every_client(kafka.bootstrap, "there")
    verify(data, kafka_home)
    with typed(f"ottla up --data {shlex.quote(str(data))}") as bootstrap:
        use_every_client(bootstrap, "here")
        wait_for_journal(bootstrap)
    verify(data, kafka_home)


def test_the_journal_is_compared_though_ottla_does_not_list_it(tmp_path: Path) -> None:
    with ThreadNode(tmp_path, {"ottla.journal.enable": "true"}) as node:
        node.produce("orders", "coffee")
        wait_until(
            lambda: "records of __ottla_journal-0" in ask_until_answered("it", node.bootstrap), "it is seen"
        )


def test_a_server_that_still_loads_is_asked_again(tmp_path: Path) -> None:
    with ThreadNode(tmp_path) as node:
        node.produce("orders", "coffee")
        succeed("consume", "orders", "--group", "readers", "-c", "1", bootstrap=node.bootstrap)
        with node.faults.refuse("list_groups", "COORDINATOR_LOAD_IN_PROGRESS", times=2):
            assert ask_until_answered("it", node.bootstrap)["type of group readers"]
        with (
            node.faults.refuse("list_groups", "GROUP_AUTHORIZATION_FAILED"),
            pytest.raises(Failure, match=r"it does not tell what it has read from its copy: .*AUTHORIZATION"),
        ):
            ask_until_answered("it", node.bootstrap)


def test_what_is_given_wins_over_what_a_directory_says(tmp_path: Path) -> None:
    for number in (3, 4):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={number}\n"
        )
    first, second = tmp_path / "3", tmp_path / "4"
    assert load_settings(None, (), first).config.node_id == 3
    assert load_settings(None, ("node.id=5",), first).config.node_id == 5
    assert load_settings(None, ("broker.id=5",), first).config.node_id == 5
    assert load_settings(None, (f"log.dirs={first},{second}",), None).config.node_id == 3
    metadata = (f"log.dirs={first}", f"metadata.log.dir={second}")
    assert load_settings(None, metadata, None).config.node_id == 4
    file = tmp_path / "server.properties"
    file.write_text("node.id=9\n")
    assert load_settings(file, (), first).config.node_id == 9
    (first / "meta.properties").write_text("nonsense")
    assert load_settings(None, (), first).config.node_id == 0
    assert load_settings(None, (), tmp_path / "nowhere").config.node_id == 0

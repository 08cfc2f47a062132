"""Three real nodes: what is acknowledged survives the loss of any one of them, and no send fails."""

import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.schemas.stored.records import schema_record
from ottla.schemas.stored.values import StoredSchema
from ottla.schemas.wire_format import encode_prefix
from ottla.testing.node import ProcessNode
from ottla.testing.ports import free_port
from ottla.testing.process_cluster import CLUSTER_ID, ProcessCluster

TOPIC = "orders"
PARTITIONS = 4


class ControllerProcess(ProcessNode):
    """A node without a broker, so that there is no port of a broker to choose."""

    def __init__(self, root: Path, settings: dict[str, str], options: list[str]) -> None:
        super().__init__(root, settings, options=options)
        self.port_options = ()


class Load:
    """A producer that wants every record on all replicas in sync, and what became of its records."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 2})
        self.acknowledged: set[tuple[int, int, int]] = set()
        self.failed: list[str] = []
        self._sent = 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            self.acknowledged.add((partition, offset, int(value)))

    def send(self, count: int) -> None:
        """Send records, and wait until all are acknowledged or have failed."""
        for _ in range(count):
            self._producer.produce(TOPIC, str(self._sent), key=str(self._sent), on_delivery=self._delivered)
            self._sent += 1
            self._producer.poll(0)
        assert self._producer.flush(120) == 0


def read_all(bootstrap: str, count: int) -> list[tuple[int, int, int]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "checkers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    read: list[tuple[int, int, int]] = []
    try:
        for _ in range(240):
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    partition, offset, value = message.partition(), message.offset(), message.value()
                    assert partition is not None
                    assert offset is not None
                    assert value is not None
                    read.append((partition, offset, int(value)))
            if len(read) >= count:
                break
    finally:
        consumer.close()
    return read


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.thorough(
    guard="tests/cluster/test_replication.py::test_a_node_ends_and_comes_back_while_records_are_written"
)
def test_nothing_is_lost_when_a_node_goes_and_comes_back(how: str, tmp_path: Path) -> None:
    # Sessions that end soon, so that the test need not wait long for the controller to notice.
    quick = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with ProcessCluster(tmp_path, settings=quick) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        load = Load(cluster.bootstrap)
        for number in (1, 2, 3):
            load.send(200)
            getattr(cluster[number], how)()
            load.send(200)
            cluster[number].start()
        assert load.failed == []
        read = read_all(cluster.bootstrap, len(load.acknowledged))
        assert set(read) == load.acknowledged
        assert len(read) == 1200, "none twice"


def test_a_broker_that_has_no_copy_of_the_registry_asks_its_leader(tmp_path: Path) -> None:
    with ProcessCluster(tmp_path) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        checked = {"ottla.value.schema.validation": "true"}
        topics = [
            NewTopic("_schemas", 1, replica_assignment=[[1]], config={"cleanup.policy": "compact"}),
            # Each node leads a partition.
            NewTopic(TOPIC, 3, replica_assignment=[[1], [2], [3]], config=checked),
        ]
        for created in admin.create_topics(topics).values():
            created.result(60)
        load = Load(cluster.bootstrap)
        load.send(30)
        assert len(load.failed) == 30
        assert all("INVALID_RECORD" in why or "nvalid record" in why for why in load.failed), load.failed[0]
        key, value = schema_record(StoredSchema(f"{TOPIC}-value", 1, 7, "AVRO", '"string"'))
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("_schemas", value, key)
        assert producer.flush(60) == 0
        failed: list[KafkaError] = []
        for partition in range(3):
            producer.produce(
                TOPIC,
                encode_prefix(7),
                partition=partition,
                on_delivery=lambda error, _: None if error is None else failed.append(error),
            )
        assert producer.flush(60) == 0
        assert failed == []


def test_one_command_runs_three_nodes_and_restarts_one_that_dies(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "all.properties"
    config.write_text("offsets.topic.num.partitions=1\nnum.partitions=5\n")
    command = [sys.executable, "-m", "ottla", "up", "--nodes", "3", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--data", str(tmp_path / "data"), "--config", str(config), "--set", "num.partitions=2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        addresses = ",".join(f"127.0.0.1:{port + number}" for number in range(3))
        assert process.stdout.readline() == f"ready {addresses}\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 3
        victim = int(children[1])
        arguments = Path(f"/proc/{victim}/cmdline").read_bytes().decode()
        number = arguments.partition("node-")[2].partition(".")[0]
        subprocess.run(["kill", "-9", str(victim)], check=True)
        for line in process.stderr:
            if line.startswith(f"[{number}] ") and "serves again" in line:
                break
        else:
            pytest.fail("the node was not started again")
        load = Load(addresses)
        load.send(50)
        assert load.failed == []
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    written = (tmp_path / "data" / "node-2.properties").read_text().splitlines()
    assert {"offsets.topic.num.partitions=1", "num.partitions=2"} <= set(written)
    for name in ("node-1", "node-2", "node-3"):
        assert (tmp_path / "data" / name / ".kafka_cleanshutdown").exists(), (
            f"{name} stopped in order\n{said}"
        )


def test_a_controller_and_a_broker_run_in_processes_of_their_own(tmp_path: Path) -> None:
    controller_port, port = free_port(), free_port()
    shared = {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
    }
    metrics_port = free_port()
    listener = {
        "listeners": f"CONTROLLER://127.0.0.1:{controller_port}",
        "ottla.metrics.port": str(metrics_port),
    }
    controller = ControllerProcess(
        tmp_path / "controller",
        {**shared, **listener, "process.roles": "controller", "node.id": "100"},
        options=["--cluster-id", CLUSTER_ID, "--standalone"],
    )
    broker = ProcessNode(
        tmp_path / "broker",
        {**shared, "process.roles": "broker", "node.id": "1", "listeners": f"PLAINTEXT://127.0.0.1:{port}"},
        port=port,
        options=["--cluster-id", CLUSTER_ID],
    )
    with controller, broker:
        broker.create_topic(TOPIC, PARTITIONS)
        load = Load(broker.bootstrap)
        load.send(100)
        with urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=60) as answer:
            metrics = answer.read().decode().splitlines()
        assert "ottla_active_controller_count 1.0" in metrics
        assert f"ottla_global_partition_count {PARTITIONS}.0" in metrics
        # The broker serves on without its controller, and finds it again.
        controller.stop()
        load.send(100)
        controller.start()
        broker.create_topic("later")
        broker.restart()
        assert load.failed == []
        assert len(broker.records(TOPIC)) == 200

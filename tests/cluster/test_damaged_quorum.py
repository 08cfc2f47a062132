"""Metadata that is damaged on one node of several: a broker fetches it again, a voter says what is safe."""

import shutil
import subprocess
from pathlib import Path

from confluent_kafka import Producer
from tests.support.mixed_cluster import ClusterNode, MixedCluster, wait_until
from tests.support.ottla_node import ottla_command

TOPIC = "orders"
LOG = "__cluster_metadata-0/00000000000000000000.log"


def damage(node: ClusterNode) -> bytes:
    """Flip a bit in the metadata, and return what it looks like then."""
    path = node.data_directory / LOG
    content = bytearray(path.read_bytes())
    content[content.index(TOPIC.encode())] ^= 1
    path.write_bytes(content)
    return bytes(content)


def write(cluster: MixedCluster, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(120) == 0


def refusal(node: ClusterNode, settings: Path) -> str:
    done = subprocess.run(
        ottla_command("up", "--config", str(settings)), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, f"node {node.number} has started"
    return done.stderr


def test_a_broker_fetches_damaged_metadata_again(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, "oo", controllers=(1,)) as cluster:
        cluster.create_topic(TOPIC, 2)
        write(cluster, 100)
        cluster[2].stop()
        damaged = damage(cluster[2])
        cluster[2].start()
        cluster.wait_for_brokers(2)
        cluster.wait_for_in_sync(TOPIC, 2)
        write(cluster, 100)
        wait_until(lambda: not cluster.differences(TOPIC), "both have the same")
        assert (cluster[2].data_directory / f"{LOG}.damaged").read_bytes() == damaged
        assert "the metadata is fetched again" in cluster[2].log_path.read_text()
        assert not list(cluster[2].data_directory.glob("*-stray"))


def test_a_voter_does_not_forget_what_it_has_acknowledged(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, "ooo", controllers=(1, 2, 3)) as cluster:
        cluster.create_topic(TOPIC, 2)
        write(cluster, 100)
        cluster[3].stop()
        damaged = damage(cluster[3])
        said = refusal(cluster[3], tmp_path / "node-3.properties")
        assert "must not vote without what it has acknowledged" in said
        assert f"move {cluster[3].data_directory} away, and start with an empty one" in said
        assert (cluster[3].data_directory / LOG).read_bytes() == damaged

        # What the sentence says.
        shutil.move(cluster[3].data_directory, tmp_path / "away")
        cluster[3].start()
        cluster.wait_for_brokers(3)
        cluster.wait_for_in_sync(TOPIC, 3)
        write(cluster, 100)
        wait_until(lambda: not cluster.differences(TOPIC), "all have the same")

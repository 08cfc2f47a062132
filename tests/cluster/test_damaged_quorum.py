"""Metadata that is damaged on one node of several is fetched again. A voter does not vote until then."""

import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.mixed_cluster import ClusterNode, MixedCluster, wait_until
from tests.support.ottla_node import ottla_command

TOPIC = "orders"
METADATA = "__cluster_metadata-0"
LOG = f"{METADATA}/00000000000000000000.log"


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


@pytest.mark.thorough(
    guard="tests/cluster/test_damaged_quorum.py::test_a_broker_fetches_damaged_metadata_again"
)
def test_a_voter_fetches_damaged_metadata_again_and_votes_only_then(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, "ooo", controllers=(1, 2, 3)) as cluster:
        cluster.create_topic(TOPIC, 2)
        write(cluster, 100)
        node = cluster[3]
        node.stop()
        damaged = damage(node)
        # Without both others there is nobody to fetch from, and with one of them alone nobody is elected.
        cluster[1].kill()
        cluster[2].kill()
        node.start()
        abstaining = node.data_directory / METADATA / "abstaining"
        wait_until(abstaining.exists, "it abstains")
        cluster[1].start()
        wait_until(lambda: "this controller does not vote" in node.log_path.read_text(), "it says so")
        assert abstaining.exists(), "it must not vote with one other"
        node.kill()
        assert (node.data_directory / METADATA / "quorum-state").exists(), "it knows whom it has voted for"
        assert abstaining.exists(), "a start changes nothing about that"
        node.start()
        cluster[2].start()
        cluster.wait_for_brokers(3)
        cluster.wait_for_in_sync(TOPIC, 3)
        wait_until(lambda: not abstaining.exists(), "it votes again")
        assert "this controller votes again" in node.log_path.read_text()
        assert (node.data_directory / f"{LOG}.damaged").read_bytes() == damaged

        # It is needed for a majority now.
        cluster[1].kill()
        write(cluster, 100)
        cluster[1].start()
        cluster.wait_for_brokers(3)
        cluster.wait_for_in_sync(TOPIC, 3)
        wait_until(lambda: not cluster.differences(TOPIC), "all have the same")


@pytest.mark.thorough(guard="tests/unit/quorum/test_damaged_metadata.py")
@pytest.mark.parametrize("content", [b"{", None])
def test_a_voter_that_has_lost_its_vote_too_does_not_start(tmp_path: Path, content: bytes | None) -> None:
    with MixedCluster(tmp_path, "ooo", controllers=(1, 2, 3)) as cluster:
        cluster.create_topic(TOPIC, 2)
        write(cluster, 100)
        cluster[3].stop()
        damaged = damage(cluster[3])
        quorum_state = cluster[3].data_directory / METADATA / "quorum-state"
        if content is None:
            quorum_state.unlink()
        else:
            quorum_state.write_bytes(content)
        said = refusal(cluster[3], tmp_path / "node-3.properties")
        assert "this one does not know whom it has voted for" in said
        assert f"move {cluster[3].data_directory} away, and start with an empty one" in said
        assert (cluster[3].data_directory / LOG).read_bytes() == damaged

        # What the sentence says.
        shutil.move(cluster[3].data_directory, tmp_path / "away")
        cluster[3].start()
        cluster.wait_for_brokers(3)
        cluster.wait_for_in_sync(TOPIC, 3)
        write(cluster, 100)
        wait_until(lambda: not cluster.differences(TOPIC), "all have the same")

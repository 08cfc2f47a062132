"""Directories that Apache Kafka left: we lead their quorum on, with everything that is in them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.golden.directories import DATA, unpack
from tests.golden.metadata_logs import SINGLE_NODES
from tests.support.deciding import new_topic
from tests.support.quorum_node import QuorumNode

from ottla.metadata.features import default_levels
from ottla.runtime.disk import RealDisk
from ottla.wire.declare import replace


def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(gzip.decompress((DATA / "manifest.json.gz").read_bytes()))
    return loaded


@pytest.mark.parametrize("archive", SINGLE_NODES)
def test_every_topic_is_there_with_its_id(archive: str, tmp_path: Path) -> None:
    node = QuorumNode(RealDisk(), str(unpack(archive, tmp_path)))
    expected = {(one["topic"], one["partition"]): one["topicId"] for one in manifest()[archive]["partitions"]}
    found = {
        (topic.name, number): str(topic.id) for topic in node.image.topics for number in topic.partitions
    }
    assert found == expected


@pytest.mark.parametrize("archive", SINGLE_NODES)
def test_the_quorum_goes_on_in_the_next_epoch(archive: str, tmp_path: Path) -> None:
    epochs = {"01-clean": 2, "02-compacted": 3, "03-killed9": 4}
    path = str(unpack(archive, tmp_path))
    node = QuorumNode(RealDisk(), path)
    assert node.driver.epoch == epochs[archive]
    node.come_up()
    leaders = {one.leader for topic in node.image.topics for one in topic.partitions.values()}
    assert leaders == {1}, "every partition has a leader again"
    node.create(new_topic("ours", 2, 1))
    before = node.image
    node.write_snapshot()
    node.stop()
    after = QuorumNode(RealDisk(), path).image
    assert {topic.id for topic in after.topics} == {topic.id for topic in before.topics}
    assert after.configs == before.configs
    assert after.quotas == before.quotas
    assert after.scram == before.scram
    assert after.acls == before.acls
    assert after.tokens == before.tokens


def test_a_directory_that_was_only_formatted_becomes_a_cluster(tmp_path: Path) -> None:
    node = QuorumNode(RealDisk(), str(unpack("00-fresh-format", tmp_path)))
    assert node.image.features == default_levels()
    assert node.cluster_id == "Z29sZGVuR29sZGVuMDAwMQ"
    node.come_up()
    assert replace(node.image.brokers[1], features=(), endpoints=()).log_dirs == (node.directory_id,)


def test_a_member_of_a_larger_quorum_is_left_alone(tmp_path: Path) -> None:
    directory = unpack("04-cluster", tmp_path) / "node1-a"
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    node = QuorumNode(RealDisk(), str(directory), starts=False)
    node.quorum.start()
    assert node.driver.replica.voters.ids == (1, 2, 3)
    assert node.quorum.controller is None, "the others have to agree"
    log = next(path for path in before if path.name.endswith("1770.log"))
    assert log.read_bytes() == before[log]

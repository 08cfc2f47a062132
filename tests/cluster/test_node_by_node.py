"""A cluster of Apache Kafka becomes one of Ottla node by node, and turns back, while clients go on writing.

The guide describes these steps (`docs/guide/from-apache-kafka.md`).
"""

from pathlib import Path

import pytest
from tests.cluster.test_replication import PARTITIONS, QUICK, check
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mixed_cluster import APACHE, OTTLA, MixedCluster

TOPIC = "orders"


def replace(cluster: MixedCluster, number: int, kind: str) -> None:
    """Stop a node, and start the other server on its directory, with its configuration."""
    cluster.wait_for_in_sync(TOPIC, 3)
    cluster[number].stop()
    cluster[number].kind = kind
    cluster[number].start()
    cluster.wait_for_in_sync(TOPIC, 3)


@pytest.mark.thorough(
    guard="tests/cluster/test_replication.py::test_a_node_ends_and_comes_back_while_records_are_written"
)
def test_nodes_change_one_by_one_while_clients_write(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, "aaa", (1, 2, 3), QUICK) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        load = AcknowledgedLoad(cluster.bootstrap, TOPIC, PARTITIONS)
        try:
            load.wait_for(200)
            for number in (1, 2, 3):
                replace(cluster, number, OTTLA)
                load.wait_for(200)
            replace(cluster, 2, APACHE)
            load.wait_for(200)
        except BaseException:
            load.give_up()
            raise
        check(cluster, load, TOPIC)

"""What users run is what tests run, but for what `tests/support/departures.py` gives a reason for."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.support.departures import DEPARTURES
from tests.support.mixed_cluster import MixedCluster
from tests.support.ottla_node import OttlaNode
from tests.support.quorum_members import OTTLA, QuorumOfProcesses

from ottla.cli.nodes.local_cluster import OF_ONE_NODE, node_properties, plan_nodes
from ottla.metadata.configs.node import NodeConfig
from ottla.testing.node import HOST, ProcessNode, ThreadNode
from ottla.testing.process_cluster import ProcessCluster
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

# Where a node listens and who it is differs each time. Kafka needs told what Ottla takes by default.
OF_THE_PLACE = OF_ONE_NODE | {"inter.broker.listener.name", "listener.security.protocol.map"}

Settings = Mapping[str, str]
ONE_NODE: Settings = {}
THREE = plan_nodes(3, 9092, Path("data"))
THREE_NODES: Settings = node_properties(THREE[0], THREE, HOST)


def value(settings: Settings, name: str) -> str | None:
    """Return what holds for a config on a node with these settings."""
    return settings.get(name, NodeConfig.keys[name].format_default())


def departures(settings: Settings, of_users: Settings) -> dict[str, str | None]:
    """Return what a node of tests has otherwise than users."""
    names = (settings.keys() | of_users.keys()) - OF_THE_PLACE
    return {name: value(settings, name) for name in names if value(settings, name) != value(of_users, name)}


def of_thread_node(root: Path) -> Settings:
    return ThreadNode(root).settings


def of_process_node(root: Path) -> Settings:
    return ProcessNode(root).settings


def of_process_cluster(root: Path) -> Settings:
    return ProcessCluster(root)[1].settings


def of_ottla_node(root: Path) -> Settings:
    return OttlaNode(root).settings


def of_simulated_cluster(_: Path) -> Settings:
    simulation = Simulation(1)
    return SimulatedCluster(simulation, SimulatedNetwork(simulation))[1].settings


def of_mixed_cluster(root: Path) -> Settings:
    return MixedCluster(root, "ooo", (1, 2, 3))[1]._properties


def of_quorum(root: Path) -> Settings:
    return QuorumOfProcesses(root, dict.fromkeys((1, 2, 3), OTTLA)).members[1].settings


@pytest.mark.parametrize(
    ("module", "settings_of", "of_users"),
    [
        ("ottla.testing.node", of_thread_node, ONE_NODE),
        ("ottla.testing.node", of_process_node, ONE_NODE),
        ("ottla.testing.node", of_process_cluster, THREE_NODES),
        ("ottla.testing.simulation", of_simulated_cluster, THREE_NODES),
        ("tests.support.ottla_node", of_ottla_node, ONE_NODE),
        ("tests.support.mixed_cluster", of_mixed_cluster, THREE_NODES),
        ("tests.support.quorum_members", of_quorum, THREE_NODES),
    ],
)
def test_nodes_of_tests_are_those_of_users_but_for_what_has_a_reason(
    tmp_path: Path, module: str, settings_of: Callable[[Path], Settings], of_users: Settings
) -> None:
    told = {name: departure.value for name, departure in DEPARTURES[module].items()}
    assert departures(settings_of(tmp_path), of_users) == told


def test_a_node_that_departs_is_found() -> None:
    assert departures({**THREE_NODES, "min.insync.replicas": "1"}, THREE_NODES) == {
        "min.insync.replicas": "1"
    }
    assert departures({"num.partitions": "1"}, ONE_NODE) == {}
    assert departures({"num.partitions": "2"}, ONE_NODE) == {"num.partitions": "2"}

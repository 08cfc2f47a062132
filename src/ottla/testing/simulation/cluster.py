"""A cluster in a simulation: several machines with a node each, on one simulated network."""

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.broker.lifecycle.format_options import FormatOptions
from ottla.model.uuid import Uuid
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import PORT, SimulatedNode
from ottla.testing.simulation.simulation import Simulation

CLUSTER_ID: Final = "b3R0bGEtc2ltdWxhdGVkLQ"
CONTROLLER_PORT: Final = 9093


class SimulatedCluster:
    """Nodes with ids from 1 on. Each is a broker and a controller, and the first few are the voters."""

    def __init__(
        self,
        simulation: Simulation,
        network: SimulatedNetwork,
        nodes: int = 3,
        voters: int | None = None,
        settings: Mapping[str, str] | None = None,
        features: tuple[str, ...] = (),
        first_id: int = 1,
        cluster_id: str = CLUSTER_ID,
    ) -> None:
        """`features` are levels for a new cluster, as `--feature` takes them. Without `voters`, all vote.

        Several clusters on one network each have a `first_id` and a `cluster_id` of their own.
        """
        self.simulation = simulation
        self.network = network
        self.voters = nodes if voters is None else voters
        self._first_id = first_id
        self._cluster_id = cluster_id
        voting = range(first_id, first_id + self.voters)
        controllers = [f"{_host(number)}:{CONTROLLER_PORT}" for number in voting]
        replicas = min(nodes, 3)
        common = {
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(controllers),
            "default.replication.factor": str(replicas),
            "min.insync.replicas": str(max(replicas - 1, 1)),
            "offsets.topic.replication.factor": str(replicas),
            "transaction.state.log.replication.factor": str(replicas),
            "transaction.state.log.min.isr": str(max(replicas - 1, 1)),
            **(settings or {}),
        }
        self._common = common
        self._features = features
        self._initial = ",".join(
            f"{number}@{_host(number)}:{CONTROLLER_PORT}:{directory_id(number)}" for number in voting
        )
        self.nodes = [self._make_node(number) for number in range(first_id, first_id + nodes)]

    def add_node(self) -> SimulatedNode:
        """Return one more node, which does not vote. It is off."""
        node = self._make_node(self._first_id + len(self.nodes))
        self.nodes.append(node)
        return node

    def _make_node(self, number: int) -> SimulatedNode:
        votes = number < self._first_id + self.voters
        options = FormatOptions(
            cluster_id=self._cluster_id,
            directory_id=None if votes else str(directory_id(number)),
            initial_controllers=self._initial if votes else None,
            no_initial_controllers=not votes,
            features=self._features,
        )
        settings = {**self._common, "listeners": _listeners(number)}
        node = SimulatedNode(self.simulation, self.network, number, settings, options)
        node.directory_id = directory_id(number)
        return node

    def __getitem__(self, node_id: int) -> SimulatedNode:
        """Return a node by its id."""
        return self.nodes[node_id - self._first_id]

    def __iter__(self) -> Iterator[SimulatedNode]:
        return iter(self.nodes)

    @property
    def bootstrap(self) -> str:
        """The addresses for clients."""
        return ",".join(node.bootstrap for node in self.nodes)

    @property
    def serving(self) -> list[SimulatedNode]:
        """The nodes that have started and not stopped since."""
        return [node for node in self.nodes if node.node is not None]

    def start(self) -> None:
        """Switch all machines on that are off, and let time pass until their nodes serve."""
        for node in self.nodes:
            if not node.is_on:
                node.switch_on()
        self.simulation.run_until(
            lambda: all(node.node is not None or node.failure is not None for node in self.nodes)
        )
        for node in self.nodes:
            if node.failure is not None:
                raise node.failure


def directory_id(node_id: int) -> Uuid:
    """Return the id of a node's data directory, which is its identity as a voter."""
    return Uuid(bytes([node_id] * 16))


def _host(node_id: int) -> str:
    return f"10.0.0.{node_id}"


def _listeners(node_id: int) -> str:
    host = _host(node_id)
    return f"PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:{CONTROLLER_PORT}"

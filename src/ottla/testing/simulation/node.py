"""A node in a simulation: everything that is shipped, in a simulated world."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from ottla.broker.lifecycle.format_options import NO_OPTIONS, FormatOptions
from ottla.broker.lifecycle.shutdown import NodeStop
from ottla.broker.lifecycle.startup import Node, NodeOptions, NodeStart
from ottla.metadata.configs.load import load_node_config
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Machine, Simulation
from ottla.testing.simulation.workers import SimulatedSyncs, SimulatedWorkers
from ottla.world.world import World

DATA: Final = "/data"
PORT: Final = 9092
_CONNECTIONS_MAX: Final = 10_000


class SimulatedNode:
    """One machine with a disk and a node on it."""

    def __init__(
        self,
        simulation: Simulation,
        network: SimulatedNetwork,
        node_id: int = 1,
        settings: Mapping[str, str] | None = None,
        format_options: FormatOptions = NO_OPTIONS,
    ) -> None:
        self.simulation = simulation
        self.node_id = node_id
        self.machine = Machine(simulation, f"node {node_id}", f"10.0.0.{node_id}")
        self.machine.when_power_is_cut = self._lose_power
        self.disk = SimulatedDisk(self.machine.rng.getrandbits(32))
        self._network = network
        self.settings = {
            "node.id": str(node_id),
            "log.dirs": DATA,
            "listeners": f"PLAINTEXT://{self.machine.host}:{PORT}",
            "ottla.journal.enable": "false",
            **(settings or {}),
        }
        self._options = NodeOptions(is_insecure=True, format=format_options)
        # The identity of its data directory as a voter, if somebody has chosen it.
        self.directory_id = ZERO_UUID
        self.node: Node | None = None
        self.is_on = False
        self.failure: Exception | None = None

    @property
    def disk(self) -> SimulatedDisk:
        """The disk of the machine."""
        assert self.machine.disk is not None, "it gets one when it is made"
        return self.machine.disk

    @disk.setter
    def disk(self, disk: SimulatedDisk) -> None:
        self.machine.disk = disk

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"{self.machine.host}:{PORT}"

    def switch_on(self) -> None:
        """Begin to start the node. `node` is there when it serves."""
        assert not self.is_on, "a machine that is on cannot be switched on"
        self.is_on = True
        self.failure = None
        machine = self.machine
        machine.simulation.note(machine.name, "on")
        world = World(
            clock=machine,
            scheduler=machine,
            workers=SimulatedWorkers(machine),
            openers=SimulatedWorkers(machine),
            make_syncs=partial(SimulatedSyncs, machine),
            network=self._network.plug_in(machine),
            disk=self.disk,
            random=machine.rng,
            connections_max=_CONNECTIONS_MAX,
        )
        configs = load_node_config(b"", self.settings).configs
        self.disk.now_ms = machine.now_ms()
        NodeStart(configs, self._options, world, self._started, self._failed)

    def start(self) -> None:
        """Switch on, and let time pass until the node serves."""
        self.switch_on()
        self.simulation.run_until(lambda: self.node is not None or self.failure is not None)
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        """Stop the node in order, and switch off."""
        assert self.node is not None, "only a node that serves can be stopped"
        self.begin_stop()
        self.simulation.run_until(lambda: not self.is_on)

    def begin_stop(self) -> None:
        """Begin to stop the node in order. The machine is off when that is done."""
        assert self.node is not None, "only a node that serves can be stopped"
        NodeStop(self.node, self._stopped)
        self.node = None

    def kill(self) -> None:
        """End the process without a warning. What was written stays, since the machine lives."""
        self._switch_off("killed")
        self.disk.kill()

    def cut_power(self, is_silent: bool = False) -> None:
        """Cut the power: what was not synced may be gone, or be there in part.

        If it is silent, other machines do not learn that their connections are broken.
        """
        self._switch_off("power cut", is_silent)
        self.disk.cut_power()

    def replace_disk(self, directory_id: Uuid) -> None:
        """Give a machine that is off an empty disk, which is formatted with this id at the next start."""
        assert not self.is_on, "the disk of a machine that is on cannot be replaced"
        boots = self.disk.boots
        self.disk = SimulatedDisk(self.machine.rng.getrandbits(32))
        self.disk.boots = boots + 1
        self.directory_id = directory_id
        formatted = self._options.format._replace(
            directory_id=str(directory_id), initial_controllers=None, no_initial_controllers=True
        )
        self._options = self._options._replace(format=formatted)

    def _lose_power(self) -> None:
        self.cut_power()

    def _switch_off(self, how: str, is_silent: bool = False) -> None:
        self.simulation.note(self.machine.name, f"{how} {self.disk.trace}")
        self.machine.switch_off()
        self._network.unplug(self.machine.host, is_silent)
        self.is_on = False
        self.node = None

    def _started(self, node: Node) -> None:
        self.node = node

    def _stopped(self, error: Exception | None) -> None:
        if error is not None:
            raise error
        self.machine.call_soon(self._end_process)

    def _failed(self, error: Exception) -> None:
        self.failure = error
        self.node = None
        # Its process ends.
        self.machine.call_soon(self._end_process)

    def _end_process(self) -> None:
        if self.is_on:
            self.kill()

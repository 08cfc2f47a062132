"""A broker whose heartbeats arrive is not fenced, whatever its ports look like to others."""

from typing import Final

from tests.simulation.cluster.rules.wrong import Wrong

from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode

CALM_US: Final = 1_000_000
"""How long nothing has been in the way of heartbeats. What is decided may be published a little later."""


class SessionRules:
    """Looks at brokers that the active controller has fenced."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        # Which node leads the quorum, and in which epoch.
        self._leads = (-1, -1)
        self._brokers: object = None
        # Since when heartbeats of a node arrive at this controller. One that has not heard of it yet may be
        # taken for gone: nobody is elected then who was not in sync.
        self._calm_us: dict[int, int] = {}
        # How often connections of a node, or of this controller, have begun to lead nowhere.
        self._lost_track: dict[int, int] = {}
        # The epoch of each broker that is not fenced, and the life of its machine.
        self._unfenced: dict[int, tuple[int, int]] = {}

    def look_before_turn(self, one: SimulatedNode) -> None:
        """Look when the brokers have changed: one that is fenced may be let in again soon."""
        assert one.node is not None
        brokers = one.node.broker.image.brokers
        if brokers is not self._brokers and one.node.parts.quorum.is_active:
            self._brokers = brokers
            self.look()

    def look(self) -> None:
        """Look at all brokers as the active controller has them."""
        active, now_us = self._find_active(), self._cluster.simulation.now_us
        if active is None or active.node is None:
            return
        leads = (active.node_id, active.node.parts.quorum.driver.replica.epoch)
        if leads != self._leads:
            self._leads = leads
            self._calm_us.clear()
        for node_id, broker in active.node.broker.image.brokers.items():
            one = self._cluster[node_id]
            lost_track = sum(self._cluster.network.lost_track[at.machine.host] for at in (one, active))
            if not self._is_heard(one, active) or lost_track != self._lost_track.get(node_id, 0):
                self._lost_track[node_id] = lost_track
                self._calm_us.pop(node_id, None)
            calm_us = now_us - self._calm_us.setdefault(node_id, now_us)
            known = self._unfenced.pop(node_id, None)
            now = (broker.broker_epoch, one.machine.life)
            if not broker.fenced:
                self._unfenced[node_id] = now
            elif known == now and not broker.in_controlled_shutdown and calm_us >= CALM_US:
                raise Wrong(f"session: node {node_id} is fenced, but lives, and its heartbeats arrive")

    def _find_active(self) -> SimulatedNode | None:
        """Return the newest of those who take themselves for the active controller."""
        found = [
            (one.node.parts.quorum.driver.replica.epoch, one.node_id)
            for one in self._cluster.serving
            if one.node is not None and one.node.parts.quorum.is_active
        ]
        return self._cluster[max(found)[1]] if found else None

    def _is_heard(self, one: SimulatedNode, active: SimulatedNode) -> bool:
        """Say whether heartbeats arrive for sure, and what the controller decides is soon known."""
        network = self._cluster.network
        return not (
            network.cuts
            or network.is_slow
            or any(other.machine.is_paused or other.machine.disk_slowness > 1 for other in self._cluster)
            or one.node is None
            or one.node.parts.quorum.driver.replica.state.leader_id != active.node_id
            or network.is_rejected(one.machine.host, active.machine.host)
        )

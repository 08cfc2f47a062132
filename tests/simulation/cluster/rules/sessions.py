"""A broker is fenced when its session is over, or its process gone, not for what its ports look like."""

from typing import Final

from tests.simulation.cluster.rules.wrong import Wrong

from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode

HEARTBEATS: Final = 2
"""How many heartbeats may be missing, of those that could have arrived."""


class SessionRules:
    """Looks at brokers that the active controller has fenced."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._active: SimulatedNode | None = None
        # When the heartbeats of a node could last arrive, or since when its controller is another.
        self._heard_us: dict[int, int] = {}
        # The epoch of each broker that is not fenced, and the life of its machine.
        self._unfenced: dict[int, tuple[int, int]] = {}

    def look(self) -> None:
        """Look at all brokers as the active controller has them."""
        active, now_us = self._find_active(), self._cluster.simulation.now_us
        if active is None or active.node is None:
            return
        is_other, self._active = active is not self._active, active
        session_us = 1000 * active.node.broker.config.broker_session_timeout_ms
        for node_id, broker in active.node.broker.image.brokers.items():
            one = self._cluster[node_id]
            if is_other or self._may_be_heard(one, active):
                self._heard_us[node_id] = now_us
            known = self._unfenced.pop(node_id, None)
            now = (broker.broker_epoch, one.machine.life)
            if not broker.fenced:
                self._unfenced[node_id] = now
            elif known == now and one.node is not None and not broker.in_controlled_shutdown:
                interval_us = 1000 * one.node.broker.config.broker_heartbeat_interval_ms
                silent_us = now_us - self._heard_us[node_id]
                if silent_us < session_us - HEARTBEATS * interval_us:
                    raise Wrong(
                        f"session: node {node_id} is fenced, but lives, and its heartbeats could arrive "
                        f"{silent_us // 1000} ms ago"
                    )

    def _find_active(self) -> SimulatedNode | None:
        """Return the newest of those who take themselves for the active controller."""
        found = [
            (one.node.parts.quorum.driver.replica.epoch, one.node_id)
            for one in self._cluster.serving
            if one.node is not None and one.node.parts.quorum.is_active
        ]
        return self._cluster[max(found)[1]] if found else None

    def _may_be_heard(self, one: SimulatedNode, active: SimulatedNode) -> bool:
        """Say whether heartbeats arrive for sure."""
        network, here, there = self._cluster.network, one.machine, active.machine
        return not (
            here.is_paused
            or there.is_paused
            or one.node is None
            or network.is_rejected(here.host, there.host)
            or any(
                network.is_cut(*way) or network.is_slow(*way)
                for way in ((here.host, there.host), (there.host, here.host))
            )
        )

"""Who may lead has what is committed: nobody in the in-sync or eligible replicas lacks a part of it."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.cluster.clients.careless import is_careless
from tests.simulation.cluster.rules.wrong import Wrong

from ottla.model.uuid import Uuid
from ottla.testing.simulation.cluster import SimulatedCluster

Place = tuple[Uuid, int]
LATE_US_MAX: Final = 1_500_000
"""How long the controller may take to hear of a replica that has to be copied again."""


class EligibleRules:
    """Looks at the replicas that the active controller would elect."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        # Since when a replica lacks something and could be elected.
        self._since_us: dict[tuple[Place, int], int] = {}

    def look(self, highest: Mapping[Place, int]) -> None:
        """Compare the logs of those that may lead with what was committed, by partition."""
        active = next(
            (one.node for one in self._cluster.serving if one.node and one.node.parts.quorum.is_active), None
        )
        if active is None:
            return
        seen = set()
        for topic in active.broker.image.topics:
            if is_careless(topic.name):
                continue
            for number, record in topic.partitions.items():
                place = (topic.id, number)
                for node_id in {*record.isr, *(record.eligible_leader_replicas or ())}:
                    if self._lacks(node_id, place, highest.get(place, 0)):
                        seen.add((place, node_id))
                        self._check((place, node_id), f"{topic.name}-{number}", highest[place])
        for key in [key for key in self._since_us if key not in seen]:
            del self._since_us[key]

    def _lacks(self, node_id: int, place: Place, committed: int) -> bool:
        node = self._cluster[node_id].node if node_id <= len(self._cluster.nodes) else None
        part = None if node is None else node.broker.partitions.by_key.get(place)
        if part is None or part.log.volume.error is not None:
            return False
        return part.log.log_end_offset < committed

    def _check(self, key: tuple[Place, int], name: str, committed: int) -> None:
        now_us = self._cluster.simulation.now_us
        if now_us - self._since_us.setdefault(key, now_us) > LATE_US_MAX:
            raise Wrong(
                f"eligible: {name}: node {key[1]} may be elected, but lacks a part of the {committed} "
                "records that are committed"
            )

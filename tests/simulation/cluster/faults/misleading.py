"""What makes a node look other than it is: it refuses while it lives, connections are open at one end only,
and it learns late what all others know."""

import asyncio
from collections.abc import Callable
from typing import Final

from tests.simulation.cluster.faults.breaking import Breaking

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.testing.simulation.simulation import Machine

ALONE_S: Final = 16
"""Longer than anybody may be kept waiting."""


async def reject(it: Breaking) -> None:
    """Let a firewall refuse connections in the name of a node that lives, as if its process were gone."""
    one = it.pick_leader()
    hosts = [other.machine.host for other in it.cluster if other is not one]
    if it.rng.random() < 0.3:
        hosts.append(it.client_host)
    chosen = it.rng.sample(hosts, it.rng.randint(1, len(hosts)))
    both = it.rng.random() < 0.3
    it.tell(f"node {one.node_id} seems to refuse connections of {', '.join(chosen)} for {it.lasts_ms} ms")
    network, host = it.cluster.network, one.machine.host
    for other in chosen:
        network.reject(other, host)
        if both:
            network.reject(host, other)
    await it.wait()
    for other in chosen:
        network.admit(other, host)
        network.admit(host, other)


async def half_open(it: Breaking) -> None:
    """Let something on the way forget all connections of a node. Neither end is told."""
    one = it.pick_leader()
    for _ in range(it.rng.randint(1, 2)):
        it.tell(f"the connections of node {one.node_id} lead nowhere from now on")
        it.cluster.network.lose_track(one.machine.host)
        await asyncio.sleep(it.lasts_ms / 2000)


async def slow_metadata(it: Breaking) -> None:
    """Let one node act late on new metadata."""
    one = it.pick_leader()
    if one.node is None:
        return
    late_ms = it.rng.choice((100, 400, 1_500))
    it.tell(f"node {one.node_id} acts on new metadata {late_ms} ms late")
    slow = _Slow(one.machine, late_ms)
    one.node.broker.metadata.listen(slow)
    await it.wait()
    slow.late_ms = 0


async def stay_alone(it: Breaking) -> None:
    """Let all nodes but one stand still for so long that who asks this one has to be told to come again."""
    alone = it.pick_leader()
    others = [one for one in it.cluster if one is not alone and one.is_on]
    it.tell(f"all nodes but {alone.node_id} stand still for {ALONE_S} s")
    for one in others:
        one.machine.pause()
    await asyncio.sleep(ALONE_S)
    for one in others:
        one.machine.resume()


class _Slow:
    """A part of a node that takes its time."""

    def __init__(self, machine: Machine, late_ms: int) -> None:
        self._machine = machine
        self.late_ms = late_ms

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, done: Callable[[], None]) -> bool:
        if not self.late_ms:
            return True
        self._machine.call_later(self.late_ms, done)
        return False

    def metadata_changed(self, _image: MetadataImage, _delta: MetadataDelta) -> None:
        """There is nothing to do."""

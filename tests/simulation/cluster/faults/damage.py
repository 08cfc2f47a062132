"""Bits of files that change, also while so few replicas are in sync that nothing is acknowledged."""

import asyncio
from collections.abc import Callable
from typing import Final

from tests.simulation.cluster.faults.breaking import (
    Breaking,
    ask_cluster,
    start,
    stop_in_order,
    wait_for_start,
)

from ottla import Admin
from ottla.broker.logs.partition import Partition
from ottla.model.ids import TopicPartition
from ottla.storage.scan import scan_batches
from ottla.storage.segment import Segment
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.config_kinds import ResourceType

STEP_S: Final = 0.02
WAIT_S_MAX: Final = 8
"""How long a step may take. If it takes longer, another fault is in its way."""
SLOW_US: Final = 300_000
KILLS_EVERY: Final = 3
"""Half of the seeds kill the node with the damage: three of them damage one node after the other."""


async def rot(it: Breaking) -> None:
    """Let bits of files change, on one disk only. The node has to find and to heal that."""
    one = it.cluster.nodes[it.cluster.simulation.seed % len(it.cluster.nodes)]
    if one.node is None:
        return
    parts = [
        part
        for part in one.node.broker.partitions
        if len(part.in_sync) > 1 and one.node_id in part.in_sync and part.log.recovery_point > 0
    ]
    it.rng.shuffle(parts)
    for part in parts[:2]:
        _damage(it, one, part)


def _damage(it: Breaking, one: SimulatedNode, part: Partition) -> None:
    segment = it.rng.choice(part.log.segments)
    path = segment.file.path
    if one.disk.is_at_rest(path):
        place = one.disk.rot(path, it.rng, _unguarded(segment))
        it.note_rot(one.node_id, (part.topic_id, part.index))
        it.tell(f"a bit of byte {place} of {path} of node {one.node_id} changes")


async def damage_below_min(it: Breaking) -> None:
    """Damage one of two replicas, restart it while it copies, and let the other one go meanwhile.

    Nothing can be acknowledged from the damage on, since two have to be in sync. Links are slow meanwhile, so
    that the copy is not whole when the other one dies.
    """
    one = it.cluster.nodes[it.cluster.simulation.seed % len(it.cluster.nodes)]
    if one.node is None:
        return
    parts = [
        part
        for part in one.node.broker.partitions
        if len(part.in_sync) == 3 and one.node_id in part.in_sync and part.log.recovery_point > 0
    ]
    if not parts:
        return
    part = it.rng.choice(parts)
    keeper = it.cluster[it.rng.choice(sorted(part.in_sync - {one.node_id}))]
    if not await ask_cluster(it, lambda admin: _keep_two(it, admin, part, [one.node_id, keeper.node_id])):
        return
    await _wait(lambda: set(part.in_sync) == {one.node_id, keeper.node_id})
    if one.node is None or keeper.node is None:
        return
    for a, b in ((one, keeper), (keeper, one)):
        it.cluster.network.slow_down(a.machine.host, b.machine.host, SLOW_US)
    _damage(it, one, part)
    if it.cluster.simulation.seed // KILLS_EVERY % 2:
        # Its start finds the damage. Where transactions end is a guess then, so the rest is copied again.
        it.tell(f"node {one.node_id} is killed before it is healed")
        one.kill()
        start(one)
        await wait_for_start([one])
    else:
        await _wait(lambda: one.node_id not in part.in_sync or bool(part.log.unhealed))
    await it.wait()
    if one.node is not None:
        await stop_in_order(it, one)
        await _wait(lambda: not one.is_on)
        start(one)
        await wait_for_start([one])
    await it.wait()
    it.tell(f"node {keeper.node_id} is killed")
    if keeper.is_on:
        keeper.kill()
    await asyncio.sleep(2)
    if it.rng.random() < 0.5:
        # Nobody leads now. Those who were eligible to lead still are, whatever number is needed.
        await ask_cluster(it, lambda admin: _need_one(it, admin, part.topic))
    await asyncio.sleep(1)
    for a, b in ((one, keeper), (keeper, one)):
        it.cluster.network.slow_down(a.machine.host, b.machine.host, 0)
    start(keeper)
    await wait_for_start([keeper])


async def _need_one(it: Breaking, admin: Admin, topic: str) -> None:
    it.tell(f"min.insync.replicas of {topic} becomes 1")
    await admin.configs.alter(ResourceType.TOPIC, topic, {"min.insync.replicas": "1"})


async def _keep_two(it: Breaking, admin: Admin, part: Partition, replicas: list[int]) -> None:
    it.tell(f"{part.topic}-{part.index} is moved to {replicas}")
    await admin.replicas.reassign({TopicPartition(part.topic, part.index): replicas})


async def _wait(is_so: Callable[[], bool]) -> None:
    for _ in range(int(WAIT_S_MAX / STEP_S)):
        if is_so():
            return
        await asyncio.sleep(STEP_S)


def _unguarded(segment: Segment) -> set[int]:
    """Return the bytes that a consumer may get damaged: base offsets within answers.

    No checksum covers them, and a leader does not look at what it sends from a file. It does look at the
    batch that an answer begins with, and an answer never reaches into the next segment.
    """
    places = scan_batches(segment.file, 0, segment.size)
    return {place.position + byte for place in places if place.position for byte in range(8)}

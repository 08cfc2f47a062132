"""Faults of several steps, for what would hardly ever happen by chance. A few seeds have one of them each."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.simulation.cluster.clients.careless import COMPACTED, PLAIN
from tests.simulation.cluster.faults.aimed import STEP_S, leader_of, leads_quorum
from tests.simulation.cluster.faults.breaking import Breaking, ask_cluster, start, wait_for_start
from tests.simulation.cluster.faults.operators import elect

from ottla import Admin
from ottla.testing.simulation.node import SimulatedNode

WAIT_S_MAX: Final = 6
"""How long a step may take. If it takes longer, another fault is in its way."""
SLOW_STEP: Final = 3_000
"""How many times as long one step of compaction takes: some seconds."""


async def cut_power_of_slow_disk(it: Breaking) -> None:
    """Let syncs take so long that several segments are not synced, and cut the power then."""
    for _ in range(it.rng.randint(3, 6)):
        one = leader_of(it, PLAIN, 0, None) or it.pick()
        it.tell(f"the disk of node {one.node_id} is slow until its power is cut")
        one.machine.disk_slowness = it.rng.choice((400, 2_000))
        await asyncio.sleep(it.rng.uniform(0.5, 1.5))
        one.machine.disk_slowness = 1
        if one.is_on:
            one.cut_power()
            start(one)
        await wait_for_start([one])


async def cut_while_compacting(it: Breaking) -> None:
    """Let a leader write alone and hear of the next one, while it replaces segments by compacted ones.

    That takes a moment only. So one step of it gets slow, and all else goes on.
    """
    for _ in range(it.rng.randint(2, 4)):
        old = leader_of(it, COMPACTED, 0, None)
        if old is None or not await _wait(partial(_compacts, old)):
            return
        it.tell(f"node {old.node_id}, which leads {COMPACTED}-0, compacts it slowly, and is cut off")
        old.machine.disk_slowness = SLOW_STEP
        await asyncio.sleep(10 * STEP_S)
        old.machine.disk_slowness = 1
        _cut_off(it, old)
        await _wait(partial(leader_of, it, COMPACTED, 0, old))
        _mend(it, old)
        await asyncio.sleep(1)


def _compacts(one: SimulatedNode) -> bool:
    part = None if one.node is None else one.node.broker.partitions.find(COMPACTED, 0)
    return part is not None and part.log.cleaning is not None


async def forget_a_leader(it: Breaking) -> None:
    """Unregister a broker that is cut off and has a change of in-sync replicas to propose.

    It registers again, and leads again. Then another node is restarted, and the leader has to propose that
    this one is in sync.
    """
    others = [one for one in it.cluster.serving if not leads_quorum(one)]
    if len(others) < 2:
        return
    one, other = it.rng.sample(others, 2)
    it.tell(f"node {one.node_id} is cut off")
    _cut_off(it, one)
    await _wait(partial(_proposes, one))

    async def forget(admin: Admin) -> None:
        it.tell(f"broker {one.node_id} is unregistered, but lives on")
        await admin.cluster.unregister(one.node_id)

    await ask_cluster(it, forget)
    _mend(it, one)
    await _wait(lambda: not _proposes(one))
    await asyncio.sleep(2)
    await elect(it)
    await asyncio.sleep(0.5)
    if other.is_on:
        it.tell(f"node {other.node_id} is killed, and starts")
        other.kill()
        start(other)
    await wait_for_start([other])


def _proposes(one: SimulatedNode) -> bool:
    return one.node is not None and any(
        part.leading is not None and part.leading.proposal is not None for part in one.node.broker.partitions
    )


def _cut_off(it: Breaking, one: SimulatedNode) -> None:
    for other in it.cluster:
        if other is not one:
            it.cluster.network.cut(one.machine.host, other.machine.host)
            it.cluster.network.cut(other.machine.host, one.machine.host)


def _mend(it: Breaking, one: SimulatedNode) -> None:
    for other in it.cluster:
        if other is not one:
            it.cluster.network.mend(one.machine.host, other.machine.host)
            it.cluster.network.mend(other.machine.host, one.machine.host)


async def _wait(is_so: Callable[[], object]) -> bool:
    """Wait until something is so. Says whether it is."""
    for _ in range(int(WAIT_S_MAX / STEP_S)):
        if is_so():
            return True
        await asyncio.sleep(STEP_S)
    return False

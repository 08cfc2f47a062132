"""What a fault works on, and how it is undone."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final, NamedTuple

from tests.simulation.cluster.rules.wrong import must

from ottla import Admin
from ottla.client.errors import ClientError
from ottla.model.uuid import Uuid
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode

Place = tuple[Uuid, int]
START_MS_MAX: Final = 120_000


class Breaking(NamedTuple):
    """What a fault works on."""

    cluster: SimulatedCluster
    rng: Random
    lasts_ms: int
    client_host: str
    tell: Callable[[str], None]
    note_rot: Callable[[int, Place], None]
    """Takes the node and the partition whose bytes were damaged."""
    wiped: list[int]
    """The nodes whose disks were lost, in this run."""

    async def wait(self) -> None:
        """Let it last."""
        await asyncio.sleep(self.lasts_ms / 1000)

    def pick(self) -> SimulatedNode:
        """Choose a node."""
        return self.rng.choice(self.cluster.nodes)

    def pick_leader(self) -> SimulatedNode:
        """Choose a node that leads something, half of the time the active controller."""
        leading = [one for one in self.cluster.serving if one.node is not None and leads(one)]
        if leading and self.rng.random() < 0.7:
            return self.rng.choice(leading)
        return self.pick()

    def admin(self) -> Admin:
        """Return a client that gives up soon."""
        return Admin(self.cluster.bootstrap, default_api_timeout_ms=3000, request_timeout_ms=1500)


class FaultKind(NamedTuple):
    """A kind of fault."""

    run: Callable[[Breaking], Awaitable[None]]
    nodes_min: int = 1


def leads(one: SimulatedNode) -> bool:
    """Say whether a node is the active controller or leads a partition."""
    node = one.node
    return node is not None and (
        node.parts.quorum.is_active or any(part.is_leader for part in node.broker.partitions)
    )


async def recover(cluster: SimulatedCluster) -> None:
    """Undo everything, and wait until all nodes serve."""
    cluster.network.mend_all()
    for one in cluster:
        one.disk.heal()
        one.machine.disk_slowness = 1
        one.machine.resume()
    for one in cluster:
        if one.node is None and not one.is_on:
            start(one)
    await wait_for_start(list(cluster), is_final=True)
    # A directory that could not be read at a start is back, but only the next start looks for it.
    without = [one for one in cluster if one.node is not None and one.node.parts.directories.offline_paths]
    for one in without:
        one.kill()
        start(one)
    await wait_for_start(without, is_final=True)


async def restart_all(cluster: SimulatedCluster, how: str) -> None:
    """Have all nodes start again, after power cuts, kills or stops at the same moment."""
    for one in cluster:
        match how:
            case "cut-power":
                one.cut_power()
            case "kill":
                one.kill()
            case _:
                one.begin_stop()
    while any(one.is_on for one in cluster):
        await asyncio.sleep(0.05)
    for one in cluster:
        start(one)
    await wait_for_start(list(cluster), is_final=True)


async def ask_cluster(it: Breaking, ask: Callable[[Admin], Awaitable[Any]]) -> bool:
    """Ask something of the cluster. It may refuse, or not answer."""
    try:
        async with asyncio.timeout(10), it.admin() as admin:
            await ask(admin)
    except (ClientError, TimeoutError) as error:
        it.tell(f"that was refused: {error}")
        return False
    return True


async def cut_links(it: Breaking, pairs: list[tuple[str, str]], ways: str) -> None:
    network = it.cluster.network
    cuts = [(b, a) for a, b in pairs if ways != "out"] + [(a, b) for a, b in pairs if ways != "in"]
    for source, target in cuts:
        network.cut(source, target)
    await it.wait()
    for source, target in cuts:
        network.mend(source, target)


async def start_later(it: Breaking, one: SimulatedNode) -> None:
    await it.wait()
    start(one)
    it.tell(f"node {one.node_id} starts")
    await wait_for_start([one])


async def stop_in_order(it: Breaking, one: SimulatedNode) -> None:
    """Stop a node in order. Another fault may end it first, and it may serve again by then."""
    it.tell(f"node {one.node_id} is stopped in order")
    one.begin_stop()
    while one.is_on and one.node is None:
        await asyncio.sleep(0.05)


async def restart_failed(it: Breaking, one: SimulatedNode) -> None:
    """Start a node again that gave up. One that runs on without its directory is killed first."""
    if one.node is not None and one.node.parts.directories.offline_paths:
        it.tell(f"node {one.node_id} has lost its directory, and is killed")
        one.kill()
    if not one.is_on:
        it.tell(f"node {one.node_id} starts")
        start(one)
        await wait_for_start([one])


def start(one: SimulatedNode) -> None:
    if one.is_on:
        return
    if one.disk.has_forgotten:
        # After a sync that failed, its machine has to be restarted: a process alone would read what is not on
        # the disk. See docs/internals/storage-crashes.md.
        one.cut_power()
    one.switch_on()


async def wait_for_start(nodes: list[SimulatedNode], is_final: bool = False) -> None:
    """Wait until nodes serve. While others are broken, one may give up and has to try again."""
    for _ in range(START_MS_MAX // 50):
        waiting = [one for one in nodes if one.node is None]
        if not waiting or (not is_final and not any(one.is_on for one in waiting)):
            return
        for one in waiting:
            if is_final and not one.is_on:
                must(one.failure is None, f"start: node {one.node_id} does not start: {one.failure}")
                start(one)
        await asyncio.sleep(0.05)
    must(not is_final, f"start: nodes {[one.node_id for one in nodes if one.node is None]} do not start")

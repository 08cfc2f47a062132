"""What can go wrong in a cluster, one coroutine for each kind of fault.

A fault breaks something, waits, and undoes it. Faults overlap. What one of them needs (a node that serves, a
controller that answers) may be gone because of another: then it does nothing. `recover` undoes everything at
the end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final, NamedTuple

from tests.simulation.cluster.wrong import must

from ottla import Admin
from ottla.client.admin.quorum import ControllerEndpoint
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.cluster import CONTROLLER_PORT, SimulatedCluster, directory_id
from ottla.testing.simulation.node import SimulatedNode
from ottla.world.disk import Reason

START_MS_MAX: Final = 120_000


class Breaking(NamedTuple):
    """What a fault works on."""

    cluster: SimulatedCluster
    rng: Random
    lasts_ms: int
    client_host: str
    tell: Callable[[str], None]

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


# One machine


async def kill(it: Breaking) -> None:
    """End a process without a warning, and start it again."""
    one = it.pick_leader()
    if one.is_on:
        it.tell(f"node {one.node_id} is killed")
        one.kill()
        await _start_later(it, one)


async def cut_power(it: Breaking) -> None:
    """Cut the power of a machine, which loses what was not synced."""
    one = it.pick_leader()
    if one.is_on:
        is_silent = it.rng.random() < 0.5
        it.tell(f"the power of node {one.node_id} is cut{', and nobody is told' if is_silent else ''}")
        one.cut_power(is_silent)
        await _start_later(it, one)


async def cut_power_in_a_write(it: Breaking) -> None:
    """Cut the power of a machine in the middle of a write."""
    one = it.pick_leader()
    if one.node is not None:
        writes = it.rng.randrange(1, 30)
        it.tell(f"the power of node {one.node_id} is cut in the {writes}. change of its disk from now")
        one.disk.cut_power_after(writes)
        for _ in range(300):
            await asyncio.sleep(0.01)
            if not one.is_on:
                break
        else:
            one.cut_power()
        await _start_later(it, one)


async def restart(it: Breaking) -> None:
    """Stop a node in order, and start it again."""
    one = it.pick_leader()
    if one.node is not None:
        it.tell(f"node {one.node_id} is stopped in order")
        one.begin_stop()
        while one.is_on:
            await asyncio.sleep(0.05)
        await _start_later(it, one)


async def pause(it: Breaking) -> None:
    """Let a process stand still for a while."""
    one = it.pick_leader()
    if one.is_on:
        it.tell(f"node {one.node_id} stands still for {it.lasts_ms} ms")
        one.machine.pause()
        await it.wait()
        one.machine.resume()


async def jump_clock(it: Breaking) -> None:
    """Let the wall clock of a machine jump, and jump back."""
    one = it.pick()
    jump_ms = it.rng.choice((-3_600_000, -5_000, 5_000, 600_000))
    it.tell(f"the clock of node {one.node_id} jumps by {jump_ms} ms")
    one.machine.wall_offset_ms += jump_ms
    await it.wait()
    one.machine.wall_offset_ms -= jump_ms


# The disk


async def slow_disk(it: Breaking) -> None:
    """Let a disk take a hundred times as long."""
    one = it.pick_leader()
    it.tell(f"the disk of node {one.node_id} is slow")
    one.machine.disk_slowness = it.rng.choice((20, 100, 400))
    await it.wait()
    one.machine.disk_slowness = 1


async def full_disk(it: Breaking) -> None:
    """Let a disk run full. The node gives up, and is started again when there is room."""
    one = it.pick()
    if one.is_on:
        room = it.rng.randrange(0, 20_000)
        it.tell(f"the disk of node {one.node_id} has room for {room} bytes more")
        one.disk.capacity_bytes = one.disk.used_bytes() + room
        await it.wait()
        one.disk.capacity_bytes = None
        await _restart_failed(it, one)


async def failing_sync(it: Breaking) -> None:
    """Let a sync fail, which also loses what it was to write."""
    one = it.pick_leader()
    if one.is_on:
        it.tell(f"a sync of node {one.node_id} fails")
        fault = one.disk.fail("sync", Reason.IO_ERROR, skip=it.rng.randrange(5))
        await it.wait()
        fault.times = 0
        await _restart_failed(it, one)


# The network


async def isolate(it: Breaking) -> None:
    """Cut a node off from the others, sometimes from clients too, and sometimes in one direction only."""
    one = it.pick_leader()
    others = [other.machine.host for other in it.cluster if other is not one]
    if it.rng.random() < 0.5:
        others.append(it.client_host)
    ways = it.rng.choice(("both", "both", "in", "out"))
    it.tell(f"node {one.node_id} is cut off from {', '.join(others)} ({ways}) for {it.lasts_ms} ms")
    await _cut(it, [(one.machine.host, other) for other in others], ways)


async def cut_link(it: Breaking) -> None:
    """Cut the link between two nodes."""
    a, b = it.rng.sample(it.cluster.nodes, 2)
    ways = it.rng.choice(("both", "in", "out"))
    it.tell(f"the link between node {a.node_id} and node {b.node_id} is cut ({ways}) for {it.lasts_ms} ms")
    await _cut(it, [(a.machine.host, b.machine.host)], ways)


async def split(it: Breaking) -> None:
    """Split the cluster into two halves. Clients are on one side."""
    hosts = [one.machine.host for one in it.cluster]
    it.rng.shuffle(hosts)
    place = it.rng.randrange(1, len(hosts))
    left, right = hosts[:place], hosts[place:]
    it.rng.choice((left, right)).append(it.client_host)
    it.tell(f"the network is split into {left} and {right} for {it.lasts_ms} ms")
    await _cut(it, [(a, b) for a in left for b in right], "both")


async def slow_link(it: Breaking) -> None:
    """Let packets between two nodes take long."""
    a, b = it.rng.sample(it.cluster.nodes, 2)
    delay_us = it.rng.choice((20_000, 200_000, 700_000))
    it.tell(f"packets between node {a.node_id} and node {b.node_id} take {delay_us} us longer")
    for source, target in ((a, b), (b, a)):
        it.cluster.network.slow_down(source.machine.host, target.machine.host, delay_us)
    await it.wait()
    for source, target in ((a, b), (b, a)):
        it.cluster.network.slow_down(source.machine.host, target.machine.host, 0)


async def reset_connections(it: Breaking) -> None:
    """Break all connections of a node, again and again."""
    one = it.pick_leader()
    for _ in range(it.rng.randint(1, 4)):
        it.tell(f"the connections of node {one.node_id} are reset")
        it.cluster.network.reset(one.machine.host)
        await asyncio.sleep(it.lasts_ms / 4000)


# All of them


async def cut_power_of_all(it: Breaking) -> None:
    """Cut the power of all machines at once."""
    it.tell("the power of all nodes is cut")
    down = [one for one in it.cluster if one.is_on]
    for one in down:
        one.cut_power()
    await it.wait()
    for one in down:
        _start(one)
    await _wait_for_start(down)


async def pause_then_kill(it: Breaking) -> None:
    """Pause a minority, let writes build up, kill one of the rest with loss, and wake the minority first.

    Those that missed the writes and the one that may have lost them are a majority then.
    """
    nodes = list(it.cluster)
    it.rng.shuffle(nodes)
    slept, rest = nodes[: (len(nodes) - 1) // 2], nodes[(len(nodes) - 1) // 2 :]
    it.tell(f"nodes {[one.node_id for one in slept]} stand still while writes build up")
    for one in slept:
        one.machine.pause()
    await it.wait()
    victim, others = rest[0], rest[1:]
    it.tell(f"the power of node {victim.node_id} is cut, nodes {[one.node_id for one in others]} stand still")
    is_down = victim.is_on
    if is_down:
        victim.cut_power()
    for one in others:
        one.machine.pause()
    for one in slept:
        one.machine.resume()
    if is_down:
        _start(victim)
    await it.wait()
    for one in others:
        one.machine.resume()
    await _wait_for_start([victim])


async def split_then_kill(it: Breaking) -> None:
    """Do the same with a split network instead of pauses."""
    nodes = list(it.cluster)
    it.rng.shuffle(nodes)
    away, rest = nodes[: (len(nodes) - 1) // 2], nodes[(len(nodes) - 1) // 2 :]
    it.tell(f"nodes {[one.node_id for one in away]} are cut off while writes build up")
    pairs = [(a.machine.host, b.machine.host) for a in away for b in rest]
    await _cut(it, pairs, "both")
    victim, others = rest[0], rest[1:]
    if not victim.is_on:
        return
    it.tell(f"the power of node {victim.node_id} is cut, and it comes back with those that were cut off")
    victim.cut_power()
    _start(victim)
    await _cut(it, [(a.machine.host, b.machine.host) for a in others for b in (*away, victim)], "both")
    await _wait_for_start([victim])


# What operators do


async def reassign(it: Breaking) -> None:
    """Move partitions to other brokers, or change the order of their replicas."""

    async def move(admin: Admin) -> None:
        topics = [topic.name for topic in await admin.topics.list(internal=True)]
        name = it.rng.choice(topics)
        parts = (await admin.topics.describe(name)).partitions
        ids = [one.node_id for one in it.cluster]
        targets = {
            TopicPartition(name, part.partition): it.rng.sample(ids, min(len(ids), 3)) for part in parts
        }
        it.tell(f"{name} is moved to {[*targets.values()]}")
        await admin.replicas.reassign(targets)

    await _ask(it, move)


async def elect(it: Breaking) -> None:
    """Let preferred replicas lead."""

    async def ask(admin: Admin) -> None:
        it.tell("preferred leaders are elected")
        await admin.replicas.elect()

    await _ask(it, ask)


async def change_voters(it: Breaking) -> None:
    """Let a voter vote no more, and add it again; or add a node that only followed so far."""
    one = it.pick()
    host = one.machine.host
    endpoint = ControllerEndpoint("CONTROLLER", host, CONTROLLER_PORT)

    async def remove(admin: Admin) -> None:
        it.tell(f"node {one.node_id} is to vote no more")
        await admin.quorum.remove_voter(one.node_id, directory_id(one.node_id))

    async def add(admin: Admin) -> None:
        it.tell(f"node {one.node_id} is to vote")
        await admin.quorum.add_voter(one.node_id, directory_id(one.node_id), [endpoint])

    if one.node_id <= it.cluster.voters:
        await _ask(it, remove)
        await it.wait()
    for _ in range(5):
        if await _ask(it, add):
            break
        await asyncio.sleep(1)


async def upgrade(it: Breaking) -> None:
    """Use transactions of the newest version from now on."""

    async def ask(admin: Admin) -> None:
        it.tell("transaction.version becomes 2")
        await admin.cluster.update_features({"transaction.version": 2})

    await _ask(it, ask)


FAULTS: Final[dict[str, FaultKind]] = {
    "kill": FaultKind(kill),
    "cut-power": FaultKind(cut_power),
    "cut-power-in-a-write": FaultKind(cut_power_in_a_write),
    "restart": FaultKind(restart),
    "pause": FaultKind(pause),
    "jump-clock": FaultKind(jump_clock),
    "slow-disk": FaultKind(slow_disk),
    "full-disk": FaultKind(full_disk),
    "failing-sync": FaultKind(failing_sync),
    "cut-off": FaultKind(isolate, 2),
    "cut-link": FaultKind(cut_link, 2),
    "split": FaultKind(split, 2),
    "slow-link": FaultKind(slow_link, 2),
    "reset-connections": FaultKind(reset_connections),
    "cut-power-of-all": FaultKind(cut_power_of_all),
    "pause-then-kill": FaultKind(pause_then_kill, 3),
    "split-then-kill": FaultKind(split_then_kill, 3),
    "reassign": FaultKind(reassign, 3),
    "elect": FaultKind(elect, 3),
    "change-voters": FaultKind(change_voters, 3),
    "upgrade": FaultKind(upgrade),
}


async def recover(cluster: SimulatedCluster) -> None:
    """Undo everything, and wait until all nodes serve."""
    cluster.network.mend_all()
    for one in cluster:
        one.disk.heal()
        one.machine.disk_slowness = 1
        one.machine.resume()
    for one in cluster:
        if one.node is None and not one.is_on:
            _start(one)
    await _wait_for_start(list(cluster), is_final=True)


async def _ask(it: Breaking, ask: Callable[[Admin], Awaitable[Any]]) -> bool:
    """Ask something of the cluster. It may refuse, or not answer."""
    try:
        async with asyncio.timeout(10), it.admin() as admin:
            await ask(admin)
    except (ClientError, TimeoutError) as error:
        it.tell(f"that was refused: {error}")
        return False
    return True


async def _cut(it: Breaking, pairs: list[tuple[str, str]], ways: str) -> None:
    network = it.cluster.network
    cuts = [(b, a) for a, b in pairs if ways != "out"] + [(a, b) for a, b in pairs if ways != "in"]
    for source, target in cuts:
        network.cut(source, target)
    await it.wait()
    for source, target in cuts:
        network.mend(source, target)


async def _start_later(it: Breaking, one: SimulatedNode) -> None:
    await it.wait()
    _start(one)
    it.tell(f"node {one.node_id} starts")
    await _wait_for_start([one])


async def _restart_failed(it: Breaking, one: SimulatedNode) -> None:
    """Start a node again that gave up. One that runs on without its directory is killed first."""
    if one.node is not None and one.node.parts.directories.offline_paths:
        it.tell(f"node {one.node_id} has lost its directory, and is killed")
        one.kill()
    if not one.is_on:
        it.tell(f"node {one.node_id} starts")
        _start(one)
        await _wait_for_start([one])


def _start(one: SimulatedNode) -> None:
    if not one.is_on:
        one.switch_on()


async def _wait_for_start(nodes: list[SimulatedNode], is_final: bool = False) -> None:
    """Wait until nodes serve. While others are broken, one may give up and has to try again."""
    for _ in range(START_MS_MAX // 50):
        waiting = [one for one in nodes if one.node is None]
        if not waiting or (not is_final and not any(one.is_on for one in waiting)):
            return
        for one in waiting:
            if is_final and not one.is_on:
                must(one.failure is None, f"start: node {one.node_id} does not start: {one.failure}")
                one.switch_on()
        await asyncio.sleep(0.05)
    must(not is_final, f"start: nodes {[one.node_id for one in nodes if one.node is None]} do not start")

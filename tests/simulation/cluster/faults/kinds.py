"""What can go wrong in a cluster, one coroutine for each kind of fault.

A fault breaks something, waits, and undoes it. Faults overlap. What one of them needs (a node that serves, a
controller that answers) may be gone because of another: then it does nothing. `recover` undoes everything at
the end. What operators do is in `operators`.
"""

import asyncio
from typing import Final

from tests.simulation.cluster.faults.aimed import (
    cut_power_in_a_snapshot,
    rival_controllers,
    rival_leaders,
)
from tests.simulation.cluster.faults.breaking import (
    Breaking,
    FaultKind,
    cut_links,
    restart_failed,
    start,
    start_later,
    stop_in_order,
    wait_for_start,
)
from tests.simulation.cluster.faults.changes import (
    change_access_rules,
    change_configs,
    change_quotas,
    delete_records,
    raise_features,
)
from tests.simulation.cluster.faults.damage import damage_below_min, rot
from tests.simulation.cluster.faults.directories import (
    fail_directory,
    fill_directory,
    move_logs,
    start_without_directory,
)
from tests.simulation.cluster.faults.misleading import half_open, reject, slow_metadata, stay_alone
from tests.simulation.cluster.faults.operators import (
    change_brokers,
    change_voters,
    elect,
    reassign,
    upgrade,
    wipe,
)
from tests.simulation.cluster.faults.rare import (
    cut_power_of_slow_disk,
    cut_while_compacting,
    forget_a_leader,
)

from ottla.testing.simulation.node import SimulatedNode
from ottla.world.disk import Reason

# One machine


async def kill(it: Breaking) -> None:
    """End a process without a warning, and start it again."""
    one = it.pick_leader()
    if one.is_on:
        it.tell(f"node {one.node_id} is killed")
        one.kill()
        await start_later(it, one)


async def cut_power(it: Breaking) -> None:
    """Cut the power of a machine, which loses what was not synced."""
    one = it.pick_leader()
    if one.is_on:
        is_silent = it.rng.random() < 0.5
        it.tell(f"the power of node {one.node_id} is cut{', and nobody is told' if is_silent else ''}")
        one.cut_power(is_silent)
        await start_later(it, one)


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
        await start_later(it, one)


async def restart(it: Breaking) -> None:
    """Stop a node in order, and start it again."""
    one = it.pick_leader()
    if one.node is not None:
        await stop_in_order(it, one)
        await start_later(it, one)


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
        await restart_failed(it, one)


async def failing_sync(it: Breaking) -> None:
    """Let a sync fail, which also loses what it was to write."""
    one = it.pick_leader()
    if one.is_on:
        it.tell(f"a sync of node {one.node_id} fails")
        fault = one.disk.fail("sync", Reason.IO_ERROR, skip=it.rng.randrange(5))
        await it.wait()
        fault.times = 0
        await restart_failed(it, one)


# The network


async def isolate(it: Breaking) -> None:
    """Cut a node off from the others, sometimes from clients too, and sometimes in one direction only."""
    one = it.pick_leader()
    others = [other.machine.host for other in it.cluster if other is not one]
    if it.rng.random() < 0.5:
        others.append(it.client_host)
    ways = it.rng.choice(("both", "both", "in", "out"))
    it.tell(f"node {one.node_id} is cut off from {', '.join(others)} ({ways}) for {it.lasts_ms} ms")
    await cut_links(it, [(one.machine.host, other) for other in others], ways)


async def cut_link(it: Breaking) -> None:
    """Cut the link between two nodes."""
    a, b = it.rng.sample(it.cluster.nodes, 2)
    ways = it.rng.choice(("both", "in", "out"))
    it.tell(f"the link between node {a.node_id} and node {b.node_id} is cut ({ways}) for {it.lasts_ms} ms")
    await cut_links(it, [(a.machine.host, b.machine.host)], ways)


async def split(it: Breaking) -> None:
    """Split the cluster into two halves. Clients are on one side."""
    hosts = [one.machine.host for one in it.cluster]
    it.rng.shuffle(hosts)
    place = it.rng.randrange(1, len(hosts))
    left, right = hosts[:place], hosts[place:]
    it.rng.choice((left, right)).append(it.client_host)
    it.tell(f"the network is split into {left} and {right} for {it.lasts_ms} ms")
    await cut_links(it, [(a, b) for a in left for b in right], "both")


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


async def late_packets(it: Breaking) -> None:
    """Let packets to a node come so late that senders connect again and repeat what they have sent.

    So a node gets a request twice, and an old one after a new one. On one connection TCP allows neither.
    """
    one = it.pick_leader()
    hosts = [it.client_host, *(other.machine.host for other in it.cluster if other is not one)]
    network, target = it.cluster.network, one.machine.host
    for _ in range(it.rng.randint(1, 4)):
        late_ms = it.rng.choice((5, 30, 150, 600))
        it.tell(
            f"packets to node {one.node_id} come {late_ms} ms late, and on connections that were given up"
        )
        for host in hosts:
            network.slow_down(host, target, 1000 * late_ms)
        await asyncio.sleep(late_ms / 1000)
        for host in hosts:
            network.slow_down(host, target, 0)
            network.give_up(host, target)
        await asyncio.sleep(it.lasts_ms / 4000)


async def unseat(it: Breaking) -> None:
    """Take the active controller away, again and again, while voters lose power."""
    for _ in range(it.rng.randint(2, 4)):
        active = next(
            (one for one in it.cluster.serving if one.node is not None and one.node.parts.quorum.is_active),
            None,
        )
        if active is not None:
            await _unseat(it, active)
        await asyncio.sleep(it.rng.choice((0.05, 0.3, 0.6)))


async def _unseat(it: Breaking, active: SimulatedNode) -> None:
    others = [one for one in it.cluster if one is not active]
    links = [(active.machine.host, one.machine.host) for one in others]
    it.tell(f"the active controller, node {active.node_id}, is taken away")
    match it.rng.choice(("pause", "cut", "cut", "kill")):
        case "pause":
            active.machine.pause()
            await it.wait()
            active.machine.resume()
        case "cut":
            # Clients still reach it, so it may write what nobody else has.
            await cut_links(it, links, "both")
        case _:
            active.cut_power()
            await start_later(it, active)
    victim = it.rng.choice(others)
    if it.rng.random() < 0.5 and victim.is_on:
        it.tell(f"the power of node {victim.node_id} is cut")
        victim.cut_power()
        start(victim)
        await wait_for_start([victim])


# All of them


async def cut_power_of_all(it: Breaking) -> None:
    """Cut the power of all machines at once."""
    it.tell("the power of all nodes is cut")
    down = [one for one in it.cluster if one.is_on]
    for one in down:
        one.cut_power()
    await it.wait()
    for one in down:
        start(one)
    await wait_for_start(down)


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
        start(victim)
    await it.wait()
    for one in others:
        one.machine.resume()
    await wait_for_start([victim])


async def split_then_kill(it: Breaking) -> None:
    """Do the same with a split network instead of pauses."""
    nodes = list(it.cluster)
    it.rng.shuffle(nodes)
    away, rest = nodes[: (len(nodes) - 1) // 2], nodes[(len(nodes) - 1) // 2 :]
    it.tell(f"nodes {[one.node_id for one in away]} are cut off while writes build up")
    pairs = [(a.machine.host, b.machine.host) for a in away for b in rest]
    await cut_links(it, pairs, "both")
    victim, others = rest[0], rest[1:]
    if not victim.is_on:
        return
    it.tell(f"the power of node {victim.node_id} is cut, and it comes back with those that were cut off")
    victim.cut_power()
    start(victim)
    await cut_links(it, [(a.machine.host, b.machine.host) for a in others for b in (*away, victim)], "both")
    await wait_for_start([victim])


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
    "rot": FaultKind(rot, 3),
    "cut-off": FaultKind(isolate, 2),
    "cut-link": FaultKind(cut_link, 2),
    "split": FaultKind(split, 2),
    "slow-link": FaultKind(slow_link, 2),
    "reset-connections": FaultKind(reset_connections),
    "late-packets": FaultKind(late_packets),
    "unseat-controller": FaultKind(unseat, 3),
    "cut-power-of-all": FaultKind(cut_power_of_all),
    "pause-then-kill": FaultKind(pause_then_kill, 3),
    "split-then-kill": FaultKind(split_then_kill, 3),
    "reassign": FaultKind(reassign, 3),
    "elect": FaultKind(elect, 3),
    "change-voters": FaultKind(change_voters, 3),
    "change-brokers": FaultKind(change_brokers, 3),
    "wipe-disk": FaultKind(wipe, 3),
    "upgrade": FaultKind(upgrade),
    "rival-controllers": FaultKind(rival_controllers, 3),
    "cut-power-in-a-snapshot": FaultKind(cut_power_in_a_snapshot, 3),
    "rival-leaders": FaultKind(rival_leaders, 3),
    "cut-power-of-slow-disk": FaultKind(cut_power_of_slow_disk, 3),
    "cut-while-compacting": FaultKind(cut_while_compacting, 3),
    "forget-a-leader": FaultKind(forget_a_leader, 3),
    "move-logs": FaultKind(move_logs),
    "fail-directory": FaultKind(fail_directory),
    "fill-directory": FaultKind(fill_directory),
    "start-without-directory": FaultKind(start_without_directory),
    "change-configs": FaultKind(change_configs),
    "raise-features": FaultKind(raise_features),
    "change-quotas": FaultKind(change_quotas),
    "change-access-rules": FaultKind(change_access_rules),
    "delete-records": FaultKind(delete_records),
    "reject": FaultKind(reject, 2),
    "half-open": FaultKind(half_open, 2),
    "slow-metadata": FaultKind(slow_metadata),
    "damage-below-min": FaultKind(damage_below_min, 3),
    "stay-alone": FaultKind(stay_alone, 3),
}


FAMILIES: Final = (
    ("unseat-controller", "change-voters", "cut-power", "cut-off", "unseat-controller", "wipe-disk"),
    ("cut-power", "cut-power-in-a-write", "cut-power-of-all", "failing-sync", "restart", "pause-then-kill"),
    ("cut-off", "pause", "kill", "elect", "reassign", "split", "split-then-kill", "cut-power"),
    ("reset-connections", "late-packets", "slow-link", "cut-link", "elect"),
    ("change-brokers", "reassign", "restart", "elect", "wipe-disk"),
    ("rot", "slow-link", "reset-connections", "elect"),
)
"""Faults that make each other worse. Those of half of the seeds are drawn from one of these."""
AIMED: Final = ("rival-controllers", "cut-power-in-a-snapshot", "rival-leaders", "rival-leaders")
"""Faults that wait for their moment. Seeds with further clients have them, beside those that are drawn."""
RARE: Final = ("cut-power-of-slow-disk", "cut-while-compacting", "forget-a-leader")
"""Faults of several steps. A few seeds have one of them, and nothing else breaks in these."""
OF_DIRECTORIES: Final = ("move-logs", "fail-directory", "fill-directory", "start-without-directory")
"""Faults of nodes that have two log directories."""
WIDE: Final = (
    *OF_DIRECTORIES,
    "change-configs",
    "raise-features",
    "change-quotas",
    "change-access-rules",
    "delete-records",
    "reject",
    "half-open",
    "slow-metadata",
)
"""Faults of a wider world, which many seeds have (see `wide`)."""
WIDE_ALONE: Final = ("damage-below-min", "damage-below-min", "stay-alone")
"""Faults of a wider world of several steps, or of a long time, beside which nothing else breaks."""
WIDE_FAMILIES: Final = (
    ("move-logs", "fail-directory", "start-without-directory", "cut-power", "kill", "restart", "move-logs"),
    ("move-logs", "fill-directory", "cut-off", "elect", "reassign", "move-logs"),
    ("change-configs", "change-configs", "restart", "kill", "raise-features", "cut-off"),
    ("reject", "half-open", "slow-metadata", "pause", "restart", "cut-off"),
    ("change-quotas", "change-access-rules", "delete-records", "change-configs", "kill", "elect"),
)
"""Faults of a wider world that make each other worse."""
ALONE: Final = frozenset(("rot", *AIMED, *RARE, *WIDE, *WIDE_ALONE))
"""Faults that are not drawn beside all others: a bit that changes on the only disk that is left is lost."""

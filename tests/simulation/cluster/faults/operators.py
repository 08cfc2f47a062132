"""What operators do to a cluster while it works, which may be refused."""

import asyncio
from typing import Final

from tests.simulation.cluster.faults.breaking import (
    Breaking,
    ask_cluster,
    start,
    start_later,
    stop_in_order,
    wait_for_start,
)

from ottla import Admin
from ottla.client.admin.quorum import ControllerEndpoint
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.testing.simulation.cluster import CONTROLLER_PORT
from ottla.testing.simulation.node import SimulatedNode

EMPTY_S_MAX: Final = 8
"""How long it may take until a node that is down is not needed any more."""
VOTE_TRIES: Final = 5


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

    await ask_cluster(it, move)


async def elect(it: Breaking) -> None:
    """Let preferred replicas lead."""

    async def ask(admin: Admin) -> None:
        it.tell("preferred leaders are elected")
        await admin.replicas.elect()

    await ask_cluster(it, ask)


async def change_voters(it: Breaking) -> None:
    """Let a voter vote no more, and add it again; or add a node that only followed so far.

    Not after a disk was lost: until its node votes again, the old voter counts, and without another one no
    majority would be left (KIP-853).
    """
    if it.wiped:
        return
    one = it.pick()
    if one.node_id <= it.cluster.voters:
        await ask_cluster(it, lambda admin: _remove_voter(it, admin, one, one.directory_id))
        await it.wait()
    await let_vote(it, one)


async def _remove_voter(it: Breaking, admin: Admin, one: SimulatedNode, directory: Uuid) -> None:
    it.tell(f"node {one.node_id} is to vote no more")
    await admin.quorum.remove_voter(one.node_id, directory)


async def let_vote(it: Breaking, one: SimulatedNode) -> None:
    """Let a node vote, if it does not already."""
    endpoint = ControllerEndpoint("CONTROLLER", one.machine.host, CONTROLLER_PORT)

    async def add(admin: Admin) -> None:
        it.tell(f"node {one.node_id} is to vote")
        await admin.quorum.add_voter(one.node_id, one.directory_id, [endpoint])

    for _ in range(VOTE_TRIES):
        if await ask_cluster(it, add):
            break
        await asyncio.sleep(1)


async def change_brokers(it: Breaking) -> None:
    """Add a broker; later stop it, and let the cluster forget it until it comes back."""
    added = [one for one in it.cluster if one.node_id > it.cluster.voters]
    if not added:
        one = it.cluster.add_node()
        it.tell(f"node {one.node_id} is added")
        start(one)
        await wait_for_start([one])
        await it.wait()
        return
    one = it.rng.choice(added)
    if one.node is None:
        return
    await stop_in_order(it, one)

    async def forget(admin: Admin) -> None:
        it.tell(f"broker {one.node_id} is unregistered")
        await admin.cluster.unregister(one.node_id)

    await ask_cluster(it, forget)
    await start_later(it, one)


async def wipe(it: Breaking) -> None:
    """Let a node come back with an empty disk, as soon as nothing needs what was on the old one.

    Its new directory is another voter (KIP-853), so the old one has to be removed. A second disk may be lost
    only when the first node votes again: else a majority of voters could be gone. So it happens once.
    """
    one = it.pick_leader()
    if not one.is_on or it.wiped:
        return
    it.wiped.append(one.node_id)
    it.tell(f"node {one.node_id} is killed, and its disk is lost")
    one.cut_power()
    if not await _is_not_needed_any_more(it, one):
        return
    old = one.directory_id
    one.replace_disk(Uuid(bytes([one.node_id] * 15 + [255])))
    await start_later(it, one)
    if one.node_id <= it.cluster.voters:
        for _ in range(VOTE_TRIES):
            if await ask_cluster(it, lambda admin: _remove_voter(it, admin, one, old)):
                break
            await asyncio.sleep(1)
        await let_vote(it, one)


async def _is_not_needed_any_more(it: Breaking, one: SimulatedNode) -> bool:
    """Wait until nothing needs the disk of a node that is down. If that does not happen, start it."""
    for _ in range(10 * EMPTY_S_MAX):
        await asyncio.sleep(0.1)
        if one.is_on:
            it.tell(f"node {one.node_id} was switched on again with its old disk")
            return False
        if not _is_needed(it, one):
            return True
    it.tell(f"node {one.node_id} is still needed, and starts with its old disk")
    await start_later(it, one)
    return False


def _is_needed(it: Breaking, one: SimulatedNode) -> bool:
    """Say whether a node may have what no other has, as far as the active controller knows.

    Those are the replicas in sync, and those that may lead a partition again once they are back (KIP-966): a
    partition without a leader waits for them, and they are in no in-sync set.
    """
    for other in it.cluster.serving:
        if other.node is not None and other.node.parts.quorum.is_active:
            image = other.node.broker.image
            return one.node_id in image.brokers and any(
                one.node_id
                in (
                    *partition.isr,
                    *(partition.eligible_leader_replicas or ()),
                    *(partition.last_known_elr or ()),
                )
                for topic in image.topics
                for partition in topic.partitions.values()
            )
    return True


async def upgrade(it: Breaking) -> None:
    """Use transactions of the newest version from now on."""

    async def ask(admin: Admin) -> None:
        it.tell("transaction.version becomes 2")
        await admin.cluster.update_features({"transaction.version": 2})

    await ask_cluster(it, ask)

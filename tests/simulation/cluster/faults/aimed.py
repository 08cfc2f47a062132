"""Faults that wait for their moment. They look at the nodes, so that what is rare happens often."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.cluster.faults.breaking import Breaking, ask_cluster, start, wait_for_start
from tests.simulation.cluster.faults.operators import let_vote

from ottla import Admin
from ottla.client.errors import ClientError
from ottla.quorum.raft.states import Leader
from ottla.quorum.snapshot_file import find_snapshot_id
from ottla.storage.names import METADATA_PARTITION, directory_name
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.testing.simulation.node import DATA, PORT, SimulatedNode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

METADATA: Final = f"{DATA}/{directory_name(METADATA_PARTITION)}"
STEP_S: Final = 0.001
AWAY_S_MAX: Final = 8
"""How long it may take until others have deleted what a node that is away does not have."""
_LED: Final = (
    ("hostile", 1),
    ("hostile", 1),
    ("hostile", 0),
    ("careless", 0),
    ("careless-latest", 0),
)
"""Partitions that further clients write to. Markers are written to the second one of `hostile`."""


async def rival_controllers(it: Breaking) -> None:
    """Cut the active controller off while it takes requests on, until another one is elected.

    So it has written what nobody else has: a topic, or that somebody, maybe itself, votes no more. Sometimes
    its rival is killed at once, and what that has written stays. Then the first one may win again, and its
    log is longer than that of its rival, but older.
    """
    active = next((one for one in it.cluster.serving if leads_quorum(one)), None)
    if active is None:
        return
    others = [one for one in it.cluster if one is not active]
    voter = it.rng.choice([one for one in it.cluster if one.node_id <= it.cluster.voters])
    changes_voters, rival_dies = it.rng.random() < 0.5, it.rng.random() < 0.6
    it.tell(f"the active controller, node {active.node_id}, is cut off, and takes requests on")
    links = [(active.machine.host, one.machine.host) for one in others]
    for a, b in links:
        it.cluster.network.cut(a, b)
        it.cluster.network.cut(b, a)
    asking = asyncio.create_task(_ask_alone(it, active, voter if changes_voters else None))
    rival = await _find_rival(it, active, alone=rival_dies)
    if rival is not None and rival_dies:
        it.tell(f"node {rival.node_id} is elected, and killed")
        rival.kill()
    it.cluster.network.mend_all()
    await asking
    await it.wait()
    if rival is not None and rival_dies and not rival.is_on:
        start(rival)
        await wait_for_start([rival])
    if changes_voters:
        await let_vote(it, voter)


async def _ask_alone(it: Breaking, active: SimulatedNode, voter: SimulatedNode | None) -> None:
    """Ask a node for something that it cannot commit."""
    with suppress(ClientError, TimeoutError):
        async with (
            asyncio.timeout(2),
            Admin(active.bootstrap, default_api_timeout_ms=1500, request_timeout_ms=1500) as admin,
        ):
            if voter is not None:
                it.tell(f"node {active.node_id} is told that node {voter.node_id} votes no more")
                await admin.quorum.remove_voter(voter.node_id, voter.directory_id)
            else:
                it.tell(f"node {active.node_id} is told to create a topic")
                await admin.topics.create("of-a-rival", partitions=4)


async def _find_rival(it: Breaking, active: SimulatedNode, *, alone: bool) -> SimulatedNode | None:
    """Wait until another node leads the quorum, too. If it is to be alone, nobody gets what it writes."""
    others = [one for one in it.cluster if one is not active]
    for _ in range(4_000):
        await asyncio.sleep(STEP_S / 2)
        for one in others if alone else ():
            voted = None if one.node is None else one.node.parts.quorum.driver.replica.state.voted
            if voted is not None and voted.node_id not in (one.node_id, active.node_id):
                # The vote gets through. The answer to it does not.
                it.cluster.network.cut(it.cluster[voted.node_id].machine.host, one.machine.host)
        rival = next((one for one in others if leads_quorum(one)), None)
        if rival is not None:
            return rival
    return None


def leads_quorum(one: SimulatedNode) -> bool:
    """Say whether a node leads the quorum, as far as it knows."""
    return one.node is not None and isinstance(one.node.parts.quorum.driver.replica.state, Leader)


async def cut_power_in_a_snapshot(it: Breaking) -> None:
    """Cut the power of a node while it puts a snapshot of the metadata in the place of its log.

    That is a new node. Where there are more nodes than voters, it is a controller whose log is longer than
    the snapshot, but older.
    """
    if len(it.cluster.nodes) > it.cluster.voters:
        active = next((one for one in it.cluster.serving if leads_quorum(one)), None)
        if active is None:
            return
        one, known = active, await _keep_away(it, active)
    else:
        await asyncio.sleep(1)
        one, known = it.cluster.add_node(), -1
        it.tell(f"node {one.node_id} is added, and loses power as soon as it has a snapshot of the metadata")
    disarm = _cut_power_after_snapshot(one.disk, known, it.rng.randrange(1, 3))
    start(one)
    for _ in range(200):
        await asyncio.sleep(0.01)
        if not one.is_on or one.node is not None:
            break
    # It may have started without a snapshot. The next one is its own.
    disarm()
    if not one.is_on:
        start(one)
    await wait_for_start([one])


async def _keep_away(it: Breaking, active: SimulatedNode) -> int:
    """Kill a controller that has written much alone, until others have deleted what it misses.

    Returns up to where all have the same.
    """
    assert active.node is not None
    known = active.node.parts.quorum.driver.high_watermark
    it.tell(f"the active controller, node {active.node_id}, is cut off, and takes requests on")
    for one in it.cluster:
        if one is not active:
            it.cluster.network.cut(active.machine.host, one.machine.host)
            it.cluster.network.cut(one.machine.host, active.machine.host)
    await _write_alone(active)
    it.tell(f"node {active.node_id} is killed, and loses power when it gets a snapshot of what it has missed")
    active.kill()
    it.cluster.network.mend_all()
    for number in range(AWAY_S_MAX):
        await ask_cluster(it, partial(_create_missed, name=f"missed-{number}"))
        await asyncio.sleep(0.5)
        starts = [one.node.parts.quorum.driver.log.log_start_offset for one in it.cluster if one.node]
        if min(starts, default=0) > known:
            break
    return known


async def _write_alone(active: SimulatedNode) -> None:
    """Have a controller write many records that it cannot commit."""
    topic = CreatableTopic(
        name="of-one-alone", num_partitions=200, replication_factor=-1, assignments=(), configs=()
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=1000)
    with suppress(ClientError, TimeoutError):
        async with asyncio.timeout(1), raw_connection(active.machine.host, PORT) as connection:
            await connection.ask(request, 7)


async def _create_missed(admin: Admin, name: str) -> None:
    await admin.topics.create(name, partitions=10)


def _cut_power_after_snapshot(disk: SimulatedDisk, known: int, changes: int) -> Callable[[], None]:
    """Cut the power so many changes of a disk after a snapshot of what is not known has got its name.

    Returns what calls this off.
    """
    sync_directory = disk.sync_directory

    def disarm() -> None:
        disk.sync_directory = sync_directory  # type: ignore[method-assign]

    def watched(path: str) -> None:
        sync_directory(path)
        found = [find_snapshot_id(entry.name) for entry in disk.list(path)] if path == METADATA else []
        if any(one is not None and one.end_offset > known for one in found):
            disarm()
            disk.cut_power_after(changes)

    disk.sync_directory = watched  # type: ignore[method-assign]
    return disarm


async def rival_leaders(it: Breaking) -> None:
    """Cut the leader of a partition off from other nodes, until another one leads. Clients still reach it.

    Then do the same to that one, whose epoch has just begun.
    """
    topic, index = it.rng.choice(_LED)
    for _ in range(it.rng.randint(1, 3)):
        old = leader_of(it, topic, index, None)
        if old is None:
            return
        it.tell(f"node {old.node_id}, which leads {topic}-{index}, is cut off, and takes records on")
        links = [(old.machine.host, one.machine.host) for one in it.cluster if one is not old]
        for a, b in links:
            it.cluster.network.cut(a, b)
            it.cluster.network.cut(b, a)
        for _ in range(1_500):
            await asyncio.sleep(2 * STEP_S)
            if leader_of(it, topic, index, old) is not None:
                break
        for a, b in links:
            it.cluster.network.mend(a, b)
            it.cluster.network.mend(b, a)


def leader_of(it: Breaking, topic: str, index: int, other_than: SimulatedNode | None) -> SimulatedNode | None:
    """Return a node that leads a partition as far as it knows."""
    for one in it.cluster.serving:
        part = None if one.node is None else one.node.broker.partitions.find(topic, index)
        if part is not None and part.is_leader and one is not other_than:
            return one
    return None

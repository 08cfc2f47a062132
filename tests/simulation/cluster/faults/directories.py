"""What happens to single log directories of a node that has several: moves, and directories that fail."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.cluster.faults.breaking import (
    Breaking,
    restart_failed,
    start,
    start_later,
    stop_in_order,
    wait_for_start,
)

from ottla.client.errors import ClientError
from ottla.testing.simulated_disk import Fault, SimulatedDisk
from ottla.testing.simulation.node import DATA, PORT, SimulatedNode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.world.disk import Reason

SECOND: Final = "/other"
"""The second directory of nodes that have two."""
DIRECTORIES: Final = f"{DATA},{SECOND}"
_OPERATIONS: Final = ("read", "write", "sync", "sync_directory", "truncate")
"""What a directory that is gone does not do."""


async def move_logs(it: Breaking) -> None:
    """Move replicas of one node to its other directory, maybe back before they have arrived."""
    one = it.pick_leader()
    for _ in range(it.rng.randint(1, 3)):
        if one.node is None:
            return
        parts = [part for part in one.node.broker.partitions if part.log.volume.error is None]
        chosen = it.rng.sample(parts, min(len(parts), it.rng.choice((1, 2, 5))))
        wanted: dict[str, dict[str, list[int]]] = {}
        for part in chosen:
            target = DATA if part.log.path.startswith(SECOND) else SECOND
            wanted.setdefault(target, {}).setdefault(part.topic, []).append(part.index)
        if wanted:
            it.tell(f"node {one.node_id} is to move logs: {wanted}")
            await _ask_to_move(one, wanted)
        await it.wait()


async def _ask_to_move(one: SimulatedNode, wanted: dict[str, dict[str, list[int]]]) -> None:
    request = AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=path,
                topics=tuple(
                    AlterReplicaLogDirTopic(name=topic, partitions=tuple(partitions))
                    for topic, partitions in topics.items()
                ),
            )
            for path, topics in wanted.items()
        )
    )
    try:
        async with asyncio.timeout(5), raw_connection(one.machine.host, PORT) as connection:
            await connection.ask(request, 2)
    except (ClientError, TimeoutError):
        # Something else has broken.
        return


async def fail_directory(it: Breaking) -> None:
    """Let the second directory of a node fail while it runs. It comes back when the node starts again."""
    one = it.pick_leader()
    if one.node is None:
        return
    operations = it.rng.choice((("sync",), ("write",), ("write", "sync"), _OPERATIONS))
    it.tell(f"{SECOND} of node {one.node_id} fails: {', '.join(operations)}")
    await _without(it, one.disk, operations, Reason.IO_ERROR, it.wait)
    await restart_failed(it, one)


async def fill_directory(it: Breaking) -> None:
    """Let the second directory of a node run full while it runs."""
    one = it.pick_leader()
    if one.node is None:
        return
    it.tell(f"{SECOND} of node {one.node_id} is full")
    await _without(it, one.disk, ("write",), Reason.NO_SPACE, it.wait)
    await restart_failed(it, one)


async def start_without_directory(it: Breaking) -> None:
    """Start a node whose second directory cannot be read, and start it again when it can."""
    one = it.pick_leader()
    if one.node is None:
        return
    if it.rng.random() < 0.5:
        await stop_in_order(it, one)
        for _ in range(200):
            if not one.is_on:
                break
            await asyncio.sleep(0.05)
    if one.is_on:
        one.kill()
    it.tell(f"node {one.node_id} starts, and cannot read {SECOND}")

    async def serve_without() -> None:
        start(one)
        await wait_for_start([one])
        await it.wait()

    await _without(it, one.disk, ("read",), Reason.IO_ERROR, serve_without)
    if one.node is not None:
        await stop_in_order(it, one)
        for _ in range(200):
            if not one.is_on:
                break
            await asyncio.sleep(0.05)
    if one.is_on:
        one.kill()
    await start_later(it, one)


async def _without(
    it: Breaking,
    disk: SimulatedDisk,
    operations: tuple[str, ...],
    reason: Reason,
    meanwhile: Callable[[], Awaitable[None]],
) -> None:
    """Let operations on the second directory fail for a while."""
    skip = it.rng.choice((0, 0, 1, 3)) if reason is Reason.NO_SPACE else 0
    faults: list[Fault] = [
        disk.fail(operation, reason, f"{SECOND}/", skip=skip, times=None) for operation in operations
    ]
    try:
        await meanwhile()
    finally:
        for fault in faults:
            fault.times = 0

"""Somebody who asks what coordinators know, and has patience: every wait has an end."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.cluster.clients.raw import ask_slowly
from tests.simulation.cluster.rules.wrong import must

from ottla.client.errors import ClientError
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest

PATIENCE_S: Final = 12
"""How long an answer may take from a node that lives all the time, and that can be reached."""
_ASKED: Final = (
    ListTransactionsRequest(state_filters=(), producer_id_filters=()),
    ListTransactionsRequest(state_filters=(), producer_id_filters=()),
    DescribeTransactionsRequest(transactional_ids=("haunted", "habits-1")),
    ListGroupsRequest(),
    DescribeGroupsRequest(groups=("group classic",)),
)


async def wait_for_answers(
    cluster: SimulatedCluster, rng: Random, client_host: str, is_over: Callable[[], bool]
) -> None:
    """Ask all nodes, each one question after the other."""

    async def ask(one: SimulatedNode) -> None:
        while not is_over():
            await asyncio.sleep(rng.uniform(0.05, 0.4))
            if one.node is not None:
                await _ask(cluster, one, client_host, rng)

    await asyncio.gather(*map(ask, cluster.nodes))


async def _ask(cluster: SimulatedCluster, one: SimulatedNode, client_host: str, rng: Random) -> None:
    network, host = cluster.network, one.machine.host

    def connection() -> tuple[int, int]:
        """What is as it was as long as an answer may come."""
        return one.machine.life, network.lost_track[host]

    request, before = rng.choice(_ASKED), connection()
    asking = asyncio.create_task(ask_slowly(host, request, 2 * PATIENCE_S))
    waited_s = 0.0
    while not asking.done():
        await asyncio.sleep(0.1)
        is_reached = not (
            network.is_cut(host, client_host)
            or network.is_cut(client_host, host)
            or one.machine.is_paused
            or one.node is None
            or one.machine.disk_slowness > 1
        )
        # What was in its way begins the wait again.
        waited_s = waited_s + 0.1 if is_reached else 0.0
        if connection() != before:
            asking.cancel()
            return
        must(
            waited_s < PATIENCE_S,
            f"waits: node {one.node_id} has not answered {type(request).__name__} in {PATIENCE_S} s",
        )
    if not asking.cancelled() and isinstance(asking.exception(), ClientError | TimeoutError | None):
        return
    asking.result()

"""Members of a streams group: they take the tasks that they are given, come and go, and are fenced."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.cluster.clients.raw import raw_cluster

from ottla.client.cluster import GROUP as GROUP_KEY
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    Topology,
)

GROUP: Final = "streamers"
SETTINGS: Final = {
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.initial.rebalance.delay.ms": "0",
}
"""Of nodes whose clients have a streams group."""


async def stream(bootstrap: str, topic: str, rng: Random, is_over: Callable[[], bool]) -> None:
    """Be two members, until the time is over."""
    topology = Topology(
        epoch=0,
        subtopologies=(
            Subtopology(
                subtopology_id="0",
                source_topics=(topic,),
                source_topic_regex=(),
                state_changelog_topics=(),
                repartition_sink_topics=(),
                repartition_source_topics=(),
                copartition_groups=(),
            ),
        ),
    )
    await asyncio.gather(*(_be_member(bootstrap, topology, rng, is_over) for _ in range(2)))


async def _be_member(bootstrap: str, topology: Topology, rng: Random, is_over: Callable[[], bool]) -> None:
    while not is_over():
        try:
            async with asyncio.timeout(30), raw_cluster(bootstrap) as cluster:
                await _live(cluster, topology, rng, is_over)
        except (ClientError, TimeoutError):
            await asyncio.sleep(0.2)


async def _live(cluster: Cluster, topology: Topology, rng: Random, is_over: Callable[[], bool]) -> None:
    """Join, take and give tasks, and leave, or go without a word."""
    member_id = str(Uuid(rng.randbytes(16)))
    epoch = 0
    tasks: Any = ((), (), ())
    for beat in range(rng.randint(2, 12)):
        if is_over():
            break
        joining = epoch == 0
        answer = await _ask(
            cluster,
            StreamsGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=member_id,
                member_epoch=epoch,
                endpoint_information_epoch=0,
                rebalance_timeout_ms=2_000 if joining else -1,
                topology=topology if joining else None,
                active_tasks=tasks[0],
                standby_tasks=tasks[1],
                warmup_tasks=tasks[2],
                process_id=member_id if joining else None,
                client_tags=() if joining else None,
            ),
        )
        if answer.error_code is ErrorCode.NONE:
            epoch = answer.member_epoch
            if answer.active_tasks is not None:
                given = (answer.active_tasks, answer.standby_tasks or (), answer.warmup_tasks or ())
                tasks = tuple(
                    tuple(
                        TaskIds(subtopology_id=one.subtopology_id, partitions=one.partitions) for one in kind
                    )
                    for kind in given
                )
        elif answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            epoch, tasks = 0, ((), (), ())
        elif answer.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            cluster.forget_coordinator(GROUP_KEY, GROUP)
        await asyncio.sleep(rng.uniform(0.1, 0.5) * (beat > 0))
    if rng.random() < 0.5:
        await _ask(
            cluster,
            StreamsGroupHeartbeatRequest(
                group_id=GROUP, member_id=member_id, member_epoch=-1, endpoint_information_epoch=0
            ),
        )


async def _ask(cluster: Cluster, request: StreamsGroupHeartbeatRequest) -> Any:
    node_id = await cluster.coordinator(GROUP_KEY, GROUP)
    return await cluster.ask_node(node_id, request)

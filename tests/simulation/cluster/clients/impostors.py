"""Brokers and voters that are not what they say: they speak for one that was there before.

What they ask for was asked for rightly once, or would be a moment later. So it is to be refused, and changes
nothing if it is taken.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.cluster.rules.wrong import must

from ottla.client.errors import ClientError
from ottla.quorum.raft.states import Leader
from ottla.testing.simulation.cluster import CLUSTER_ID, CONTROLLER_PORT, SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)
from ottla.wire.messages.update_raft_voter import KRaftVersionFeature, Listener, UpdateRaftVoterRequest


async def propose_too_late(cluster: SimulatedCluster, rng: Random, is_over: Callable[[], bool]) -> None:
    """Propose in-sync replicas for a partition as it was before, or with a broker as it was before."""
    while not is_over():
        await asyncio.sleep(rng.uniform(0.05, 0.3))
        active = _find_active(cluster)
        wanted = None if active is None else _choose(active, rng)
        if active is None or wanted is None:
            continue
        topic, number, partition, brokers = wanted
        is_old_partition = rng.random() < 0.5
        leader = partition.leader
        old_life = None if is_old_partition else rng.choice([one for one in partition.isr if one != leader])
        members = tuple(
            BrokerState(broker_id=one, broker_epoch=brokers[one].broker_epoch - (one == old_life))
            for one in partition.isr
        )
        proposal = AlterPartitionPartition(
            partition_index=number,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=members,
            leader_recovery_state=0,
            partition_epoch=partition.partition_epoch - is_old_partition,
        )
        request = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=brokers[leader].broker_epoch,
            topics=(AlterPartitionTopic(topic_id=topic.id, partitions=(proposal,)),),
        )
        try:
            async with raw_connection(active.machine.host, CONTROLLER_PORT) as connection:
                answer = await connection.ask(request, 3)
        except (ClientError, TimeoutError):
            continue
        if answer.error_code is ErrorCode.NONE:
            what = (
                "of an earlier partition epoch" if is_old_partition else f"with an earlier life of {old_life}"
            )
            must(
                answer.topics[0].partitions[0].error_code is not ErrorCode.NONE,
                f"in-sync: a proposal for {topic.name}-{number} {what} was accepted",
            )


def _choose(active: SimulatedNode, rng: Random) -> tuple[Any, int, Any, Any] | None:
    """Choose a partition that has a leader, others in sync, and a past."""
    assert active.node is not None
    image = active.node.broker.image
    found = [
        (topic, number, partition, image.brokers)
        for topic in image.topics
        for number, partition in topic.partitions.items()
        if partition.leader in image.brokers
        and partition.partition_epoch > 0
        and len(partition.isr) > 1
        and all(one in image.brokers and image.brokers[one].broker_epoch > 0 for one in partition.isr)
    ]
    return rng.choice(found) if found else None


async def change_voters_at_once(cluster: SimulatedCluster, rng: Random, is_over: Callable[[], bool]) -> None:
    """Have voters described as they are, several at once: one change has to wait for the other.

    Sometimes this is asked of a leader that has committed nothing yet. That changes are made one after the
    other is seen by `promises`.
    """
    epochs: set[int] = set()
    for _ in range(400):
        await asyncio.sleep(0.004)
        if is_over():
            return
        active = next((one for one in cluster.serving if isinstance(_state_of(one), Leader)), None)
        if active is None:
            continue
        leader = _state_of(active)
        if leader.epoch in epochs and rng.random() < 0.98:
            continue
        epochs.add(leader.epoch)
        try:
            async with raw_connection(active.machine.host, CONTROLLER_PORT) as connection:
                asked = [connection.send(_describe(active, rng)) for _ in range(3)]
                await asyncio.wait(asked, timeout=2)
        except (ClientError, TimeoutError):
            continue


def _describe(active: SimulatedNode, rng: Random) -> UpdateRaftVoterRequest:
    assert active.node is not None
    replica = active.node.parts.quorum.driver.replica
    voter = rng.choice(replica.voters.voters)
    levels = voter.kraft_version_feature
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=replica.epoch,
        voter_id=voter.voter_id,
        voter_directory_id=voter.voter_directory_id,
        listeners=tuple(Listener(name=one.name, host=one.host, port=one.port) for one in voter.endpoints),
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=levels.min_supported_version,
            max_supported_version=levels.max_supported_version,
        ),
    )


def _state_of(one: SimulatedNode) -> Any:
    assert one.node is not None
    return one.node.parts.quorum.driver.replica.state


def _find_active(cluster: SimulatedCluster) -> SimulatedNode | None:
    return next(
        (one for one in cluster.serving if one.node is not None and one.node.parts.quorum.is_active), None
    )

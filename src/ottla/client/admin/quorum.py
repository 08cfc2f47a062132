"""The quorum: who leads the metadata log, who votes, and how far each replica of it has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.admin.routes import Routes
from ottla.client.errors import raise_for
from ottla.model.uuid import Uuid
from ottla.wire.messages import add_raft_voter
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
    ReplicaState,
)
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

_METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One replica of the metadata log. Times are None where the leader does not tell them."""

    node_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class ControllerEndpoint(NamedTuple):
    """Where a controller listens."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum as its leader sees it. `endpoints` are those of the voters, by node id."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[ControllerEndpoint, ...]]


class Quorum:
    """The quorum of a cluster (KRaft)."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(self) -> QuorumDescription:
        """Describe the quorum."""
        partition = DescribeQuorumPartition(partition_index=0)
        topic = DescribeQuorumTopic(topic_name=_METADATA_TOPIC, partitions=(partition,))
        answer = await self._routes.ask_any(DescribeQuorumRequest(topics=(topic,)))
        raise_for(answer.error_code, "cannot describe the quorum", answer.error_message)
        found = answer.topics[0].partitions[0]
        raise_for(found.error_code, "cannot describe the quorum", found.error_message)
        return QuorumDescription(
            leader=found.leader_id,
            leader_epoch=found.leader_epoch,
            high_watermark=found.high_watermark,
            voters=tuple(map(_replica, found.current_voters)),
            observers=tuple(map(_replica, found.observers)),
            endpoints={
                node.node_id: tuple(
                    ControllerEndpoint(one.name, one.host, one.port) for one in node.listeners
                )
                for node in answer.nodes
            },
        )

    async def add_voter(
        self, node_id: int, directory_id: Uuid, endpoints: Sequence[ControllerEndpoint]
    ) -> None:
        """Let a controller that follows the metadata log vote."""
        listeners = tuple(
            add_raft_voter.Listener(name=name, host=host, port=port) for name, host, port in endpoints
        )
        await self._change(
            add_raft_voter.AddRaftVoterRequest(
                cluster_id=None,
                timeout_ms=self._routes.request_timeout_ms,
                voter_id=node_id,
                voter_directory_id=directory_id,
                listeners=listeners,
            ),
            f"cannot add voter {node_id}",
        )

    async def remove_voter(self, node_id: int, directory_id: Uuid) -> None:
        """Let a controller vote no longer. It goes on following the metadata log."""
        await self._change(
            RemoveRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=directory_id),
            f"cannot remove voter {node_id}",
        )

    async def _change(self, request: Any, what: str) -> None:
        answer = await self._routes.ask_controller(request, lambda answer: [answer.error_code])
        raise_for(answer.error_code, what, answer.error_message)


def _replica(item: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        node_id=item.replica_id,
        directory_id=item.replica_directory_id,
        log_end_offset=item.log_end_offset,
        last_fetch_ms=item.last_fetch_timestamp if item.last_fetch_timestamp >= 0 else None,
        last_caught_up_ms=item.last_caught_up_timestamp if item.last_caught_up_timestamp >= 0 else None,
    )

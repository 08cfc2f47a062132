"""The quorum: who leads the metadata log, who votes, and how far each replica of it has come."""

from dataclasses import dataclass

from ottla.client.admin.routes import Routes
from ottla.client.errors import raise_for
from ottla.model.uuid import Uuid
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
    ReplicaState,
)

_METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One replica of the metadata log. Times are None where the leader does not tell them."""

    node_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum as its leader sees it."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


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
        )


def _replica(item: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        node_id=item.replica_id,
        directory_id=item.replica_directory_id,
        log_end_offset=item.log_end_offset,
        last_fetch_ms=item.last_fetch_timestamp if item.last_fetch_timestamp >= 0 else None,
        last_caught_up_ms=item.last_caught_up_timestamp if item.last_caught_up_timestamp >= 0 else None,
    )

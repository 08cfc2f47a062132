"""A share group on a node in this process: a member, what it fetches, and what it says of records."""

import asyncio
from typing import Any

from tests.support.data_plane import batch_of, produce
from tests.support.in_process import InProcessClient, loop_of

from ottla.broker.lifecycle.startup import Node
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import share_acknowledge
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

GROUP = "queue"
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
}


def run(node: Node, seconds: float = 0.02) -> None:
    """Let the node do what it has to do without being asked."""
    loop_of(node).run_until_complete(asyncio.sleep(seconds))


def create_topic(client: InProcessClient, name: str = "orders", partitions: int = 2) -> Uuid:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    answer = client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    topic_id: Uuid = answer.topics[0].topic_id
    return topic_id


def heartbeat(client: InProcessClient, epoch: int, *names: str) -> ShareGroupHeartbeatResponse:
    ask = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", member_epoch=epoch, subscribed_topic_names=names or None
    )
    answer: ShareGroupHeartbeatResponse = client.ask(ask)
    return answer


def join(node: Node, client: InProcessClient) -> ShareGroupHeartbeatResponse:
    """Join, and stay until there is an assignment."""
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)))
    answer = heartbeat(client, 0, "orders")
    while answer.assignment is None or not answer.assignment.topic_partitions:
        assert answer.error_code is ErrorCode.NONE
        run(node)
        answer = heartbeat(client, answer.member_epoch, "orders")
    return answer


class Member:
    """A member of the group with a share session."""

    def __init__(self, node: Node, topic_id: Uuid, member_id: str = "m") -> None:
        self.node = node
        self.topic_id = topic_id
        self.member_id = member_id
        self.client = InProcessClient(node)
        self.epoch = 0

    def fetch(
        self, *said: AcknowledgementBatch, epoch: int | None = None, **fields: Any
    ) -> ShareFetchResponse:
        asked = FetchPartition(partition_index=0, acknowledgement_batches=said)
        fields = {"max_wait_ms": 50, "min_bytes": 1, "max_records": 500, "batch_size": 500, **fields}
        ask = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=(FetchTopic(topic_id=self.topic_id, partitions=(asked,)),),
            forgotten_topics_data=(),
            **fields,
        )
        answer: ShareFetchResponse = self.client.ask(ask)
        if answer.error_code is ErrorCode.NONE:
            self.epoch += 1
        return answer

    def acknowledge(self, *said: AcknowledgementBatch, epoch: int | None = None) -> ErrorCode:
        batches = tuple(
            share_acknowledge.AcknowledgementBatch(
                first_offset=one.first_offset,
                last_offset=one.last_offset,
                acknowledge_types=one.acknowledge_types,
            )
            for one in said
        )
        asked = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        ask = share_acknowledge.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=(share_acknowledge.AcknowledgeTopic(topic_id=self.topic_id, partitions=(asked,)),),
        )
        answer = self.client.ask(ask)
        if answer.error_code is not ErrorCode.NONE:
            refusal: ErrorCode = answer.error_code
            return refusal
        self.epoch += 1
        code: ErrorCode = answer.responses[0].partitions[0].error_code
        return code


def said(first: int, last: int, *types: int) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)


def acquired(answer: ShareFetchResponse) -> list[tuple[int, int, int]]:
    assert answer.error_code is ErrorCode.NONE
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for one in partition.acquired_records
    ]


def send(client: InProcessClient, *values: bytes) -> None:
    produce(client, "orders", batch_of(*values))


def start_earliest(client: InProcessClient) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=(config,))
    answer = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert answer.responses[0].error_code is ErrorCode.NONE


def describe(client: InProcessClient) -> dict[int, tuple[int, int]]:
    """Return the start and the lag of each partition."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    (described,) = client.ask(DescribeShareGroupOffsetsRequest(groups=(group,))).groups
    assert described.error_code is ErrorCode.NONE
    return {
        one.partition_index: (one.start_offset, one.lag)
        for topic in described.topics
        for one in topic.partitions
    }


def configure(client: InProcessClient, resource_type: int, name: str, **configs: str) -> None:
    changes = tuple(
        AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    )
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=changes)
    answer = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert answer.responses[0].error_code is ErrorCode.NONE, answer.responses[0].error_message

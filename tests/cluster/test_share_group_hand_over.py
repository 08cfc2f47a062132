"""Share groups survive a change of the server on one directory: Ottla, Apache Kafka, and back."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.java.complaints import ERRORS, complaints
from tests.support.data_plane import batch_of, create_topic, produce
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led

from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import share_acknowledge
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
from ottla.wire.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP, MEMBER, TOPIC = "queue", "member", "orders"
DEADLINE_S = 90
PROPERTIES = {
    "node.id": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.assignment.interval.ms": "0",
    # No member's session ends while servers are changed.
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
}


class Queue:
    """A member of the group, whose epoch outlives the servers."""

    def __init__(self) -> None:
        self.epoch = 0
        self.topic_id: Uuid
        self.client: PlainClient
        self._session_epoch = 0

    def connect(self, bootstrap: str) -> None:
        self.client = PlainClient(bootstrap)
        self._session_epoch = 0

    def beat_until_assigned(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert time.monotonic() < deadline, "the member gets an assignment"
            self.client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)))
            answer = self.client.ask(
                ShareGroupHeartbeatRequest(
                    group_id=GROUP, member_id=MEMBER, member_epoch=self.epoch, subscribed_topic_names=(TOPIC,)
                )
            )
            if answer.error_code is ErrorCode.NONE:
                self.epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return
            else:
                assert answer.error_code.retriable, answer
            time.sleep(0.1)

    def fetch(self) -> list[tuple[int, int, int]]:
        """Fetch until something is acquired."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert time.monotonic() < deadline, "there is something to acquire"
            one = FetchPartition(partition_index=0, acknowledgement_batches=())
            answer = self.client.ask(
                ShareFetchRequest(
                    group_id=GROUP, member_id=MEMBER, share_session_epoch=self._session_epoch,
                    max_wait_ms=500, min_bytes=1, max_records=100, batch_size=100,
                    topics=(FetchTopic(topic_id=self.topic_id, partitions=(one,)),), forgotten_topics_data=(),
                )
            )  # fmt: skip
            assert answer.error_code is ErrorCode.NONE, answer
            self._session_epoch += 1
            acquired = [
                (part.first_offset, part.last_offset, part.delivery_count)
                for topic in answer.responses
                for partition in topic.partitions
                for part in partition.acquired_records
            ]
            if acquired:
                return acquired

    def acknowledge_and_leave(self, *said: tuple[int, int, int]) -> None:
        """Say something about offsets, and end the session. What is left is released."""
        batches = tuple(
            share_acknowledge.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=(kind,)
            )
            for first, last, kind in said
        )
        one = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = share_acknowledge.AcknowledgeTopic(topic_id=self.topic_id, partitions=(one,))
        answer = self.client.ask(
            share_acknowledge.ShareAcknowledgeRequest(
                group_id=GROUP, member_id=MEMBER, share_session_epoch=-1, topics=(topic,)
            )
        )
        assert answer.error_code is ErrorCode.NONE, answer
        assert answer.responses[0].partitions[0].error_code is ErrorCode.NONE, answer
        self.client.close()


def merged(acquired: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join what follows each other: how an answer is divided is for the broker to decide."""
    joined: list[tuple[int, int, int]] = []
    for first, last, count in acquired:
        if joined and joined[-1][1] + 1 == first and joined[-1][2] == count:
            joined[-1] = (joined[-1][0], last, count)
        else:
            joined.append((first, last, count))
    return joined


def view(client: PlainClient) -> Any:
    (group,) = client.ask(
        ShareGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=False)
    ).groups
    return group.error_code, group.group_state, group.group_epoch, group.assignment_epoch, group.members


def start_and_lag(client: PlainClient) -> tuple[int, int]:
    group = DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    (described,) = client.ask(DescribeShareGroupOffsetsRequest(groups=(group,))).groups
    (one,) = described.topics[0].partitions
    return one.start_offset, one.lag


@pytest.mark.thorough(guard="tests/golden/test_internal_records.py")
def test_share_groups_go_from_ottla_to_apache_kafka_and_back(tmp_path: Path) -> None:
    data, queue = tmp_path / "data", Queue()
    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        queue.connect(node.bootstrap)
        queue.topic_id = create_topic(queue.client, TOPIC)
        config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        resource = AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=(config,))
        queue.client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        produce(queue.client, TOPIC, batch_of(*(b"%d" % number for number in range(10))))
        queue.beat_until_assigned()
        assert queue.fetch() == [(0, 9, 1)]
        seen = view(queue.client)
        queue.acknowledge_and_leave((0, 3, 1), (4, 5, 2), (6, 6, 3))
    epoch = queue.epoch

    with ApacheKafka(tmp_path / "kafka", PROPERTIES, data_directory=data) as kafka:
        queue.connect(kafka.bootstrap)
        wait_until_led(queue.client, TOPIC)
        queue.beat_until_assigned()
        assert queue.epoch == epoch, "nothing has changed"
        assert view(queue.client) == seen
        assert merged(queue.fetch()) == [(4, 5, 2), (7, 9, 2)]
        queue.acknowledge_and_leave((4, 5, 1), (7, 7, 2))
        assert complaints(kafka.read_log(), ERRORS) == []

    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        queue.connect(node.bootstrap)
        queue.beat_until_assigned()
        assert queue.epoch == epoch
        assert view(queue.client) == seen
        assert merged(queue.fetch()) == [(7, 9, 3)]
        queue.acknowledge_and_leave((7, 9, 1))
        queue.connect(node.bootstrap)
        assert start_and_lag(queue.client) == (10, 0)
        queue.client.close()

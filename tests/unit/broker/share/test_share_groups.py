"""A share group on a node: members get partitions when the share coordinator has a state for them."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import batch_of, fetch, produce
from tests.support.data_plane import create_topic as create
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.lifecycle.startup import Node
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import share_acknowledge
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
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
from ottla.wire.messages.read_share_group_state import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)
from ottla.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

GROUP = "queue"
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path, SETTINGS) as node:
        yield node


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


def test_a_member_gets_partitions_when_they_have_a_state(node: Node) -> None:
    client = InProcessClient(node)
    topic_id = create_topic(client)
    answer = join(node, client)
    assert answer.assignment is not None
    assert [(one.topic_id, one.partitions) for one in answer.assignment.topic_partitions] == [
        (topic_id, (0, 1))
    ]
    described = client.ask(
        ShareGroupDescribeRequest(group_ids=(GROUP, "none"), include_authorized_operations=False)
    )
    group, none = described.groups
    assert (group.group_state, group.assignor_name, len(group.members)) == ("Stable", "simple", 1)
    assert none.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    topic = ReadStateData(topic_id=topic_id, partitions=(PartitionData(partition=0, leader_epoch=0),))
    state = client.ask(ReadShareGroupStateRequest(group_id=GROUP, topics=(topic,)))
    assert state.results[0].partitions[0].error_code is ErrorCode.NONE
    assert state.results[0].partitions[0].start_offset == -1
    found = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(f"{GROUP}:{topic_id}:0",)))
    assert found.coordinators[0].error_code is ErrorCode.NONE


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


@pytest.fixture
def member(node: Node) -> Member:
    client = InProcessClient(node)
    topic_id = create_topic(client)
    start_earliest(client)
    join(node, client)
    send(client, *(b"%d" % number for number in range(10)))
    return Member(node, topic_id)


def test_records_are_acquired_accepted_and_not_delivered_again(node: Node, member: Member) -> None:
    first = member.fetch(max_wait_ms=5000)
    assert acquired(first) == [(0, 9, 1)]
    assert first.acquisition_lock_timeout_ms == 30_000
    assert member.acknowledge(said(0, 9, 1)) is ErrorCode.NONE
    assert acquired(member.fetch()) == []
    send(member.client, b"more")
    assert acquired(member.fetch()) == [(10, 10, 1)]


def test_acknowledgements_come_along_with_a_fetch(node: Node, member: Member) -> None:
    member.fetch(max_records=3, share_acquire_mode=1, max_wait_ms=5000)
    answer = member.fetch(said(0, 2, 1, 2, 3), max_records=3, share_acquire_mode=1)
    assert answer.responses[0].partitions[0].acknowledge_error_code is ErrorCode.NONE
    assert acquired(answer) == [(1, 1, 2), (3, 4, 1)]


def test_who_leaves_gives_back_what_it_has(node: Node, member: Member) -> None:
    member.fetch(max_wait_ms=5000)
    other = Member(node, member.topic_id, "n")
    assert acquired(other.fetch()) == []
    assert member.acknowledge(said(0, 4, 1), epoch=-1) is ErrorCode.NONE
    assert acquired(other.fetch(max_wait_ms=5000)) == [(5, 9, 2)]


def test_a_closed_connection_gives_back_what_its_member_has(node: Node, member: Member) -> None:
    member.fetch(max_wait_ms=5000)
    other = Member(node, member.topic_id, "n")
    assert acquired(other.fetch()) == []
    member.client.session.close()
    assert acquired(other.fetch(max_wait_ms=5000)) == [(0, 9, 2)]


def test_sessions_have_epochs(node: Node, member: Member) -> None:
    assert member.fetch(epoch=1).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(epoch=-1).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(said(0, 0, 1), epoch=1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(said(0, 0, 1), epoch=0) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(said(0, 0, 1), epoch=0).error_code is ErrorCode.INVALID_REQUEST
    member.fetch(max_wait_ms=5000)
    assert member.fetch(epoch=2).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge(said(0, 0, 1), epoch=3) is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_what_cannot_be_said_is_refused(node: Node, member: Member) -> None:
    member.fetch(max_wait_ms=5000)
    assert member.acknowledge(said(5, 4, 1)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 1, 1)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 5)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 4)) is ErrorCode.INVALID_REQUEST, "only a renewal may renew"
    assert member.acknowledge(said(0, 40, 1)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 1)) is ErrorCode.NONE
    assert member.acknowledge(said(0, 4, 1)) is ErrorCode.NONE, "that is done already"
    assert member.acknowledge(said(6, 7, 1), said(7, 8, 1)) is ErrorCode.INVALID_RECORD_STATE


def test_what_was_acknowledged_survives_a_restart(tmp_path: Path) -> None:
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        topic_id = create_topic(client)
        start_earliest(client)
        join(node, client)
        send(client, *(b"%d" % number for number in range(10)))
        member = Member(node, topic_id)
        member.fetch(max_wait_ms=5000)
        assert member.acknowledge(said(0, 1, 1), said(2, 2, 2), said(3, 3, 3)) is ErrorCode.NONE
    with in_process_node(tmp_path, SETTINGS) as node:
        member = Member(node, topic_id)
        assert acquired(member.fetch(max_wait_ms=5000)) == [(2, 2, 2), (4, 9, 1)]


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


def alter(client: InProcessClient, start_offset: int, partition: int = 0) -> ErrorCode:
    one = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=start_offset)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=(one,))
    answer = client.ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,)))
    code: ErrorCode = answer.error_code or answer.responses[0].partitions[0].error_code
    return code


def forget(client: InProcessClient) -> ErrorCode:
    topic = DeleteShareGroupOffsetsRequestTopic(topic_name="orders")
    answer = client.ask(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,)))
    code: ErrorCode = answer.error_code or answer.responses[0].error_code
    return code


def test_the_lag_counts_what_is_not_done(node: Node, member: Member) -> None:
    client = member.client
    assert describe(client) == {0: (-1, -1), 1: (-1, -1)}, "nobody has read yet"
    member.fetch(max_wait_ms=5000)
    assert describe(client)[0] == (0, 10)
    member.acknowledge(said(0, 1, 1), said(5, 7, 1))
    assert describe(client)[0] == (2, 5)


def test_offsets_of_an_empty_group_can_be_set_and_forgotten(node: Node, member: Member) -> None:
    client = InProcessClient(node)
    member.fetch(max_wait_ms=5000)
    assert alter(client, 3) is forget(client) is ErrorCode.NON_EMPTY_GROUP
    member.acknowledge(said(0, 9, 1), epoch=-1)
    heartbeat(client, -1)
    assert alter(client, 3) is ErrorCode.NONE
    assert alter(client, 3, partition=9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(client)[0] == (3, 7)
    join(node, client)
    again = Member(node, member.topic_id)
    assert acquired(again.fetch(max_wait_ms=5000)) == [(3, 9, 1)]
    again.acknowledge(said(3, 9, 1), epoch=-1)
    heartbeat(client, -1)
    assert forget(client) is ErrorCode.NONE
    assert forget(client) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(client) == {}
    join(node, client)
    assert acquired(Member(node, member.topic_id).fetch(max_wait_ms=5000)) == [(0, 9, 1)]


def test_a_group_goes_with_its_states(node: Node, member: Member) -> None:
    client = InProcessClient(node)
    assert client.ask(DeleteGroupsRequest(group_names=(GROUP,))).results[0].error_code is (
        ErrorCode.NON_EMPTY_GROUP
    )
    heartbeat(client, -1)
    assert client.ask(DeleteGroupsRequest(group_names=(GROUP,))).results[0].error_code is ErrorCode.NONE
    assert all(not shard.state.states for shard in node.broker.shares.coordinator.shards)


DEAD = "dlq.orders"


def configure(client: InProcessClient, resource_type: int, name: str, **configs: str) -> None:
    changes = tuple(
        AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    )
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=changes)
    answer = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert answer.responses[0].error_code is ErrorCode.NONE, answer.responses[0].error_message


def letters(client: InProcessClient) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    data = fetch(client, DEAD, 0, max_wait_ms=0, min_bytes=0).records
    return [
        (record.value, dict(record.headers))
        for batch in iter_batches(memoryview(bytes(data or b"")))
        for record in iter_batch_records(batch)
    ]


def keep_dead_letters(client: InProcessClient) -> None:
    create(client, DEAD, configs={"errors.deadletterqueue.group.enable": "true"})
    configure(
        client, 32, GROUP, errors_deadletterqueue_topic_name=DEAD,
        errors_deadletterqueue_copy_record_enable="true", share_delivery_count_limit="2",
    )  # fmt: skip


def test_records_that_are_given_up_become_dead_letters(node: Node, member: Member) -> None:
    keep_dead_letters(member.client)
    member.fetch(max_wait_ms=5000, max_records=3, share_acquire_mode=1)
    member.acknowledge(said(0, 2, 1, 3, 2))
    answer = member.fetch(max_wait_ms=5000, max_records=1, share_acquire_mode=1)
    assert acquired(answer) == [(2, 2, 2)]
    assert member.acknowledge(said(2, 2, 2)) is ErrorCode.NONE
    while len(letters(member.client)) < 2:
        run(node)
    (rejected, why), (used_up, why_not) = letters(member.client)
    assert (rejected, used_up) == (b"1", b"2")
    assert why == {
        "__dlq.errors.topic": b"orders",
        "__dlq.errors.partition": b"0",
        "__dlq.errors.offset": b"1",
        "__dlq.errors.group": GROUP.encode(),
        "__dlq.errors.delivery.count": b"1",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    assert why_not["__dlq.errors.message"] == b"Offset delivery count exceeded the threshold."
    while describe(member.client)[0][0] < 3:
        run(node)


def test_letters_wait_for_their_topic_and_none_is_lost_or_written_twice(tmp_path: Path) -> None:
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        topic_id = create_topic(client)
        start_earliest(client)
        configure(client, 32, GROUP, errors_deadletterqueue_topic_name=DEAD)
        join(node, client)
        send(client, b"a", b"b", b"c")
        member = Member(node, topic_id)
        member.fetch(max_wait_ms=5000)
        assert member.acknowledge(said(0, 2, 3)) is ErrorCode.NONE
        # One letter was written, and then the node crashed: there is no topic that could be asked.
        create(client, DEAD, configs={"errors.deadletterqueue.group.enable": "true"})
        run(node, 0.01)
        produce(client, DEAD, letter_of(1))
        assert describe(client)[0] == (0, 3), "they are in flight as long as their letters are missing"
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        assert acquired(Member(node, topic_id).fetch(max_wait_ms=5000)) == []
        while describe(client)[0] != (3, 0):
            run(node)
        offsets = [headers["__dlq.errors.offset"] for _, headers in letters(client)]
        assert sorted(offset or b"" for offset in offsets) == [b"0", b"1", b"2"]


def letter_of(offset: int) -> bytearray:
    headers = {"topic": "orders", "partition": "0", "offset": str(offset), "group": GROUP}
    named = tuple((f"__dlq.errors.{key}", text.encode()) for key, text in headers.items())
    return build_batch([Record(0, time.time_ns() // 1_000_000, None, None, named)])
